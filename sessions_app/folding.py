"""What of a message, a call or a working memory is text, and how search compares it."""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

# A PostgreSQL tsvector ends at 1 MB; what stands later in a text is not searchable.
MAX_INDEXED_CHARACTERS = 64 * 1024
# What is larger is not parsed only to be searched.
_MAX_PARSED = 1024 * 1024
_TEXTS = ("text", "content", "refusal", "summary", "output")
_CALLS = ("tool_use", "function_call")


def fold(text: str) -> str:
    """Case-folded, compatibility-normalised text: the same for every way to write a word."""
    return unicodedata.normalize("NFKC", text).casefold()


def folded_text(text: str) -> str:
    """As a text is indexed."""
    return fold(text[:MAX_INDEXED_CHARACTERS])[:MAX_INDEXED_CHARACTERS]


def plain_text(content: Any) -> str:
    """The words of a message's content: a string, or the text of a list of parts."""
    return content if isinstance(content, str) else "\n".join(_texts(content))


def message_text(body: Mapping[str, Any]) -> str:
    """What a message says, and the names and arguments of the calls that it makes."""
    content, calls = body.get("content"), body.get("tool_calls")
    if isinstance(content, str) and not (calls or body.get("item")):
        return content
    return "\n".join([*_texts(content), *_texts(body.get("item")), *_chat_calls(calls)])


def call_text(name: str, arguments: Any) -> str:
    """A call as it is searched: JSON in a string is read as what it stands for."""
    return "\n".join([name, *values_in(_parsed(arguments))])


def values_in(value: Any, *, levels: int = 100) -> Iterator[str]:
    """Each scalar of a JSON value and each key, as text; not what is nested deeper."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list) and levels:
        if isinstance(value, dict):
            yield from value
        for item in value.values() if isinstance(value, dict) else value:
            yield from values_in(item, levels=levels - 1)
    elif isinstance(value, int | float):
        yield json.dumps(value)


def _parsed(arguments: Any) -> Any:
    if not isinstance(arguments, str) or len(arguments) > _MAX_PARSED:
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    # An escape may stand for what no database stores, and what came as it is may not.
    return value if "\\u" not in arguments else [_storable(each) for each in values_in(value)]


def _storable(text: str) -> str:
    return text.replace("\x00", " ").encode(errors="replace").decode()


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            yield from _texts(part)
    elif isinstance(content, dict):
        if content.get("type") in _CALLS:
            yield _call(content)
        for key in _TEXTS:
            yield from _texts(content.get(key))


def _chat_calls(calls: Any) -> Iterator[str]:
    for call in calls or ():
        kind = call.get("type", "function")
        yield _call(call[kind])


def _call(call: Mapping[str, Any]) -> str:
    arguments = call.get("arguments", call.get("input"))
    return call_text(str(call.get("name", "")), arguments)
