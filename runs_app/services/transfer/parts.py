"""Each line of a file as the row that it becomes: the format, read. `lines` writes it."""

from datetime import datetime
from typing import Any, cast

from sessions_app.jsontext import JSONText
from sessions_app.models import Message, Session, SessionEvent, ToolCall, WorkingMemoryRevision
from sessions_app.services.compacting import COMPACTION
from sessions_app.services.creation import MAX_IDLE_TIMEOUT
from sessions_app.services.drafts import MAX_ITEM_TYPE, ROLES, Draft, draft_message
from sessions_app.services.lifecycle import MAX_REASON
from sessions_app.services.memory import complete_memory, encode_memory
from sessions_app.services.metadata import encode_metadata
from sessions_app.services.pairing import MAX_TOOL_CALL_ID, MAX_TOOL_NAME
from sessions_app.services.recording import MAX_ERROR_MESSAGE, MAX_ERROR_TYPE
from sessions_app.states import (
    ActorType,
    SessionStatus,
    Subject,
    ToolCallStatus,
)
from sessions_app.usage import Usage
from sessions_app.writes import new_row

from ...models import Run
from ...states import RunStatus
from ..creation import MAX_LEASE, MIN_LEASE
from .fitting import check_state_of_call, check_times_of_run, keep_time_of_status, run_error
from .reading import Fields
from .scratch import Scratch

_NAME, _TITLE = 255, 500
_STATUSES = tuple(status for status in SessionStatus if status != SessionStatus.DELETED)
# What an event may say that something became, by what it is about; null: it was made, or unmade.
_BECAME = {
    Subject.SESSION: frozenset(_STATUSES),
    Subject.RUN: frozenset(RunStatus),
    Subject.TOOL_CALL: frozenset(ToolCallStatus),
}
_LONGEST_CHANGE = 11
_IDS_OF = {
    Subject.SESSION: ("sess",),
    Subject.RUN: ("run",),
    Subject.TOOL_CALL: ("call",),
    Subject.CONTENT: ("msg", "sess"),
}
# Of messages that this server makes: their type is not told by what they hold.
_MADE_TYPES = frozenset({COMPACTION})


