"""Tools that the agent records by itself; they also enrich the calls that messages made."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F

from ..actors import Actor
from ..errors import InvalidRequest, InvalidTransition, NotFound
from ..ids import new_id
from ..jsontext import JSONText, clean_text
from ..models import Session, ToolCall
from ..states import FINAL_TOOL_CALLS, Subject, ToolCallStatus
from .fencing import fence
from .lifecycle import record_event
from .locking import touch
from .notes import note_calls
from .pairing import MAX_TOOL_NAME, check_tool_call_id
from .search import index_call
from .tool_calls import finish, move_call

MAX_DURATION_MS = 10**12
MAX_ERROR_TYPE = 255
# A page's size counts arguments and results; what it does not count must be small.
MAX_ERROR_MESSAGE = 4000


@dataclass(frozen=True, slots=True)
class Start:
    """That a tool starts."""

    name: str
    arguments: Any = None
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a tool ended. ``result`` is any JSON, and ``has_result`` tells null from nothing."""

    status: ToolCallStatus
    result: Any = None
    has_result: bool = False
    error: Mapping[str, Any] | None = None
    duration_ms: int | None = None


def start(
    session: Session, given: Start, *, run_id: str | None, attempt: int | None, now: datetime
) -> tuple[ToolCall, bool]:
    """Record a start: of the call that a message made under this id, else of a new one.

    A late or repeated start never reopens a call that has ended.
    """
    name, tool_call_id = _check_start(given)
    arguments = None if given.arguments is None else JSONText.of(given.arguments)
    fence(session, run_id=run_id, attempt=attempt, now=now)
    version = touch(session, now=now)
    call = _announced(session, tool_call_id)
    if call is None:
        call = ToolCall(
            id=new_id("call"),
            session=session,
            run_id=run_id,
            tool_call_id=tool_call_id,
            name=name,
            arguments=arguments,
            size=len(arguments or ""),
            created_at=now,
        )
        session.tool_call_count += 1
        session.open_tool_call_count += 1
    is_new = call._state.adding
    call.run_id = call.run_id or run_id
    if call.status == ToolCallStatus.PENDING:
        move_call(session, call, ToolCallStatus.RUNNING)
        call.started_at = now
    call.session_version = version
    call.save(force_insert=is_new)
    note_calls(session, [call], version=version)
    if is_new:
        index_call(session, call)
    return call, is_new


def finish_call(session: Session, call_id: str, outcome: Outcome, *, now: datetime) -> ToolCall:
    """Record an end; of a call that has ended, only what is still missing is filled in.

    Raises:
        InvalidRequest: a status that is not final, or an error or duration out of bounds.
    """
    if outcome.status not in FINAL_TOOL_CALLS:
        raise InvalidRequest.at("/status", f"must be one of {', '.join(sorted(FINAL_TOOL_CALLS))}")
    call = _load(session, call_id)
    version = touch(session, now=now)
    _enrich(call, outcome)
    result = JSONText.of(outcome.result) if outcome.has_result and call.result is None else None
    finish(session, call, outcome.status, result=result, version=version, now=now)
    call.save()
    note_calls(session, [call], version=version)
    return call


def settle_call(
    session: Session, call_id: str, *, actor: Actor, reason: str, now: datetime
) -> tuple[ToolCall, bool]:
    """Close an unanswered call without a result; what is closed already stays as it is.

    Source: report PAIR-05 (a dangling call could be repaired only by wiping the session).

    Raises:
        InvalidTransition: the call has a result.
    """
    call = _load(session, call_id)
    if call.result is not None or call.status == ToolCallStatus.SUCCEEDED:
        raise InvalidTransition(
            f"The tool call {call.id} has been answered.",
            current_status=call.status,
            tool_call=call.id,
        )
    if call.status in FINAL_TOOL_CALLS:
        return call, False
    version = touch(session, now=now)
    origin = call.status
    call.error_type, call.error_message = "settled", reason
    finish(session, call, ToolCallStatus.CANCELLED, result=None, version=version, now=now)
    call.save()
    record_event(
        session,
        subject=Subject.TOOL_CALL,
        subject_id=call.id,
        from_status=origin,
        to_status=call.status,
        actor=actor,
        reason=reason,
        version=version,
        now=now,
    )
    return call, True


def _load(session: Session, call_id: str) -> ToolCall:
    """The call, looked up again under the lock: a pop may have taken it meanwhile."""
    call = ToolCall.objects.filter(session=session, pk=call_id).first()
    if call is None:
        raise NotFound(f"There is no tool call {call_id}.")
    return call


def _check_start(given: Start) -> tuple[str, str | None]:
    if not given.name or len(given.name) > MAX_TOOL_NAME:
        raise InvalidRequest.at("/name", f"must be 1 to {MAX_TOOL_NAME} characters")
    name = clean_text(given.name)
    if given.tool_call_id is None:
        return name, None
    return name, clean_text(check_tool_call_id(given.tool_call_id, "/tool_call_id"))


def _announced(session: Session, tool_call_id: str | None) -> ToolCall | None:
    """The call that this start belongs to: one that still runs, or else the newest that a message
    made under the id (then the start is late, for the call has ended)."""
    if tool_call_id is None:
        return None
    calls = ToolCall.objects.filter(session=session, tool_call_id=tool_call_id, superseded_at=None)
    newest_first = F("message_sequence").desc(nulls_last=True)
    running = calls.open().order_by(newest_first, "id").first()
    newest = running or calls.order_by("-id").first()
    return newest if newest and (running or newest.message_sequence is not None) else None


def _enrich(call: ToolCall, outcome: Outcome) -> None:
    if outcome.duration_ms is not None:
        if not 0 <= outcome.duration_ms <= MAX_DURATION_MS:
            raise InvalidRequest.at("/duration_ms", f"must be from 0 to {MAX_DURATION_MS}")
        call.duration_ms = outcome.duration_ms
    if outcome.error is None:
        return
    error_type = _text(outcome.error, "type", longest=MAX_ERROR_TYPE)
    message = _text(outcome.error, "message", longest=MAX_ERROR_MESSAGE)
    if call.error_type is None and call.status != ToolCallStatus.SUCCEEDED:
        call.error_type, call.error_message = error_type, message


def _text(error: Mapping[str, Any], name: str, *, longest: int) -> str | None:
    value = error.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > longest:
        raise InvalidRequest.at(
            f"/error/{name}", f"must be a string of at most {longest} characters"
        )
    return clean_text(value)
