"""A session as lines of JSON: the format, written. `parts` reads it.

Names are those of the REST API. A message is wrapped, so that what the client sent is copied as it
is stored; JSON that a tool call does not have is absent, where null is a value.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import orjson

from sessions_app.jsontext import JSONText
from sessions_app.models import Session, SessionEvent, ToolCall, WorkingMemoryRevision
from sessions_app.services.tool_calls import error_of
from sessions_app.states import effective_status
from sessions_app.timestamps import rfc3339
from sessions_app.usage import usage_of

from ...models import Run
from ...states import UNFINISHED
from ...states import effective_status as effective_run_status
from .contents import Contents

FORMAT, VERSION = "dossier.export", 1
# The kinds in their order, by what their ``object`` says, as the last line counts them.
KINDS = {
    "run": "runs",
    "message": "messages",
    "tool_call": "tool_calls",
    "memory_revision": "memory_revisions",
    "event": "events",
}
END = "dossier.end"


def ndjson(contents: Contents) -> Iterator[bytes]:
    """The whole file, line by line. Without its last line it is known to be cut off."""
    session = contents.session
    counted: Counter[str] = Counter()
    yield _line({"object": FORMAT, "version": VERSION, "session_id": session.session_id})
    yield _line(_session(session, contents.now))
    for fields in _parts(contents):
        counted[fields["object"]] += 1
        yield _line(fields)
    yield _line({"object": END, **{name: counted[kind] for kind, name in KINDS.items()}})


def _parts(contents: Contents) -> Iterator[dict[str, Any]]:
    for run in contents.runs():
        yield _run(run, contents.now)
    for message in contents.messages():
        body = message.pop("body")
        yield {"object": "message", **message, "message": body}
    for call in contents.tool_calls():
        yield _tool_call(call)
    for revision in contents.memory_revisions():
        yield _revision(revision)
    for event in contents.events():
        yield _event(event)


def _session(session: Session, now: datetime) -> dict[str, Any]:
    """As it is at this moment, whether or not time was settled."""
    status = effective_status(session.status, expires_at=session.expires_at, now=now)
    return {
        "object": "session",
        "session_id": session.session_id,
        "external_id": session.external_id,
        "agent_id": session.agent_id,
        "user_id": session.user_id,
        "title": session.title,
        "title_is_said": session.title_is_said,
        "status": status.value,
        "metadata": session.metadata,
        "version": session.version,
        "last_sequence": session.last_sequence,
        "message_count": session.message_count,
        "tool_call_count": session.tool_call_count,
        "open_tool_call_count": session.open_tool_call_count,
        "run_count": session.run_count,
        "working_memory_version": session.working_memory_version,
        "usage": usage_of(session),
        "idle_timeout_seconds": session.idle_timeout_seconds,
        "expires_at": session.expires_at,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "last_activity_at": session.last_activity_at,
        "closed_at": session.closed_at,
        "expired_at": session.expired_at if status == session.status else session.expires_at,
        "parent_session_id": session.parent_session_id,
        "forked_at_sequence": session.forked_at_sequence,
        "imported_from": session.imported_from,
    }


def _run(run: Run, now: datetime) -> dict[str, Any]:
    status = effective_run_status(run.status, deadline=run.deadline, now=now)
    return {
        "object": "run",
        "run_id": run.run_id,
        "parent_run_id": run.parent_run_id,
        "retry_of": run.retry_of_id,
        "agent_id": run.agent_id,
        "model": run.model,
        "status": status.value,
        "attempt": run.attempt,
        "lease_seconds": run.lease_seconds,
        "lease_expires_at": run.lease if status in UNFINISHED else None,
        "heartbeat_at": run.seen_at,
        "wait_reason": run.wait_reason,
        "cancel_reason": run.cancel_reason,
        "usage": usage_of(run),
        "session_version": run.session_version,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at if status == run.status else run.deadline,
        "metadata": run.metadata,
        "input": run.input,
        "output": run.output,
        "error": run.error,
    }


def _tool_call(call: ToolCall) -> dict[str, Any]:
    given = {"arguments": call.arguments, "result": call.result}
    return {
        "object": "tool_call",
        "id": call.id,
        "run_id": call.run_id,
        "tool_call_id": call.tool_call_id,
        "name": call.name,
        "status": call.status,
        "error": error_of(call),
        "message_sequence": call.message_sequence,
        "result_sequence": call.result_sequence,
        "session_version": call.session_version,
        "created_at": call.created_at,
        "started_at": call.started_at,
        "finished_at": call.finished_at,
        "duration_ms": call.duration_ms,
        "superseded_at": call.superseded_at,
        **{name: text for name, text in given.items() if text is not None},
    }


def _revision(revision: WorkingMemoryRevision) -> dict[str, Any]:
    return {
        "object": "memory_revision",
        "version": revision.version,
        "sequence": revision.sequence,
        "run_id": revision.run_id,
        "actor": {"type": revision.actor_type, "id": revision.actor_id},
        "session_version": revision.session_version,
        "created_at": revision.created_at,
        "working_memory": revision.memory,
    }


def _event(event: SessionEvent) -> dict[str, Any]:
    return {
        "object": "event",
        "event_id": event.event_id,
        "sequence": event.sequence,
        "subject": event.subject,
        "subject_id": event.subject_id,
        "from_status": event.from_status,
        "to_status": event.to_status,
        "actor": {"type": event.actor_type, "id": event.actor_id},
        "reason": event.reason,
        "session_version": event.session_version,
        "created_at": event.created_at,
    }


def _line(fields: dict[str, Any]) -> bytes:
    return orjson.dumps(
        fields, default=_encoded, option=orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_APPEND_NEWLINE
    )


def _encoded(value: Any) -> Any:
    if isinstance(value, JSONText):
        return orjson.Fragment(value.text)
    if isinstance(value, datetime):
        return rfc3339(value)
    raise TypeError(type(value).__name__)
