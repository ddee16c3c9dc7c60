"""One transaction for one write, and the one lock that every write takes first."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import cache
from itertools import compress
from operator import itemgetter, ne
from typing import Any, TypeVar

from django.db import transaction

from ..actors import EVERY_ACCOUNT, Actor
from ..errors import (
    NotFound,
    PermissionDenied,
    SessionClosed,
    SessionDeleted,
    SessionExpired,
    VersionMismatch,
)
from ..models import BulkMove, ReadChain, Session
from ..prepared import Given, Prepared
from ..querysets import SessionQuerySet, given_account
from ..states import SessionStatus
from ..turns import turn_to_write
from ..writes import at_once, gathering, is_at_once, update

Result = TypeVar("Result")

_inside: ContextVar[bool] = ContextVar("inside_write_transaction", default=False)

_REFUSALS = {
    SessionStatus.CLOSED: SessionClosed,
    SessionStatus.EXPIRED: SessionExpired,
}


def _is_inside() -> bool:
    return is_at_once() or (_inside.get() and transaction.get_connection().in_atomic_block)


def write_transaction(*, reads_nothing: bool = False) -> AbstractContextManager[None]:
    """Open a transaction, or join the one that an enclosing call of this opened.

    It has the turn to write (`sessions_app.turns`), and what it writes is gathered
    (`sessions_app.writes`).

    Joining instead of nesting: what failed inside takes the whole write back, and no savepoint is
    paid for. Inside a *foreign* ``atomic`` block it is a savepoint, so that the caller's
    transaction stays usable after a refusal (report CON-04).

    What ``reads_nothing`` inside need not be inside before it is all there (`writes.at_once`).
    """
    if _is_inside():
        return nullcontext()
    is_foreign = transaction.get_connection().in_atomic_block
    return at_once() if reads_nothing and not is_foreign else _outermost()


@contextmanager
def _outermost() -> Iterator[None]:
    token = _inside.set(True)
    try:
        with turn_to_write(), transaction.atomic(), gathering():
            yield
    finally:
        _inside.reset(token)


@contextmanager
def locked_session(
    session_id: str, *, actor: Actor, if_match: int | None = None
) -> Iterator[Session]:
    """Lock the session's row, yield it, and store the fields that were changed meanwhile.

    On SQLite the lock is the write transaction itself (``BEGIN IMMEDIATE``): there
    ``select_for_update`` does nothing.

    Raises:
        NotFound: unknown, or another account's.
        SessionDeleted: only its tombstone is left.
        VersionMismatch: ``if_match`` is given and not the session's version.
    """
    with write_transaction():
        session = _lock(session_id, actor)
        if session.status == SessionStatus.DELETED:
            raise deleted(session)
        if if_match is not None and if_match != session.version:
            raise version_mismatch(session.version)
        session.version_when_locked = session.version
        names, values = _stored()
        before = values(vars(session))
        yield session
        if changed := [*compress(names, map(ne, before, values(vars(session))))]:
            update(session, changed)


def require_active(session: Session) -> None:
    """Refuse a write into a session that is not ACTIVE (call after settling what has lapsed).

    Raises:
        SessionClosed, SessionExpired: resume it first.
    """
    if refusal := _REFUSALS.get(SessionStatus(session.status)):
        raise refusal(
            f"The session {session.session_id} is {session.status}.",
            session_id=session.session_id,
            current_status=session.status,
            version=session.version_when_locked,
        )


def deleted(session: Session) -> SessionDeleted:
    return SessionDeleted(
        f"The session {session.session_id} was deleted.",
        session_id=session.session_id,
        current_status=session.status,
        deleted_at=session.deleted_at,
    )


def version_mismatch(version: int) -> VersionMismatch:
    return VersionMismatch(f"The current version is {version}.", version=version)


def touch(session: Session, *, now: datetime, activity: bool = True) -> int:
    """Mark the locked session as changed: its next version, and when. Returns the version.

    A transaction is one change, however many things it settles on the way. Activity postpones
    expiry; changes of title or metadata and maintenance do not.
    """
    session.version = session.version_when_locked + 1
    session.updated_at = now
    if activity:
        session.last_activity_at = now
        reschedule(session)
    return session.version


def reschedule(session: Session) -> None:
    """Set ``expires_at``: last activity and idle timeout, or the active run's deadline if later.

    Source: lifecycle page, "Expiry"; report TTL-01 (a session that expired under a long tool call).
    """
    if session.status != SessionStatus.ACTIVE or session.idle_timeout_seconds is None:
        session.expires_at = None
        return
    idle_until = session.last_activity_at + timedelta(seconds=session.idle_timeout_seconds)
    session.expires_at = max(idle_until, session.active_run_deadline or idle_until)


@Prepared
def _locked(given: type[Given], everyone: bool) -> SessionQuerySet:
    mine = Session.objects.owned_by(given_account(given, everyone))
    return mine.select_for_update().filter(pk=given("session_id"))


def _lock(session_id: str, actor: Actor) -> Session:
    account = actor.write_scope
    session = _locked.first(account is EVERY_ACCOUNT, session_id=session_id, account=account)
    if session is not None:
        return session
    if Session.objects.readable_by(actor).filter(pk=session_id).exists():
        raise PermissionDenied(f"The session {session_id} may be read, not written.")
    raise NotFound(f"There is no session {session_id}.")


def lock_named(account_id: int, external_id: str) -> Session | None:
    """Lock the account's session of that name, if there is one; of a deletion that is under way,
    the end is waited for, after which the name is free."""
    named = Session.objects.filter(account=account_id, external_id=external_id)
    return named.select_for_update().first()


def lock_awaiting_purge(session_id: str) -> bool:
    """Lock a tombstone; False when no rows of its session are left (any more)."""
    waiting = Session.objects.awaiting_purge().filter(pk=session_id)
    return waiting.select_for_update().first() is not None


def lock_read_chain(session_id: str) -> ReadChain:
    """Lock where the chain of a session's content reads ends; where there is none, it begins."""
    chain, _ = ReadChain.objects.select_for_update().get_or_create(session_id=session_id)
    return chain


def lock_bulk_move(bulk_id: str) -> BulkMove | None:
    """Lock a decision about many sessions that goes on, before any of these; with its account."""
    rows = BulkMove.objects.select_for_update(of=("self",)).select_related("account")
    return rows.filter(pk=bulk_id, confirmed_at__isnull=False, ended_at=None).first()


@cache
def _stored() -> tuple[tuple[str, ...], Callable[[dict[str, Any]], tuple[Any, ...]]]:
    """The names of a session's fields, and what takes their values."""
    names = tuple(field.attname for field in Session._meta.concrete_fields)
    return names, itemgetter(*names)
