"""Where what a request stored can be read again, and which of its keys stand there."""

from collections.abc import Mapping
from typing import Any

from tests.hostile.attack import Attacker, Operation
from tests.isolation.references import Path

# Only steer the request, or are spoken of elsewhere.
NOT_STORED = frozenset(
    {
        "attempt",
        "expected_last_sequence",
        "at_sequence",
        "through_sequence",
        "if_active",
        "if_exists",
        "start",
        "lease_seconds",
        "timeout_seconds",
        "turn",
        "messages",
        "items",
        "run_id",
        "duration_ms",
        # Given to the call's error and the session's events.
        "settle_tool_call/reason",
        # Counted, and answered as sums.
        "complete_run/usage",
        "fail_run/usage",
        # The server's own, ignored.
        "object",
        "version",
        "replace_working_memory/session_id",
        "update_working_memory/session_id",
        # Kept as one moment, in one form.
        "created_at",
    }
)

_RENAMED = {
    "wait_run/reason": "wait_reason",
    "cancel_run/reason": "cancel_reason",
    "compact_session/summary": "content",
}
_MERGED = frozenset({"update_session/metadata", "update_working_memory/extra"})

# Empty: the same as leaving it out.
_SAYING_NOTHING: tuple[tuple[str, Any], ...] = (
    ("cancel_run/reason", ""),
    ("finish_tool_call/error", {}),
    ("create_session/working_memory", {}),
)

# Whose bodies say only how, or why: that is for the session's events.
_ONLY_STEERED = frozenset(
    {"pop_messages", "close_session", "expire_session", "resume_session", "rewind_session"}
)

Missing = object()


def read_again(attacker: Attacker, operation: Operation, answer: Any) -> Any:
    """What a later reader gets of the thing that the operation wrote."""
    name, things = str(operation), attacker.things
    if name in ("create_session", "update_session", "fork_session"):
        path = f"/sessions/{answer['session_id']}"
    elif name in ("create_conversation", "update_conversation"):
        path = f"/v1/conversations/{answer['id']}"
    elif name == "append_messages":
        path = f"/sessions/{things['session_id']}/messages/{answer['last_sequence']}"
    elif name == "compact_session":
        path = f"/sessions/{things['session_id']}/messages/{answer['sequence']}"
    elif name.endswith("working_memory"):
        path = f"/sessions/{things['session_id']}/working-memory"
    elif name.endswith("tool_call"):
        path = f"/tool-calls/{answer['id']}"
    else:
        path = f"/runs/{answer['run_id']}"
    found = attacker.raw("GET", path)
    assert found.status_code == 200
    return found


def is_stored(operation: Operation, place: Path) -> bool:
    keys = {str(place[0]), f"{operation}/{place[0]}"}
    return str(operation) not in _ONLY_STEERED and not keys & NOT_STORED


def at(operation: Operation, place: Path, document: Any) -> Any:
    first, *rest = place
    found = document.get(_RENAMED.get(f"{operation}/{first}", first), Missing)
    for step in rest:
        if found is None or found is Missing:
            return Missing
        found = found[step]
    return found


def is_kept(operation: Operation, place: Path, sent: Any, found: Any) -> bool:
    """Whether the stored value is the one that was sent."""
    if sent is None and str(operation) != "append_messages":
        return True  # the same as leaving it out
    if (f"{operation}/{place[0]}", sent) in _SAYING_NOTHING:
        return True
    if f"{operation}/{place[0]}" in _MERGED:
        return all(_same(found.get(key), value) for key, value in scrubbed(sent).items())
    return _same(found, scrubbed(sent))


def scrubbed(value: Any) -> Any:
    """The value as it may be stored: U+FFFD for U+0000 (report DATA-01)."""
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd")
    if isinstance(value, list):
        return [scrubbed(item) for item in value]
    if isinstance(value, Mapping):
        return {scrubbed(key): scrubbed(item) for key, item in value.items()}
    return value


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON text: the order of keys counts, and 1, 1.0 and true are three things."""
    return repr(one) == repr(other)
