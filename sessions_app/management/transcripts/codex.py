"""Codex CLI: the items of the Responses API, in files below ``~/.codex/sessions``."""

import json
from collections import deque
from collections.abc import Iterator, Mapping
from typing import IO, Any

from .entries import BadFileError, Entry, given, read_lines

_TOLD = ("cwd", "cli_version", "model_provider")
# Notes of the program's own among the items.
_NO_ITEMS = frozenset({"ghost_snapshot"})


def read(file: IO[bytes]) -> Iterator[Entry]:
    """The items in the order of the file; its events tell the same once more, for a screen.

    Lines have no ids of their own: their numbers do, since such a file only grows.
    """
    session = model = None
    metadata: dict[str, Any] = {}
    calls = _Calls()
    for place, line in read_lines(file):
        kind, payload = _opened(line)
        if kind == "session_meta":
            session = session or _session_of(payload, place)
            metadata = {name: payload[name] for name in _TOLD if isinstance(payload.get(name), str)}
        elif kind == "turn_context":
            model = payload.get("model")
        elif kind == "response_item" and payload.get("type") not in _NO_ITEMS:
            if session is None:
                raise BadFileError(place, "an item before the session_meta that names the session")
            said = calls.message(payload, place)
            if said.get("role") == "assistant" and isinstance(model, str):
                said["model"] = model
            said |= given(created_at=line.get("timestamp"))
            said["client_message_id"] = place.replace(" ", "-")
            yield Entry(session, place, said, agent_id="codex", metadata=metadata)


def _opened(line: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """The kind and the payload; older files have items without an envelope."""
    payload = line.get("payload")
    if isinstance(payload, dict):
        return line.get("type"), payload
    if "type" in line:
        return "response_item", line
    return ("session_meta" if "id" in line else None), line


def _session_of(payload: Mapping[str, Any], place: str) -> str:
    if not isinstance(payload.get("id"), str):
        raise BadFileError(place, "a session_meta without an id")
    return f"codex:{payload['id']}"


class _Calls:
    """Makes messages of items. Calls that have no id are answered in turn, by their tool's name."""

    def __init__(self) -> None:
        self._waiting: dict[Any, deque[str]] = {}

    def message(self, item: Mapping[str, Any], place: str) -> dict[str, Any]:
        kind = item.get("type")
        if kind == "message":
            return {"role": item.get("role"), "content": item.get("content")}
        if kind == "tool_call":
            return self._call(item, place)
        if kind == "tool_result":
            return self._result(item, place)
        return {"item": dict(item)}

    def _call(self, item: Mapping[str, Any], place: str) -> dict[str, Any]:
        function = item.get("function")
        name = function.get("name") if isinstance(function, dict) else item.get("name")
        call_id = item.get("call_id") or f"call-of-{place.replace(' ', '-')}"
        self._waiting.setdefault(name, deque()).append(call_id)
        arguments = _text(item.get("arguments"))
        call = {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def _result(self, item: Mapping[str, Any], place: str) -> dict[str, Any]:
        waiting = self._waiting.get(item.get("name"))
        call_id = item.get("call_id")
        if call_id is None and not waiting:
            raise BadFileError(place, "a result that answers no call")
        if waiting:
            call_id = call_id or waiting[0]
            waiting.popleft()
        content = _text(item.get("result", item.get("output")))
        return {"role": "tool", "tool_call_id": call_id, "content": content}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
