"""What clients see of a row: each kind of object takes its shape here, and only here.

Nothing here is a serializer: a page may hold a thousand messages, and client JSON is copied as it
stands. The schema describes these shapes in `shapes`; a test holds the two together.
"""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sessions_app.jsontext import JSONText
from sessions_app.models import Message, Session, SessionEvent, ToolCall, WorkingMemoryRevision
from sessions_app.rows import MessageRow, SessionRow, ToolCallRow
from sessions_app.services.hits import Hit
from sessions_app.services.tool_calls import error_of
from sessions_app.states import SessionStatus, effective_status
from sessions_app.timestamps import instant, rfc3339
from sessions_app.usage import usage_of

# How nearly every message begins: what it holds is known without parsing it.
_USUAL = re.compile(r'\{"role":"[a-z]+","content":')


def represent_session(
    session: Session | SessionRow,
    memory: JSONText | None,
    now: datetime,
    *,
    open_tool_calls: Sequence[str] = (),
) -> dict[str, Any]:
    """The session as it is at this moment; without ``memory`` as it stands in lists.

    ``open_tool_calls`` are the first hundred ids of open calls.
    """
    status = _status_of(session, now)
    expired_at = session.expired_at if status == session.status else session.expires_at
    return {
        "object": "session",
        "session_id": session.session_id,
        "external_id": session.external_id,
        "agent_id": session.agent_id,
        "user_id": session.user_id,
        "title": session.title,
        "status": status,
        "metadata": session.metadata,
        **({} if memory is None else {"working_memory": memory}),
        "working_memory_version": session.working_memory_version,
        "version": session.version,
        "last_sequence": session.last_sequence,
        "message_count": session.message_count,
        "tool_call_count": session.tool_call_count,
        "run_count": session.run_count,
        "open_tool_call_count": session.open_tool_call_count,
        **({} if memory is None else {"open_tool_calls": list(open_tool_calls)}),
        "active_run_id": session.active_run_id if run_is_alive(session, status, now) else None,
        "usage": usage_of(session),
        "idle_timeout_seconds": session.idle_timeout_seconds,
        "expires_at": session.expires_at and rfc3339(session.expires_at),
        "created_at": rfc3339(session.created_at),
        "updated_at": rfc3339(session.updated_at),
        "last_activity_at": rfc3339(session.last_activity_at),
        "closed_at": session.closed_at and rfc3339(session.closed_at),
        "expired_at": expired_at and rfc3339(expired_at),
        "deleted_at": session.deleted_at and rfc3339(session.deleted_at),
        "parent_session_id": session.parent_session_id,
        "forked_at_sequence": session.forked_at_sequence,
        "imported_from": session.imported_from,
    }


def is_settled(session: Session, now: datetime) -> bool:
    """Whether the row says what a reader sees now: no deadline has passed unnoticed."""
    status = _status_of(session, now)
    run_is_gone = session.active_run_id is not None and not run_is_alive(session, status, now)
    return status == session.status and not run_is_gone


def represent_message(message: Message | MessageRow) -> JSONText:
    """The message as it was sent, and what the server gave it.

    The stored text is copied, not parsed: what was sent comes back byte for byte. Ours is written
    as text, too: a page holds a thousand of them, and none of these values needs an escape but
    the type.
    """
    run_id = f'"{message.run_id}"' if message.run_id else "null"
    kind = message.type if message.type == "message" else json.dumps(message.type)[1:-1]
    given = (
        f'{{"object":"message","message_id":"{message.message_id}",'
        f'"session_id":"{message.session_id}","sequence":{message.sequence},"type":"{kind}",'
        f'"run_id":{run_id},"session_version":{message.session_version},'
        f'"created_at":"{rfc3339(message.created_at)}"'
    )
    if message.removed_at is not None:
        given += f',"removed_at":"{rfc3339(message.removed_at)}"'
    if message.superseded_at is not None:
        given += f',"superseded_at":"{rfc3339(message.superseded_at)}"'
    text = message.body.text
    if _USUAL.match(text) and '"status":' not in text:
        return JSONText(f'{given},"status":"completed",{text[1:]}')
    sent = message.body.value
    if "role" not in sent:
        given += f',"role":"{message.role}"' if message.role else ',"role":null'
    given += "" if "status" in sent else ',"status":"completed"'
    given += "" if "content" in sent else ',"content":null'
    return JSONText(f"{given}}}" if text == "{}" else f"{given},{text[1:]}")


