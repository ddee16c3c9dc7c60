"""What time leaves to be done: a sweep may stop anywhere, and any number may run at once.

Each session is settled in a transaction of its own, under its lock, after looking again: the same
door that a write goes through (`SessionManager.settle`).
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import QuerySet
from django.utils import timezone

from sessions_app.actors import Actor
from sessions_app.errors import NotFound, SessionDeleted
from sessions_app.models import BulkMove, BulkTarget, IdempotencyRecord, Session
from sessions_app.services import SessionManager, bulk
from sessions_app.states import SessionStatus

from ..models import Run
from ..querysets import RunQuerySet
from .manager import RunManager

logger = logging.getLogger(__name__)
# For the decisions about many sessions that their operators' pages drive no more: each of them, and
# all of a round, so that deadlines are not kept waiting. Who gets no turn is the first next time.
_BULK_SECONDS, _BULK_ROUND_SECONDS = 5.0, 20.0


@dataclass(slots=True)
class Swept:
    """How many sessions were settled, purged and moved by operators' decisions, records dropped,
    and sessions (or decisions) that failed."""

    settled: int = 0
    purged: int = 0
    moved: int = 0
    idempotency_records: int = 0
    failed: int = 0

    def settle(self, session_id: str, work: Callable[..., object]) -> None:
        self.settled += self._done(session_id, work)

    def purge(self, session_id: str, work: Callable[..., object]) -> None:
        self.purged += self._done(session_id, work)

    def move(self, move: BulkMove, *, seconds: float) -> None:
        def work(*, session_id: str) -> None:
            worked = bulk.step(move, seconds=seconds)
            self.moved += worked.moved
            self.failed += worked.failed

        self._done(move.pk, work)

    def _done(self, session_id: str, work: Callable[..., object]) -> bool:
        """Do this to the session; one that cannot be done must not keep all others waiting."""
        try:
            work(session_id=session_id)
        except (NotFound, SessionDeleted):  # deleted since it was listed
            return False
        except DatabaseError as error:
            if not connection.is_usable():
                raise
            # By its kind only: a database's message repeats the row, and so what people wrote.
            logger.error("The sweep leaves %s for later: %s", session_id, type(error).__name__)  # noqa: TRY400
        except Exception:
            logger.exception("The sweep leaves %s for later", session_id)
        else:
            return True
        self.failed += 1
        return False


def due(*, now: datetime | None = None) -> Swept:
    """What a sweep would do, without doing it."""
    moment = now or timezone.now()
    known = set(Session.objects.due(now=moment).values_list("pk", flat=True))
    return Swept(
        settled=len(known.union(_strays(moment).values_list("session_id", flat=True))),
        purged=Session.objects.awaiting_purge().count(),
        moved=BulkTarget.objects.filter(bulk__in=bulk.abandoned(now=moment), outcome=None).count(),
        idempotency_records=_old_records(moment).count(),
    )


def sweep(*, batch: int = 100, now: datetime | None = None) -> Swept:
    """Do it all, ``batch`` rows at a time."""
    moment = now or timezone.now()
    manager = SessionManager(Actor.system())
    done = Swept()
    for session_id in _keys(Session.objects.due(now=moment), batch):
        done.settle(session_id, partial(manager.settle, now=moment))
    interrupt = RunManager(Actor.system()).interrupt_lapsed
    for session_id in _keys(_strays(moment), batch, name="session_id"):
        done.settle(session_id, partial(interrupt, now=moment))
    for session_id in _keys(Session.objects.awaiting_purge(), batch):
        done.purge(session_id, partial(_purge, manager, batch=batch))
    _go_on(done)
    for move in bulk.forgettable(now=moment)[:batch]:
        bulk.forget(move, batch=batch)
    while keys := list(_old_records(moment).values_list("pk", flat=True)[:batch]):
        done.idempotency_records += IdempotencyRecord.objects.filter(pk__in=keys).delete()[0]
    return done


def _go_on(done: Swept) -> None:
    """With what operators have decided, and left to itself."""
    until = time.monotonic() + _BULK_ROUND_SECONDS
    for move in bulk.abandoned(now=timezone.now()):
        if (left := until - time.monotonic()) <= 0:
            return
        done.move(move, seconds=min(_BULK_SECONDS, left))


def _purge(manager: SessionManager, *, session_id: str, batch: int) -> None:
    while not manager.purge(session_id=session_id, batch=batch):
        pass


def _strays(now: datetime) -> RunQuerySet:
    """Lapsed runs by their own rows alone: those that other hands wrote, so that no session knows
    of their deadline (report RUN-02)."""
    return Run.objects.effective().lapsed(now=now).exclude(session__status=SessionStatus.DELETED)


def _keys(rows: QuerySet, batch: int, *, name: str = "pk") -> Iterator[str]:
    """The ids of these rows, read a batch at a time in their order, each once."""
    last = ""
    keys_of = rows.order_by(name).values_list(name, flat=True).distinct()
    while keys := list(keys_of.filter(**{f"{name}__gt": last})[:batch]):
        yield from keys
        last = keys[-1]


def _old_records(now: datetime) -> QuerySet[IdempotencyRecord]:
    oldest = now - timedelta(hours=settings.IDEMPOTENCY_TTL_HOURS)
    return IdempotencyRecord.objects.filter(created_at__lt=oldest).order_by("created_at")
