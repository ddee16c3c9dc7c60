"""What clients see of runs and of the resume packet: their shapes are made here, and only here."""

from datetime import datetime
from typing import Any

from runs_app.models import Run
from runs_app.services.packet import Packet
from runs_app.states import UNFINISHED, effective_status
from sessions_app.api.representations import (
    represent_messages,
    represent_session,
    represent_tool_call,
)
from sessions_app.services.formats import NATIVE, conversation
from sessions_app.services.window import Window
from sessions_app.usage import usage_of


def represent_run(run: Run, now: datetime) -> dict[str, Any]:
    """The run as it is at this moment; read it through `RunQuerySet.effective`."""
    status = effective_status(run.status, deadline=run.deadline, now=now)
    ended_at = run.ended_at if status == run.status else run.deadline
    return {
        "object": "run",
        "run_id": run.run_id,
        "session_id": run.session_id,
        "agent_id": run.agent_id,
        "model": run.model,
        "status": status.value,
        "attempt": run.attempt,
        "input": run.input,
        "output": run.output,
        "error": run.error,
        "usage": usage_of(run),
        "metadata": run.metadata,
        "retry_of": run.retry_of_id,
        "parent_run_id": run.parent_run_id,
        "first_sequence": run.first_sequence,
        "last_sequence": run.last_sequence,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": ended_at,
        "duration_ms": _milliseconds(run.started_at, ended_at),
        "heartbeat_at": run.seen_at,
        "lease_expires_at": run.lease if status in UNFINISHED else None,
        "wait_reason": run.wait_reason,
        "cancel_reason": run.cancel_reason or None,
        "session_version": run.session_version,
    }


def represent_packet(
    packet: Packet, now: datetime, *, format: str = NATIVE, mark_synthetic: bool = True
) -> dict[str, Any]:
    """The packet, its messages as they are stored or in the form of a provider's API."""
    session = packet.session
    active, interrupted = packet.active_run, packet.interrupted_run
    return {
        "session": represent_session(
            session, packet.working_memory, now, open_tool_calls=packet.open_call_ids
        ),
        "working_memory": packet.working_memory,
        "working_memory_version": session.working_memory_version,
        **_represent_messages(packet.window, format, mark_synthetic),
        "window": represent_window(packet.window),
        "open_tool_calls": [represent_tool_call(call) for call in packet.open_tool_calls],
        "tool_history": [represent_tool_call(call) for call in packet.tool_history],
        "runs": [represent_run(run, now) for run in packet.runs],
        "active_run": represent_run(active, now) if active else None,
        "interrupted_run": represent_run(interrupted, now) if interrupted else None,
        "truncated": packet.truncated,
    }


def _represent_messages(window: Window, format: str, mark_synthetic: bool) -> dict[str, Any]:
    if format == NATIVE:
        return {"messages": represent_messages(window.messages)}
    found = conversation(
        window.messages, format=format, answers=window.answers, mark_synthetic=mark_synthetic
    )
    system = {} if found.system is None else {"system": found.system}
    return {**system, "messages": found.messages}


def represent_window(window: Window) -> dict[str, Any]:
    return {
        "first_sequence": window.first_sequence,
        "last_sequence": window.last_sequence,
        "omitted_before": window.omitted_before,
        "estimated_tokens": window.estimated_tokens,
    }


def _milliseconds(start: datetime | None, end: datetime | None) -> int | None:
    if start is None or end is None:
        return None
    return max(0, round((end - start).total_seconds() * 1000))