def represent_messages(messages: Iterable[Message | MessageRow]) -> JSONText:
    """A list of them."""
    return JSONText(f"[{','.join(represent_message(message).text for message in messages)}]")


def reference_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Messages by their names only, for ``Prefer: return=minimal``."""
    return [{"message_id": each.message_id, "sequence": each.sequence} for each in messages]


def represent_tool_call(
    call: ToolCall | ToolCallRow, *, with_values: bool = True
) -> dict[str, Any]:
    """Without its values (arguments and result) where these stand beside it."""
    return {
        "object": "tool_call",
        "id": call.id,
        "session_id": call.session_id,
        "run_id": call.run_id,
        "tool_call_id": call.tool_call_id,
        "name": call.name,
        **({"arguments": call.arguments} if with_values else {}),
        "status": str(call.status),
        **({"result": call.result} if with_values else {}),
        "error": error_of(call),
        "message_sequence": call.message_sequence,
        "result_sequence": call.result_sequence,
        "started_at": call.started_at and rfc3339(call.started_at),
        "finished_at": call.finished_at and rfc3339(call.finished_at),
        "duration_ms": call.duration_ms,
        "session_version": call.session_version,
        **({"superseded_at": rfc3339(call.superseded_at)} if call.superseded_at else {}),
    }


def represent_hit(hit: Hit) -> dict[str, Any]:
    message = hit.message
    return {
        "object": "search_hit",
        "kind": hit.kind,
        "session_id": hit.session_id,
        "title": hit.title,
        "message_id": message and message.message_id,
        "sequence": message and message.sequence,
        "role": message and message.role,
        "tool_call_id": hit.call_id,
        "snippet": [{"text": text, "marked": marked} for text, marked in hit.snippet],
        "created_at": hit.created_at,
    }


def represent_event(event: SessionEvent) -> dict[str, Any]:
    return {
        "object": "event",
        "event_id": event.event_id,
        "session_id": event.session_id,
        "sequence": event.sequence,
        "subject": event.subject,
        "subject_id": event.subject_id,
        "from_status": event.from_status,
        "to_status": event.to_status,
        "actor": {"type": event.actor_type, "id": event.actor_id},
        "reason": event.reason or None,
        "session_version": event.session_version,
        "created_at": event.created_at,
    }


def represent_memory(session_id: str, version: int, memory: JSONText) -> JSONText:
    """The document's seven fields, and its version."""
    owned = {"object": "working_memory", "session_id": session_id, "version": version}
    return joined(owned, memory)


def represent_revision(revision: WorkingMemoryRevision) -> dict[str, Any]:
    """Who wrote it, in which run, after which message, and when; without the document."""
    return {
        "object": "working_memory_revision",
        "session_id": revision.session_id,
        "version": revision.version,
        "run_id": revision.run_id,
        "sequence": revision.sequence,
        "actor": {"type": revision.actor_type, "id": revision.actor_id},
        "session_version": revision.session_version,
        "created_at": revision.created_at,
    }


def joined(given: dict[str, Any], body: JSONText) -> JSONText:
    """One object of ours and of a stored one that shares no key with it."""
    head = JSONText.of(given).text
    return JSONText(head if body.text == "{}" else f"{head[:-1]},{body.text[1:]}")


def _status_of(session: Session | SessionRow, now: datetime) -> str:
    expires_at = instant(session.expires_at)
    if expires_at is None:  # as nearly every row of a list; an enum costs more than all else here
        return session.status
    return effective_status(session.status, expires_at=expires_at, now=now).value


def run_is_alive(session: Session | SessionRow, status: str, now: datetime) -> bool:
    """Whether a run goes on in a session of this effective status."""
    if session.active_run_id is None:
        return False
    deadline = instant(session.active_run_deadline)
    return status == SessionStatus.ACTIVE and (deadline is None or deadline > now)
