"""The life of a session: created, changed, closed, expired, resumed, deleted."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from ..models import Session
from ..states import SessionStatus
from .creation import NewSession, SessionChanges, change, create
from .forking import NewFork, fork
from .lifecycle import clean_reason, move, settled_session
from .locking import require_active, write_transaction
from .purge import blank, purge_batch
from .reading import SessionReader


class SessionLifetime(SessionReader):
    """The part of `SessionManager` that changes what a session is, not what it holds.

    Each method is one transaction: it locks the session's row, settles what has lapsed, checks,
    writes, and records the lifecycle event. ``now`` is for whoever must fix the moment; left out,
    it is the clock's, read once the lock is held. ``if_match`` is a version to compare first.

    Every method raises NotFound for what the actor may not see and SessionDeleted for a tombstone.
    """

    def create(self, new: NewSession, *, now: datetime | None = None) -> tuple[Session, bool]:
        """Create a session of the actor's account; tell whether it is new.

        Raises:
            AlreadyExists: the external id is taken and ``if_exists`` is ``error``.
            InvalidRequest, PayloadTooLarge: by what the contract says of the fields.
        """
        with write_transaction():
            return create(new, actor=self.actor, now=now or timezone.now())

    def fork(
        self,
        *,
        session_id: str,
        new: NewFork | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> Session:
        """Make a new session of the same account that begins as a copy of this one, which may be
        ACTIVE, CLOSED or EXPIRED, and stays so; ``if_match`` is this one's version.

        Raises:
            InvalidRequest, PayloadTooLarge: by what the contract says of the fields.
        """
        with settled_session(session_id, actor=self.actor, now=now, if_match=if_match) as (
            session,
            moment,
        ):
            return fork(session, new or NewFork(), actor=self.actor, now=moment)

    def update(
        self,
        *,
        session_id: str,
        changes: SessionChanges,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> Session:
        """Change title, metadata, idle timeout; name agent and user while they are empty."""
        with self._active(session_id, now, if_match) as (session, moment):
            change(session, changes, now=moment)
        return session

    def close(
        self,
        *,
        session_id: str,
        reason: str | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> tuple[Session, bool]:
        """End the session: unfinished runs and open calls are cancelled, every byte is kept.

        Returns the session and whether it changed: closing what is CLOSED does nothing.

        Raises:
            InvalidTransition: it has expired.
        """
        return self._move(session_id, SessionStatus.CLOSED, reason, if_match, now)

    def expire(
        self,
        *,
        session_id: str,
        reason: str | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> tuple[Session, bool]:
        """Expire the session before its time: unfinished runs are interrupted.

        Raises:
            InvalidTransition: it is closed.
        """
        return self._move(session_id, SessionStatus.EXPIRED, reason, if_match, now)

    def resume(
        self,
        *,
        session_id: str,
        reason: str | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> tuple[Session, SessionStatus | None]:
        """Make the session ACTIVE again, explicitly: the only way back from CLOSED and EXPIRED.

        Returns the session and the status it came from; None if it was ACTIVE all along.
        """
        cleaned = clean_reason(reason)
        with settled_session(session_id, actor=self.actor, now=now, if_match=if_match) as (
            session,
            moment,
        ):
            origin = SessionStatus(session.status)
            if origin == SessionStatus.ACTIVE:
                return session, None
            move(session, SessionStatus.ACTIVE, actor=self.actor, reason=cleaned, now=moment)
            return session, origin

    def delete(
        self,
        *,
        session_id: str,
        reason: str | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> Session:
        """Turn the session into a tombstone, at once and for good.

        `purge` removes the rows after the commit; what it does not finish, the sweep does.
        """
        cleaned = clean_reason(reason)
        with settled_session(session_id, actor=self.actor, now=now, if_match=if_match) as (
            session,
            moment,
        ):
            move(session, SessionStatus.DELETED, actor=self.actor, reason=cleaned, now=moment)
            blank(session)

            # A function with a name: Django's log of one that fails asks for it.
            def begin_purge() -> None:
                self.purge(session_id=session_id)

            transaction.on_commit(begin_purge, robust=True)
        return session

    def purge(self, *, session_id: str, batch: int = 1000, batches: int = 10) -> bool:
        """Remove the rows of a deleted session; tell whether none is left.

        Each batch is a transaction of its own: what is interrupted goes on where it stopped.
        """
        for _ in range(batches):
            with write_transaction():
                session = Session.objects.awaiting_purge().filter(pk=session_id).first()
                if session is None:
                    return True
                if not purge_batch(session, batch=batch, now=timezone.now()):
                    session.save(update_fields=["purged_at"])
                    return True
        return False

    def settle(self, *, session_id: str, now: datetime | None = None) -> SessionStatus:
        """Write down what has lapsed (the sweep's call); returns the status afterwards."""
        with settled_session(session_id, actor=self.actor, now=now) as (session, _):
            return SessionStatus(session.status)

    # --- for every write -----------------------------------------------------------------------

    @contextmanager
    def _active(
        self, session_id: str, now: datetime | None, if_match: int | None = None
    ) -> Iterator[tuple[Session, datetime]]:
        with settled_session(session_id, actor=self.actor, now=now, if_match=if_match) as (
            session,
            moment,
        ):
            require_active(session)
            yield session, moment

    def _move(
        self,
        session_id: str,
        to: SessionStatus,
        reason: str | None,
        if_match: int | None,
        now: datetime | None,
    ) -> tuple[Session, bool]:
        cleaned = clean_reason(reason)
        with settled_session(session_id, actor=self.actor, now=now, if_match=if_match) as (
            session,
            moment,
        ):
            if session.status == to:
                return session, False
            move(session, to, actor=self.actor, reason=cleaned, now=moment)
            return session, True
