"""Chat messages as the OpenAI API takes them: a list of them, or objects that hold such lists."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import IO, Any

from .entries import BadFileError, Entry, read_json, read_lines

_NAMES = ("id", "session_id", "conversation_id", "thread_id")
_TIMES = ("created_at", "create_time", "timestamp")
_WAYS = "a list of messages, an object with `messages`, or several of these, also one a line"


def read(file: IO[bytes]) -> Iterator[Entry]:
    """A whole document, or an object in each line.

    A conversation without an id is named by what it holds, so that it is the same one wherever its
    file lies; its messages are named by their places.
    """
    kind = _kind_of_lines(file)
    if kind == "conversations":
        for place, conversation in read_lines(file):
            yield from _entries(conversation, f"{place}, ")
        return
    if kind == "messages":
        yield from _entries({"messages": [message for _, message in read_lines(file)]}, "")
        return
    document = read_json(file.read(), "the document")
    if isinstance(document, list) and any("messages" in _object(item) for item in document):
        for number, conversation in enumerate(document, start=1):
            yield from _entries(_object(conversation), f"conversation {number}, ")
    else:
        given = {"messages": document} if isinstance(document, list) else _object(document)
        yield from _entries(given, "")


def _kind_of_lines(file: IO[bytes]) -> str | None:
    """What stands in each line, if the first one is an object by itself and another follows."""
    first, second = file.readline(), file.readline()
    file.seek(0)
    try:
        found = json.loads(first)
    except ValueError:
        return None
    if not second.strip() or not isinstance(found, dict):
        return None
    return "messages" if "role" in found else "conversations"


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _entries(conversation: Mapping[str, Any], place: str) -> Iterator[Entry]:
    messages = conversation.get("messages")
    if not isinstance(messages, list):
        raise BadFileError(f"{place}messages".replace(", ", ": "), f"none; expected is {_WAYS}")
    session = f"openai:{_name_of(conversation, messages)}"
    title = conversation.get("title")
    metadata = {
        name: value
        for name, value in conversation.items()
        if isinstance(value, str | int | None) and name not in ("title", *_NAMES)
    }
    for number, message in enumerate(messages, start=1):
        if not isinstance(message, dict):
            raise BadFileError(f"{place}message {number}", "no JSON object")
        yield Entry(
            session,
            f"{place}message {number}",
            {**_with_time(message), "client_message_id": f"message-{number}"},
            title=title if isinstance(title, str) else None,
            metadata=metadata,
        )


def _name_of(conversation: Mapping[str, Any], messages: list[Any]) -> str:
    for name in _NAMES:
        if isinstance(conversation.get(name), str) and conversation[name]:
            return str(conversation[name])
    text = json.dumps(messages, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _with_time(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Seconds since 1970, as OpenAI writes times, in words."""
    for name in _TIMES:
        value = message.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                at = datetime.fromtimestamp(value, UTC).isoformat()
            except (OverflowError, ValueError, OSError):
                continue
            return {key: inner for key, inner in message.items() if key != name} | {
                "created_at": at
            }
    return message