class Parts:
    """Makes rows of lines, for one new session; ``latest`` is the last moment that has been."""

    def __init__(self, scratch: Scratch, *, session_id: str, latest: datetime) -> None:
        self.scratch, self.session_id, self.latest = scratch, session_id, latest
        self.version = 1
        self._item_ids: set[str] = set()

    def session(self, fields: Fields) -> Session:
        """The session's row, but for what is counted."""
        metadata = encode_metadata(fields.take("metadata"))
        title = fields.maybe_text("title", longest=_TITLE)
        # A file that does not say so is older: who may not read sees no title then.
        is_said = fields.flag("title_is_said", absent=True)
        session = new_row(
            Session,
            session_id=self.session_id,
            external_id=fields.maybe_text("external_id", longest=_NAME),
            agent_id=fields.maybe_text("agent_id", longest=_NAME),
            user_id=fields.maybe_text("user_id", longest=_NAME),
            title=title,
            title_is_said=bool(title) and is_said,
            status=fields.one_of("status", _STATUSES),
            metadata=metadata,
            version=fields.number("version", low=1),
            idle_timeout_seconds=fields.maybe_number(
                "idle_timeout_seconds", low=1, high=MAX_IDLE_TIMEOUT
            ),
            expires_at=fields.maybe_moment("expires_at"),
            created_at=self._past(fields, "created_at"),
            updated_at=self._past(fields, "updated_at"),
            last_activity_at=self._past(fields, "last_activity_at"),
            closed_at=self._maybe_past(fields, "closed_at"),
            expired_at=self._maybe_past(fields, "expired_at"),
            parent_session_id=fields.maybe_id("parent_session_id", "sess"),
            forked_at_sequence=fields.maybe_number("forked_at_sequence"),
        )
        fields.maybe_text("imported_from", longest=_NAME)
        Usage.of_total(fields.take("usage"), pointer="/usage").store(session)
        self.version = session.version
        keep_time_of_status(session, fields)
        return session

    def run(self, fields: Fields) -> Run:
        run_id = fields.id("run_id", "run")
        run = new_row(
            Run,
            run_id=self.scratch.rename(run_id, "/run_id"),
            session_id=self.session_id,
            # Names of the file until all runs are known: one may come before its parent.
            parent_run_id=fields.maybe_id("parent_run_id", "run"),
            retry_of_id=fields.maybe_id("retry_of", "run"),
            agent_id=fields.maybe_text("agent_id", longest=_NAME),
            model=fields.maybe_text("model", longest=_NAME),
            status=fields.one_of("status", RunStatus),
            attempt=fields.number("attempt"),
            lease_seconds=fields.number("lease_seconds", low=MIN_LEASE, high=MAX_LEASE),
            lease_expires_at=fields.maybe_moment("lease_expires_at"),
            heartbeat_at=self._maybe_past(fields, "heartbeat_at"),
            wait_reason=fields.maybe_text("wait_reason", longest=MAX_REASON),
            cancel_reason=fields.maybe_text("cancel_reason", longest=MAX_REASON),
            session_version=self._version(fields),
            created_at=self._past(fields, "created_at"),
            started_at=self._maybe_past(fields, "started_at"),
            ended_at=self._maybe_past(fields, "ended_at"),
            metadata=encode_metadata(fields.take("metadata")),
            input=_not_null(fields.json("input")),
            output=_not_null(fields.json("output")),
            error=run_error(fields),
        )
        Usage.of_total(fields.take("usage"), pointer="/usage").store(run)
        run.size = run.content_size
        check_times_of_run(run, fields)
        return run

    def message(self, fields: Fields) -> tuple[Message, Draft | None]:
        """The row, and what its body says; None of one that was removed, whose body is empty."""
        message_id = fields.id("message_id", "msg")
        removed_at = self._maybe_past(fields, "removed_at")
        role = fields.one_of("role", (*ROLES, None))
        kind = fields.text("type", longest=MAX_ITEM_TYPE)
        client_message_id = fields.maybe_text("client_message_id", longest=_NAME)
        body = fields.take("message")
        draft = None if removed_at is not None and body == {} else _drafted(body, fields)
        if draft is not None and (role, client_message_id) != (draft.role, draft.client_message_id):
            raise fields.refusal("message", "has another role or client_message_id than its line")
        if draft is not None and kind != draft.type and kind not in _MADE_TYPES:
            raise fields.refusal("type", f"must be {draft.type[:80]}")
        text = JSONText("{}") if draft is None else draft.body
        message = new_row(
            Message,
            message_id=self.scratch.rename(message_id, "/message_id"),
            session_id=self.session_id,
            sequence=fields.number("sequence", low=1),
            role=role,
            type=kind,
            body=text,
            size=len(text),
            text="" if draft is None else draft.text,
            client_message_id=client_message_id,
            run_id=self._run_of(fields),
            session_version=self._version(fields),
            added_version=fields.maybe_number("added_version", low=1, high=self.version),
            created_at=self._past(fields, "created_at"),
            removed_at=removed_at,
            superseded_at=self._maybe_past(fields, "superseded_at"),
        )
        if draft is not None:
            message.item_id = self._item_id(draft, is_live=message.superseded_at is None)
        if draft is not None and kind != draft.type:  # a compaction of ours, and not an item
            message.through_sequence = _through(message, fields)
        return message, draft

    def _item_id(self, draft: Draft, *, is_live: bool) -> str | None:
        """The id of the item, of those that are shown once: see `naming.with_new_ids`."""
        found = draft.item_id
        if found is None or not is_live:
            return found
        is_known = found in self._item_ids
        self._item_ids.add(found)
        return None if is_known else found

    def tool_call(self, fields: Fields) -> ToolCall:
        error = fields.object("error", null=True)
        call = new_row(
            ToolCall,
            id=self.scratch.rename(fields.id("id", "call"), "/id"),
            session_id=self.session_id,
            run_id=self._run_of(fields),
            tool_call_id=fields.maybe_text("tool_call_id", longest=MAX_TOOL_CALL_ID),
            name=fields.text("name", longest=MAX_TOOL_NAME),
            arguments=fields.json("arguments"),
            status=fields.one_of("status", ToolCallStatus),
            result=fields.json("result"),
            error_type=error and error.maybe_text("type", longest=MAX_ERROR_TYPE),
            error_message=error and error.maybe_text("message", longest=MAX_ERROR_MESSAGE),
            message_sequence=fields.maybe_number("message_sequence", low=1),
            result_sequence=fields.maybe_number("result_sequence", low=1),
            session_version=self._version(fields),
            created_at=self._past(fields, "created_at"),
            started_at=self._maybe_past(fields, "started_at"),
            finished_at=self._maybe_past(fields, "finished_at"),
            duration_ms=fields.maybe_number("duration_ms"),
            superseded_at=self._maybe_past(fields, "superseded_at"),
        )
        if error is not None:
            error.end()
        call.size = len(call.arguments or "") + len(call.result or "")
        check_state_of_call(call, fields)
        return call

    def memory_revision(self, fields: Fields) -> WorkingMemoryRevision:
        document = complete_memory(fields.take("working_memory"), pointer="/working_memory")
        return new_row(
            WorkingMemoryRevision,
            session_id=self.session_id,
            version=fields.number("version", low=1),
            memory=encode_memory(document),
            sequence=fields.number("sequence"),
            run_id=self._run_of(fields),
            **_actor(fields),
            session_version=self._version(fields),
            created_at=self._past(fields, "created_at"),
        )

    def event(self, fields: Fields) -> SessionEvent:
        subject = Subject(fields.one_of("subject", Subject))
        return new_row(
            SessionEvent,
            event_id=self.scratch.rename(fields.id("event_id", "evt"), "/event_id"),
            session_id=self.session_id,
            sequence=fields.number("sequence", low=1),
            subject=subject.value,
            subject_id=self._subject(fields, subject),
            from_status=_change(fields, "from_status", subject),
            to_status=_change(fields, "to_status", subject),
            **_actor(fields),
            reason=fields.maybe_text("reason", longest=MAX_REASON) or "",
            session_version=self._version(fields),
            created_at=self._past(fields, "created_at"),
        )

    # --- members that several have ---

    def _past(self, fields: Fields, name: str) -> datetime:
        return fields.past(name, latest=self.latest)

    def _maybe_past(self, fields: Fields, name: str) -> datetime | None:
        return fields.maybe_past(name, latest=self.latest)

    def _version(self, fields: Fields) -> int:
        return fields.number("session_version", low=1, high=self.version)

    def _run_of(self, fields: Fields) -> str | None:
        return self._known(fields, "run_id", fields.maybe_id("run_id", "run"))

    def _known(self, fields: Fields, name: str, old: str | None) -> str | None:
        new = self.scratch.renamed(old)
        if old is not None and new is None:
            raise fields.refusal(name, f"{old} is not in this file")
        return new

    def _subject(self, fields: Fields, subject: Subject) -> str:
        old = fields.id("subject_id", *_IDS_OF[subject])
        # A call that was settled may have gone since, with the message that had made it; a fork is
        # in no file but its own.
        is_fork = subject == Subject.CONTENT and old.startswith("sess_")
        elsewhere = is_fork or subject == Subject.TOOL_CALL
        if elsewhere and self.scratch.renamed(old) is None:
            return self.scratch.rename(old, "/subject_id")
        return cast(str, self._known(fields, "subject_id", old))


