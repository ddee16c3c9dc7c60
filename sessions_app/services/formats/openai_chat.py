"""For OpenAI's chat completions: ``messages``.

What the API refuses beyond its types: a call that no tool message answers straight after its own
message; an id of more than 40 characters; pictures in other messages than a user's; an empty list
as content; null as content of any but an assistant that makes calls.
"""

import re
from collections.abc import Iterable
from typing import Any

from .names import CallIds, tool_name
from .parts import Audio, Call, Media, Part, Said, Text, result_of, text_of, texts_of

_ID = r".{1,40}"
_LONGEST_NAME = 64
_SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}")
_DETAILS = ("auto", "low", "high", "original")
_PICTURES = "Pictures and files of the tool results above:"


def write(said: Iterable[Said], mark_synthetic: bool) -> tuple[list[dict[str, Any]], None]:
    written: list[dict[str, Any]] = []
    for message in said:
        written.append(_spoken(message))
        written += _answered(message.calls, written[-1], mark_synthetic)
    return written, None


def _spoken(message: Said) -> dict[str, Any]:
    written: dict[str, Any] = {"role": message.role}
    if message.name and _SPEAKER.fullmatch(message.name):
        written["name"] = message.name
    if message.role == "user":
        written["content"] = _content([_heard(part) for part in message.parts])
    else:
        written["content"] = _content([_text(text) for text in texts_of(message.parts)])
    if message.calls:
        written["content"] = written["content"] or None
        ids = CallIds(_ID)  # tool messages answer the message before them, and no other
        written["tool_calls"] = [_call(call, ids.of(call)) for call in message.calls]
    return written


def _answered(
    calls: Iterable[Call], spoken: dict[str, Any], mark_synthetic: bool
) -> list[dict[str, Any]]:
    """A tool message for each call; what only a user may show follows them."""
    written, shown = [], []
    for call, made in zip(calls, spoken.get("tool_calls", ()), strict=True):
        result = result_of(call)
        content = _content([_text(text) for text in result.texts])
        answer = {"role": "tool", "tool_call_id": made["id"], "content": content}
        mark = {"synthetic": True} if result.is_synthetic and mark_synthetic else {}
        written.append(answer | mark)
        pieces = [_heard(part) for part in result.parts if isinstance(part, Media)]
        shown += [piece for piece in pieces if piece["type"] != "text"]
    if shown:
        written.append({"role": "user", "content": [_text(_PICTURES), *shown]})
    return written


def _call(call: Call, id: str) -> dict[str, Any]:
    name = tool_name(call.name, longest=_LONGEST_NAME)
    if call.is_custom:
        return {"id": id, "type": "custom", "custom": {"name": name, "input": call.text}}
    return {"id": id, "type": "function", "function": {"name": name, "arguments": call.text}}


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """One text is said as it is, and nothing as an empty one."""
    parts = [part for part in parts if part.get("text") != ""]
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _heard(part: Part) -> dict[str, Any]:
    """A part of a user's message."""
    if isinstance(part, Audio):
        sound = {"data": part.data, "format": part.encoding}
        return {"type": "input_audio", "input_audio": sound}
    if isinstance(part, Media) and part.kind == "image" and part.data_url is not None:
        detail = {"detail": part.detail} if part.detail in _DETAILS else {}
        return {"type": "image_url", "image_url": {"url": part.data_url, **detail}}
    if isinstance(part, Media) and part.kind == "file" and (file := _file(part)):
        return {"type": "file", "file": file}
    return _text(part.text if isinstance(part, Text) else text_of(part))


def _file(part: Media) -> dict[str, Any] | None:
    """None: chat completions fetch nothing, and know no other API's files."""
    named = {"filename": part.name} if part.name else {}
    if part.data is not None:
        return {"file_data": part.data_url, **named}
    return {"file_id": part.file_id} if part.file_id and part.home == "openai" else None
