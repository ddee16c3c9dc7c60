"""Many sessions brought to a status by one decision, in steps that survive an interruption.

Which sessions is written down first, as a draft: what its operator then confirms is just those.
Each is moved in a transaction of its own, which holds the move's row, sees that nobody has stopped
it and that its operator still has the right, and writes down what has become of the session: so
nothing is done twice, after its end, or by whoever may no longer do it. The page of the operator
takes the steps while it is open, else the sweep.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from ..actors import Actor
from ..errors import DatabaseBusy, DossierError, InvalidTransition, SessionDeleted
from ..ids import new_id
from ..models import BulkMove, BulkTarget, SessionEvent
from ..states import ActorType, BulkEnd, BulkOutcome, SessionStatus, Subject
from .decisions import DECISIONS, bring
from .lifecycle import clean_reason
from .locking import lock_bulk_move, write_transaction

logger = logging.getLogger(__name__)

MOST_TARGETS = 10_000
# After so long without a step, whoever drove it is gone.
IDLE = timedelta(seconds=10)
# What nobody confirms, and what is over, is kept so long.
DRAFTS_KEPT, KEPT = timedelta(days=1), timedelta(days=30)
# How often a session is tried for which the database is too busy.
MOST_ATTEMPTS = 5
DATABASE_ERROR, INTERNAL_ERROR = "database_error", "internal_error"
_BATCH = 100
_GOING_ON = Q(confirmed_at__isnull=False, ended_at=None)


@dataclass(slots=True)
class Worked:
    """What a step did: sessions moved, those that failed by no fault of theirs, and the targets
    for which the database was too busy."""

    moved: int = 0
    failed: int = 0
    busy: list[int] = field(default_factory=list)


# --- asked, confirmed, stopped -------------------------------------------------------------------


def draft(
    *,
    actor: Actor,
    to: SessionStatus,
    session_ids: Sequence[str],
    staying: Mapping[str, int] | None = None,
) -> BulkMove:
    """Write down which sessions are meant, at most `MOST_TARGETS`; nothing is done before
    `confirm`. ``staying`` counts by status the others that were found."""
    now, meant = timezone.now(), session_ids[:MOST_TARGETS]
    with write_transaction():
        move = BulkMove.objects.create(
            bulk_id=new_id("bulk"),
            to_status=to,
            operator=actor.id,
            account=actor.user,
            total=len(meant),
            staying=dict(staying or {}),
            has_more=len(session_ids) > len(meant),
            created_at=now,
            worked_at=now,
        )
        rows = (BulkTarget(bulk=move, session_id=target) for target in meant)
        BulkTarget.objects.bulk_create(rows, batch_size=1000)
    return move


def asked(user: User, bulk_id: str, *, to: SessionStatus) -> BulkMove | None:
    """What this account was asked to confirm; nobody confirms for another."""
    return BulkMove.objects.filter(pk=bulk_id, account=user, to_status=to).first()


def confirm(move: BulkMove, *, reason: str) -> None:
    """Decide it; a second time changes nothing.

    Raises:
        InvalidRequest: the reason is longer than 1,000 characters.
    """
    now, why = timezone.now(), clean_reason(reason)
    _write(Q(pk=move.pk, confirmed_at=None), confirmed_at=now, worked_at=now, reason=why)
    move.refresh_from_db()


def stop(move: BulkMove, *, actor: Actor) -> None:
    """Leave the rest as it is; waits for the session that is being moved."""
    _end(move, BulkEnd.STOPPED, stopped_by=actor.id)


def _end(move: BulkMove, end: BulkEnd, **more: str) -> None:
    _write(_GOING_ON & Q(pk=move.pk), ended_at=timezone.now(), end=end, **more)


def _write(which: Q, **values: object) -> None:
    """In its turn: whoever only tried would starve beside a step."""
    with write_transaction():
        BulkMove.objects.filter(which).update(**values)


# --- done ----------------------------------------------------------------------------------------


def step(move: BulkMove, *, seconds: float) -> Worked:
    """Go on for so long, or to the end; one session at least."""
    until, worked = time.monotonic() + seconds, Worked()
    _write(_GOING_ON & Q(pk=move.pk), worked_at=timezone.now())
    while targets := _next(move, worked):
        for target in targets:
            if not _take(move, target, worked) or time.monotonic() >= until:
                return worked
    if not worked.busy:
        _end(move, BulkEnd.DONE)
    return worked


def _next(move: BulkMove, worked: Worked) -> list[BulkTarget]:
    """What waits; those for which the database was too busy come last, and once in a step."""
    waiting = BulkTarget.objects.filter(bulk=move, outcome=None).exclude(pk__in=worked.busy)
    return list(waiting.order_by("attempts", "id")[:_BATCH])


def _take(move: BulkMove, target: BulkTarget, worked: Worked) -> bool:
    """Do it to one session, if that is still to be done; tell whether the move goes on."""
    try:
        with write_transaction():
            return _move(move, target, worked)
    except DossierError as error:
        if isinstance(error, DatabaseBusy):
            _put_off(target, worked)
        else:
            _note(target, *_refusal(error))
    except OperationalError:
        _require_connection()
        _put_off(target, worked)
    except InterfaceError:
        raise
    except DatabaseError as error:
        _require_connection()
        # By its kind only: a database's message repeats the row, and so what people wrote.
        logger.error("%s: %s: %s", move.pk, target.session_id, type(error).__name__)  # noqa: TRY400
        _fail(target, DATABASE_ERROR, worked)
    except Exception:
        # One that cannot be done must not keep all others waiting.
        logger.exception("%s: %s", move.pk, target.session_id)
        _fail(target, INTERNAL_ERROR, worked)
    return True


def _require_connection() -> None:
    """What a lost connection says, is no word about the session (within an ``except``)."""
    if not connection.is_usable():
        raise  # noqa: PLE0704


def _move(move: BulkMove, target: BulkTarget, worked: Worked) -> bool:
    operator = _operator(move)
    if operator is None:
        return False
    # Whoever takes steps at the same time has waited for the move's row.
    if not BulkTarget.objects.filter(pk=target.pk, outcome=None).exists():
        return True
    to = SessionStatus(move.to_status)
    changed = bring(operator, target.session_id, to=to, reason=move.reason)
    _note(target, BulkOutcome.CHANGED if changed else BulkOutcome.KEPT, to)
    worked.moved += changed
    return True


def _operator(move: BulkMove) -> Actor | None:
    """Whose decision it is, with the move's row locked; None: it has ended, if only now."""
    held = lock_bulk_move(move.pk)
    if held is None:
        return None
    user, right = held.account, DECISIONS[SessionStatus(held.to_status)].permission
    # By the account and not by its name, which another may have by now.
    if user is None or not (user.is_active and user.is_staff and user.has_perm(right)):
        _end(held, BulkEnd.WITHDRAWN)
        return None
    return Actor.operator(user)


