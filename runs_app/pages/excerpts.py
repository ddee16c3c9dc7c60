"""What a message says, in a few lines, whatever its size and shape."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sessions_app.console.addresses import message_url
from sessions_app.console.transcript.entries import label_of
from sessions_app.console.values import cut
from sessions_app.models import Message

_CHARACTERS = 600
_CONTENT = re.compile(r'"content":\s*"((?:[^"\\]|\\.)*)')


class Excerpt(NamedTuple):
    sequence: int
    url: str
    role: str
    label: str
    text: str
    calls: list[str]
    """The names of the tools that it calls."""
    message: Message


def excerpts(messages: Sequence[Message], *, may_read: bool) -> list[Excerpt]:
    return [_excerpt(message, may_read=may_read) for message in messages]


def _excerpt(message: Message, *, may_read: bool) -> Excerpt:
    body = _body(message.head) if may_read else {}  # type: ignore[attr-defined]
    role, label = label_of(message, body)
    return Excerpt(
        message.sequence,
        message_url(message.session_id, message.sequence),
        role,
        label,
        cut(" ".join(_texts(body.get("content"))), _CHARACTERS),
        [name for name in _names(body.get("tool_calls")) if name],
        message,
    )


def _body(head: str | None) -> dict[str, Any]:
    try:
        value = json.loads(head or "{}")
    except ValueError:  # cut in the middle: a long one
        found = _CONTENT.search(head or "")
        return {"content": _unescape(found[1]) if found else head}
    return value if isinstance(value, dict) else {"content": json.dumps(value, ensure_ascii=False)}


def _unescape(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def _texts(content: Any) -> Iterator[str]:
    """The text of a message; of a part that has none, its type."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict):
            text = part.get("text")
            yield text if isinstance(text, str) else f"[{part.get('type', '…')}]"


def _names(calls: Any) -> Iterator[str]:
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str):
            yield name
