"""For OpenAI's Responses API: ``input``.

What the API refuses beyond its types: a call without its output, or an output without its call,
found by ``call_id``; a ``call_id`` of more than 64 characters; parts of the input's kinds in an
assistant's message (said as a text, its own kinds need no id); thoughts that nothing follows. Items
keep no ``id`` but thoughts do: an item with one is looked for on the server, with what belonged to
it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from .names import CallIds, tool_name
from .parts import Call, Media, Native, Part, Result, Said, result_of, text_of, texts_of, turns

_HOME = "openai_responses"
_ID = r"[a-zA-Z0-9_-]{1,64}"
_LONGEST_NAME = 64
_DETAILS = ("auto", "low", "high", "original")
# What an item must have to go back as it came, by its type.
_REQUIRED: dict[str, dict[str, type | tuple[type, ...]]] = {
    "file_search_call": {"id": str, "queries": list, "status": str},
    "web_search_call": {"id": str, "action": dict, "status": str},
    "image_generation_call": {"id": str, "result": (str, type(None)), "status": str},
    "code_interpreter_call": {
        "id": str,
        "code": (str, type(None)),
        "container_id": str,
        "outputs": (list, type(None)),
        "status": str,
    },
    "mcp_list_tools": {"id": str, "server_label": str, "tools": list},
    "mcp_call": {"id": str, "server_label": str, "name": str, "arguments": str},
    "compaction": {"encrypted_content": str},
    "computer_call": {"id": str, "call_id": str, "pending_safety_checks": list, "status": str},
    "computer_call_output": {"call_id": str, "output": dict},
    "local_shell_call": {"id": str, "call_id": str, "action": dict, "status": str},
    "local_shell_call_output": {"id": str, "output": str},
    "shell_call": {"call_id": str, "action": dict},
    "shell_call_output": {"call_id": str, "output": list},
    "apply_patch_call": {"call_id": str, "operation": dict, "status": str},
    "apply_patch_call_output": {"call_id": str, "status": str},
}


def write(said: Iterable[Said], mark_synthetic: bool) -> tuple[list[dict[str, Any]], None]:
    written: list[dict[str, Any]] = []
    ids = CallIds(_ID)
    for turn in turns(said):
        named = {id(call): ids.of(call) for message in turn for call in message.calls}
        for message in turn:
            written += _items(message, named)
        for message in turn:
            written += [_output(call, named[id(call)], mark_synthetic) for call in message.calls]
    return _without_stray_thoughts(written), None


def _items(message: Said, named: Mapping[int, str]) -> list[dict[str, Any]]:
    if message.role != "assistant":
        content = _content(message.parts if message.role == "user" else _worded(message.parts))
        return [{"type": "message", "role": message.role, "content": content}] if content else []
    written = []
    for part in message.parts:
        if isinstance(part, Call):
            written.append(called(part, named[id(part)]))
        elif item := _native(part):
            written.append(item)
        elif text := text_of(part):
            phase = {"phase": message.phase} if message.phase else {}
            written.append({"type": "message", "role": "assistant", "content": text, **phase})
    return written


def called(call: Call, call_id: str) -> dict[str, Any]:
    """The item that makes the call."""
    if _goes_back_as_it_came(call):
        return dict(call.native or {})
    name = tool_name(call.name, longest=_LONGEST_NAME)
    if call.is_custom:
        return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": call.text}
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": call.text}


def _output(call: Call, call_id: str, mark_synthetic: bool) -> dict[str, Any]:
    result = result_of(call)
    if _goes_back_as_it_came(call):
        return dict(result.native or {})
    kind = "custom_tool_call_output" if call.is_custom else "function_call_output"
    mark = {"synthetic": True} if result.is_synthetic and mark_synthetic else {}
    return {"type": kind, "call_id": call_id, "output": returned(result), **mark}


def returned(result: Result) -> str | list[dict[str, Any]]:
    """What the item that answers a call says."""
    if any(isinstance(part, Media) for part in result.parts):
        return _content(result.parts)
    return _content(_worded(result.parts)) or "".join(result.texts)


def _goes_back_as_it_came(call: Call) -> bool:
    answer = call.result.native if call.result else None
    return call.native is not None and _is_whole(call.native) and _is_whole(answer)


def _is_whole(item: Mapping[str, Any] | None) -> bool:
    required = _REQUIRED.get(str(item.get("type"))) if item else None
    if item is None or required is None:
        return False
    return all(key in item and isinstance(item[key], kind) for key, kind in required.items())


def _native(part: Part) -> dict[str, Any] | None:
    if not isinstance(part, Native) or part.home != _HOME:
        return None
    if part.is_thought:
        return _thought(part.raw)
    return dict(part.raw) if _is_whole(part.raw) else None


def _thought(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """None without an id, by which alone it can be given back."""
    if not isinstance(item.get("id"), str):
        return None
    written: dict[str, Any] = {
        "type": "reasoning",
        "id": item["id"],
        "summary": _thought_texts(item.get("summary"), "summary_text"),
    }
    if content := _thought_texts(item.get("content"), "reasoning_text"):
        written["content"] = content
    if isinstance(item.get("encrypted_content"), str):
        written["encrypted_content"] = item["encrypted_content"]
    return written


def _thought_texts(given: Any, kind: str) -> list[dict[str, Any]]:
    parts = given if isinstance(given, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return [{"type": kind, "text": text} for text in texts if isinstance(text, str)]


def _without_stray_thoughts(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    may_think = False
    for item in reversed(items):
        if item["type"] != "reasoning":
            may_think = item.get("role", "assistant") == "assistant"
            may_think = may_think and not item["type"].endswith("_output")
        elif not may_think:
            continue
        kept.append(item)
    return kept[::-1]


def _worded(parts: Iterable[Part]) -> list[dict[str, Any]]:
    return [{"type": "input_text", "text": text} for text in texts_of(parts)]


def _content(parts: Iterable[Part | dict[str, Any]]) -> str | list[dict[str, Any]]:
    """One text is said as it is, and nothing as an empty one."""
    written = [part if isinstance(part, dict) else shown(part) for part in parts]
    written = [part for part in written if part.get("text") != ""]
    if not written:
        return ""
    if len(written) == 1 and written[0]["type"] == "input_text":
        return str(written[0]["text"])
    return written


def shown(part: Part) -> dict[str, Any]:
    """A part as an input shows it: what has no form there in words."""
    if isinstance(part, Media):
        own = {"file_id": part.file_id} if part.file_id and part.home == "openai" else {}
        if part.kind == "image" and (part.data_url or own):
            detail = part.detail if part.detail in _DETAILS else "auto"
            shown = {"image_url": part.data_url} if part.data_url else own
            return {"type": "input_image", "detail": detail, **shown}
        if part.kind == "file" and (part.data_url or own):
            return {"type": "input_file", **_file(part, own)}
    return {"type": "input_text", "text": text_of(part)}


def _file(part: Media, own: dict[str, Any]) -> dict[str, Any]:
    if part.data is not None:
        return {"file_data": part.data_url, "filename": part.name or "file"}
    return {"file_url": part.url} if part.url else own
