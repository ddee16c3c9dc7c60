"""SessionManager: the only writer of session state."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from ..actors import EVERY_ACCOUNT
from ..jsontext import JSONText
from ..models import Message, Session, ToolCall
from . import compacting, memory, recording
from . import messages as _messages
from .drafts import Draft
from .idempotency import Write
from .lifecycle import clean_reason
from .lifetime import SessionLifetime
from .naming import with_new_ids
from .plain_append import Kept, append_plainly, is_plain
from .removal import pop, remove
from .rewinding import rewind


class SessionManager(SessionLifetime):
    """Everything that can be done to a session, for one actor: reading (`SessionReader`), its life
    (`SessionLifetime`), and here what it holds.

    Every method here raises NotFound for what the actor may not see, SessionDeleted for a
    tombstone, SessionClosed or SessionExpired when the session is not ACTIVE, and VersionMismatch
    when ``if_match`` is another version. Then nothing is stored.
    """

    # --- messages ------------------------------------------------------------------------------

    def append(
        self,
        *,
        session_id: str,
        messages: Sequence[Mapping[str, Any] | Draft],
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
                with_new_ids(session, drafts),
                run_id=run_id,
                attempt=attempt,
                expected_last_sequence=expected_last_sequence,
                now=moment,
            )

    def append_plainly(
        self,
        *,
        session_id: str,
        messages: Sequence[Draft],
        run_id: str | None = None,
        attempt: int | None = None,
        expected_last_sequence: int | None = None,
        write: Write | None = None,
        kept: Kept = str,
    ) -> _messages.Appended | None:
        """What `append` does, at once and with the record of ``write``, where nothing is to be
        decided; None: nothing was done, and it is for `append` to say why.

        See `plain_append`.
        """
        needs_judgement = (run_id, attempt, expected_last_sequence) != (None, None, None)
        if needs_judgement or self.actor.write_scope is EVERY_ACCOUNT or not is_plain(messages):
            return None
        return append_plainly(
            session_id,
            messages,
            account_id=self.actor.write_scope,
            now=timezone.now(),
            write=write,
            kept=kept,
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
            remove(session, sequence, actor=self.actor, now=moment)

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
            return session, pop(session, turn=turn, actor=self.actor, now=moment)

    def rewind(
        self,
        *,
        session_id: str,
        to_sequence: int,
        reason: str | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> tuple[Session, int, bool]:
        """Supersede all messages after one, and bring the working memory of that time back.

        Returns the session, the newest message that is left, and whether it changed.

        Raises:
            InvalidRequest: the history has not come so far.
        """
        cleaned = clean_reason(reason)
        with self._active(session_id, now, if_match) as (session, moment):
            cut = rewind(session, to_sequence, actor=self.actor, reason=cleaned, now=moment)
            return session, *cut

    def compact(
        self,
        *,
        session_id: str,
        through_sequence: int,
        summary: str,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> Message:
        """Let a summary stand in the context for all messages up to one; returns its message.

        Raises:
            InvalidRequest: it is blank, or there is nothing that it could stand for.
        """
        checked = compacting.check_summary(summary)
        with self._active(session_id, now, if_match) as (session, moment):
            return compacting.compact(session, through_sequence, checked, now=moment)

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
