"""SessionManager: the only writer of session state."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from ..jsontext import JSONText
from ..models import Message, Session, ToolCall
from ..states import SessionStatus
from . import memory, recording
from . import messages as _messages
from .creation import NewSession, SessionChanges, change, create
from .lifecycle import clean_reason, move, settle
from .locking import locked_session, require_active, write_transaction
from .purge import blank, purge_batch
from .reading import SessionReader


class SessionManager(SessionReader):
    """Everything that can be done to a session, for one actor.

    Each method is one transaction: it locks the session's row, settles what has lapsed, checks,
    writes, and records the lifecycle event. ``now`` is for whoever must fix the moment; left out,
    it is the clock's, read once the lock is held. ``if_match`` is a version to compare first.

    Every method raises NotFound for what the actor may not see, SessionDeleted for a tombstone,
    and (unless it says otherwise) SessionClosed or SessionExpired when the session is not ACTIVE.
    """

    # --- lifecycle -----------------------------------------------------------------------------

    def create(self, new: NewSession, *, now: datetime | None = None) -> tuple[Session, bool]:
        """Create a session of the actor's account; tell whether it is new.

        Raises:
            AlreadyExists: the external id is taken and ``if_exists`` is ``error``.
            InvalidRequest, PayloadTooLarge: by what the contract says of the fields.
        """
        with write_transaction():
            return create(new, actor=self.actor, now=now or timezone.now())

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
        with self._locked(session_id, now, if_match) as (session, moment):
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
        with self._locked(session_id, now, if_match) as (session, moment):
            move(session, SessionStatus.DELETED, actor=self.actor, reason=cleaned, now=moment)
            blank(session)
            transaction.on_commit(partial(self.purge, session_id=session_id), robust=True)
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
        with self._locked(session_id, now) as (session, _):
            return SessionStatus(session.status)

    # --- messages ------------------------------------------------------------------------------

    def append(
        self,
        *,
        session_id: str,
        messages: Sequence[Mapping[str, Any]],
        run_id: str | None = None,
        attempt: int | None = None,
        expected_last_sequence: int | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
        pointer: str | None = "/messages",
    ) -> _messages.Appended:
        """Store messages in their order, all or none, and tie their tool calls and results.

        ``pointer`` names the list in errors; None: there is one message, and it is the body.

        Raises:
            InvalidRequest, PayloadTooLarge: a message or the batch is not acceptable.
            ClientMessageIdReused, SequenceMismatch, OrphanToolResult: nothing is stored.
            RunSuperseded, RunEnded, RunInterrupted: the run may not write.
        """
        drafts = _messages.draft_messages(messages, pointer=pointer)
        with self._active(session_id, now, if_match) as (session, moment):
            return _messages.append(
                session,
                drafts,
                run_id=run_id,
                attempt=attempt,
                expected_last_sequence=expected_last_sequence,
                now=moment,
            )

    def remove_message(
        self,
        *,
        session_id: str,
        sequence: int,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> None:
        """Purge one message's content.

        Raises:
            HasResult: it made a tool call that has a result.
        """
        with self._active(session_id, now, if_match) as (session, moment):
            _messages.remove(session, sequence, actor=self.actor, now=moment)

    def pop_messages(
        self,
        *,
        session_id: str,
        turn: bool = False,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> tuple[Session, list[Message]]:
        """Remove the newest message, or the newest user turn, and return what was removed."""
        with self._active(session_id, now, if_match) as (session, moment):
            return session, _messages.pop(session, turn=turn, actor=self.actor, now=moment)

    # --- working memory ------------------------------------------------------------------------

    def replace_memory(
        self,
        *,
        session_id: str,
        document: Any,
        run_id: str | None = None,
        attempt: int | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> tuple[Session, JSONText]:
        """Write the whole working memory; ``if_match`` is the memory's own version.

        Raises:
            InvalidRequest, PayloadTooLarge: the document is not acceptable.
        """
        whole = memory.complete_memory(document)
        with self._active(session_id, now) as (session, moment):
            memory.check_memory_version(session, if_match)
            return self._store_memory(session, whole, run_id, attempt, moment)

    def patch_memory(
        self,
        *,
        session_id: str,
        patch: Any,
        run_id: str | None = None,
        attempt: int | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> tuple[Session, JSONText]:
        """Merge into the working memory under the lock, so that patches of different keys all
        survive (report CON-07); ``if_match`` is the memory's own version.

        Raises:
            InvalidRequest, PayloadTooLarge: the patch or its outcome is not acceptable.
        """
        with self._active(session_id, now) as (session, moment):
            memory.check_memory_version(session, if_match)
            merged = memory.merge_memory(memory.current_memory(session).value, patch)
            return self._store_memory(session, merged, run_id, attempt, moment)

    # --- tool calls ----------------------------------------------------------------------------

    def start_tool_call(
        self,
        *,
        session_id: str,
        name: str,
        arguments: Any = None,
        tool_call_id: str | None = None,
        run_id: str | None = None,
        attempt: int | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> tuple[ToolCall, bool]:
        """Record that a tool starts, or that a call made by a message does; tell if it is new."""
        start = recording.Start(name=name, arguments=arguments, tool_call_id=tool_call_id)
        with self._active(session_id, now, if_match) as (session, moment):
            return recording.start(session, start, run_id=run_id, attempt=attempt, now=moment)

    def finish_tool_call(
        self,
        *,
        id: str,
        outcome: recording.Outcome,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> ToolCall:
        """Record how a tool ended; a final status stays, and what it lacks is filled in."""
        with self._active(self.tool_call(id=id).session_id, now, if_match) as (session, moment):
            return recording.finish_call(session, id, outcome, now=moment)

    def settle_tool_call(
        self,
        *,
        id: str,
        reason: str | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> tuple[ToolCall, bool]:
        """Close an unanswered call, once; tell whether it changed.

        Raises:
            InvalidTransition: it has a result.
        """
        with self._active(self.tool_call(id=id).session_id, now, if_match) as (session, moment):
            return recording.settle_call(
                session, id, actor=self.actor, reason=clean_reason(reason), now=moment
            )

    # --- inside --------------------------------------------------------------------------------

    @contextmanager
    def _locked(
        self, session_id: str, now: datetime | None, if_match: int | None = None
    ) -> Iterator[tuple[Session, datetime]]:
        with locked_session(session_id, actor=self.actor, if_match=if_match) as session:
            moment = now or timezone.now()
            settle(session, now=moment)
            yield session, moment

    @contextmanager
    def _active(
        self, session_id: str, now: datetime | None, if_match: int | None = None
    ) -> Iterator[tuple[Session, datetime]]:
        with self._locked(session_id, now, if_match) as (session, moment):
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
        with self._locked(session_id, now, if_match) as (session, moment):
            if session.status == to:
                return session, False
            move(session, to, actor=self.actor, reason=cleaned, now=moment)
            return session, True

    def _store_memory(
        self,
        session: Session,
        document: Mapping[str, Any],
        run_id: str | None,
        attempt: int | None,
        now: datetime,
    ) -> tuple[Session, JSONText]:
        revision = memory.store_memory(
            session, document, actor=self.actor, run_id=run_id, attempt=attempt, now=now
        )
        return session, revision.memory