def _drafted(body: Any, fields: Fields) -> Draft:
    """What an append makes of the same message, so that no other than that is ever stored."""
    if not isinstance(body, dict):
        raise fields.refusal("message", "must be an object")
    given = dict(body)
    if "client_created_at" in given:
        given["created_at"] = given.pop("client_created_at")
    return draft_message(given, pointer="/message")


def _through(message: Message, fields: Fields) -> int:
    """Up to where a summary stands for what was said before it."""
    through = message.body.value.get("through_sequence")
    if type(through) is not int or not 0 < through < message.sequence:
        raise fields.refusal("message", "must have a through_sequence before its own")
    return through


def _not_null(text: JSONText | None) -> JSONText | None:
    return None if text is None or text.text == "null" else text


def _actor(fields: Fields) -> dict[str, str]:
    actor = cast(Fields, fields.object("actor"))
    kind, name = actor.one_of("type", ActorType), actor.text("id", longest=_NAME)
    actor.end()
    return {"actor_type": kind, "actor_id": name}


def _change(fields: Fields, name: str, subject: Subject) -> str | None:
    became = _BECAME.get(subject)
    if became is None:
        return fields.maybe_text(name, longest=_LONGEST_CHANGE)
    return cast("str | None", fields.one_of(name, (*sorted(became), None)))