def _refusal(error: DossierError) -> tuple[BulkOutcome, str]:
    """What a status forbids, stays as it is; anything else has failed."""
    if isinstance(error, SessionDeleted):
        return BulkOutcome.KEPT, SessionStatus.DELETED
    if isinstance(error, InvalidTransition):
        return BulkOutcome.KEPT, str(error.data.get("current_status"))
    return BulkOutcome.REFUSED, error.code


def _fail(target: BulkTarget, why: str, worked: Worked) -> None:
    worked.failed += 1
    _note(target, BulkOutcome.REFUSED, why)


def _put_off(target: BulkTarget, worked: Worked) -> None:
    """A busy database is asked again, a few times."""
    if target.attempts + 1 >= MOST_ATTEMPTS:
        _fail(target, DatabaseBusy.code, worked)
        return
    worked.busy.append(target.pk)
    with write_transaction():
        BulkTarget.objects.filter(pk=target.pk).update(attempts=F("attempts") + 1)


def _note(target: BulkTarget, outcome: BulkOutcome, why: str) -> None:
    """The first who did it has the word: another may have taken the same step."""
    left = BulkTarget.objects.filter(pk=target.pk, outcome=None)
    with write_transaction():
        left.update(outcome=outcome, why="" if outcome == BulkOutcome.CHANGED else str(why))


# --- read ----------------------------------------------------------------------------------------


def decided() -> "QuerySet[BulkMove]":
    """Those that are no drafts, the newest first."""
    return BulkMove.objects.filter(confirmed_at__isnull=False).order_by("-confirmed_at")


def behind(event: SessionEvent) -> BulkMove | None:
    """The decision that made an operator's event, while it is kept."""
    if event.actor_type != ActorType.OPERATOR or event.subject != Subject.SESSION:
        return None
    moved = BulkTarget.objects.filter(
        session_id=event.session_id, outcome=BulkOutcome.CHANGED, bulk__to_status=event.to_status
    )
    moves = decided().filter(pk__in=moved.values("bulk"), confirmed_at__lte=event.created_at)
    return moves.filter(Q(ended_at=None) | Q(ended_at__gte=event.created_at)).first()


# --- what the sweep goes on with, and drops ------------------------------------------------------


def going_on() -> "QuerySet[BulkMove]":
    return BulkMove.objects.filter(_GOING_ON)


def abandoned(*, now: datetime) -> "QuerySet[BulkMove]":
    """Those that nobody drives any more, the longest first."""
    return going_on().filter(worked_at__lte=now - IDLE).order_by("worked_at")


def forgettable(*, now: datetime) -> "QuerySet[BulkMove]":
    """Drafts that nobody has confirmed, and what was over long ago."""
    stale = Q(confirmed_at=None, created_at__lt=now - DRAFTS_KEPT)
    return BulkMove.objects.filter(stale | Q(ended_at__lt=now - KEPT)).order_by("created_at")


def forget(move: BulkMove, *, batch: int) -> None:
    """Drop what was written down of it; what became of the sessions stands in their events."""
    while keys := list(move.targets.values_list("pk", flat=True)[:batch]):
        BulkTarget.objects.filter(pk__in=keys).delete()
    move.delete()
