"""A message as a client sends it, checked and taken apart: everything that needs no database.

Content is not judged beyond its outer shape: providers add kinds of parts faster than any list of
them could follow (contract, "Values survive").
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from ..errors import InvalidRequest
from ..folding import folded_text, message_text
from ..jsontext import JSONText
from ..timestamps import parse_rfc3339, rfc3339
from ..usage import NO_USAGE, Usage
from .items.ids import own_id
from .pairing import MAX_TOOL_CALL_ID, CallDraft, ResultDraft, calls_in, results_in

ROLES = ("system", "developer", "user", "assistant", "tool")
HEAD_ROLES = ("system", "developer")
# Whose messages need no more than a text.
_SPEAKERS = frozenset(ROLES) - {"tool"}
STATUSES = ("completed", "incomplete")
MAX_NAME = 255
MAX_ITEM_TYPE = 64

# Names that the server gives: ignored on input, so that what was read can be sent back.
_SERVER_OWNED = frozenset(
    {
        "object",
        "message_id",
        "session_id",
        "sequence",
        "type",
        "run_id",
        "attempt",
        "expected_last_sequence",
        "session_version",
        "created_at",
        "client_created_at",
        "removed_at",
        "superseded_at",
    }
)


class Draft(NamedTuple):
    """One message before it has a place in a session."""

    role: str | None
    type: str
    body: JSONText
    text: str
    client_message_id: str | None
    usage: Usage
    calls: Sequence[CallDraft] = ()
    results: Sequence[ResultDraft] = ()
    through_sequence: int | None = None
    item_id: str | None = None

    @property
    def stands_alone(self) -> bool:
        """Whether nothing that is stored already can have to do with it."""
        named = self.client_message_id is not None or self.item_id is not None
        return not (named or self.calls or self.results)

    @property
    def opens_session(self) -> bool:
        """Whether it may be part of the head, which no window cuts: so it can have no partner."""
        return self.role in HEAD_ROLES and not (self.calls or self.results)


def draft_message(raw: Any, *, pointer: str) -> Draft:
    """Check one message.

    Raises:
        InvalidRequest: by JSON pointer, what is not acceptable.
    """
    if not isinstance(raw, Mapping):
        raise InvalidRequest.at(pointer, "must be an object")
    return _spoken(raw) or _whole(raw, pointer)


def _spoken(raw: Mapping[str, Any]) -> Draft | None:
    """Of a role and a text alone, as most messages are, nothing needs to be checked or taken apart.
    What this writes is what `JSONText.of` writes, in a tenth of the time."""
    if [*raw] != ["role", "content"]:
        return None
    role, content = raw.values()
    if type(content) is not str or type(role) is not str or role not in _SPEAKERS:
        return None
    if "\x00" in content:  # it is replaced
        return None
    try:
        body = orjson.dumps(raw).decode()
    except orjson.JSONEncodeError:  # a lone surrogate, which is not acceptable
        return None
    return Draft(role, "message", JSONText(body), folded_text(content), None, NO_USAGE)


def _whole(raw: Mapping[str, Any], pointer: str) -> Draft:
    body = {key: value for key, value in raw.items() if key not in _SERVER_OWNED}
    if raw.get("created_at") is not None:
        body["client_created_at"] = _timestamp(raw["created_at"], f"{pointer}/created_at")
    text = JSONText.of(body, pointer=pointer, wrapped=1)
    if "\ufffd" in text.text:  # U+0000 was replaced: the columns must hold what the body holds
        body = text.value
    _check(body, pointer)
    item = body.get("item")
    calls = calls_in(body, pointer=pointer)  # before their words are looked for
    return Draft(
        role=body.get("role"),
        type=item["type"] if item else "message",
        body=text,
        text=folded_text(message_text(body)),
        client_message_id=body.get("client_message_id"),
        usage=Usage.from_client(body.get("usage"), pointer=f"{pointer}/usage"),
        calls=calls,
        results=results_in(body, pointer=pointer),
        item_id=own_id(body),
    )


def _check(body: Mapping[str, Any], pointer: str) -> None:
    _check_role(body, pointer)
    _check_content(body.get("content"), f"{pointer}/content")
    for name in ("name", "client_message_id", "model"):
        _check_string(body.get(name), f"{pointer}/{name}", longest=MAX_NAME)
    _check_string(body.get("tool_call_id"), f"{pointer}/tool_call_id", longest=MAX_TOOL_CALL_ID)
    if body.get("status", "completed") not in STATUSES:
        raise InvalidRequest.at(f"{pointer}/status", f"must be one of {', '.join(STATUSES)}")
    if not isinstance(body.get("is_error"), bool | None):
        raise InvalidRequest.at(f"{pointer}/is_error", "must be a boolean")
    if not isinstance(body.get("metadata"), Mapping | None):
        raise InvalidRequest.at(f"{pointer}/metadata", "must be an object")


def _check_role(body: Mapping[str, Any], pointer: str) -> None:
    item, role = body.get("item"), body.get("role")
    if item is not None:
        if not isinstance(item, Mapping) or not isinstance(item.get("type"), str):
            raise InvalidRequest.at(f"{pointer}/item", "must be an object with a type")
        _check_string(item["type"], f"{pointer}/item/type", longest=MAX_ITEM_TYPE)
        if role is None:
            return
    if role not in ROLES:
        raise InvalidRequest.at(f"{pointer}/role", f"must be one of {', '.join(ROLES)}")


def _check_content(content: Any, pointer: str) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise InvalidRequest.at(pointer, "must be a string, null, or a list of parts")
    for index, part in enumerate(content):
        if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
            raise InvalidRequest.at(f"{pointer}/{index}", "must be an object with a type")


def _check_string(value: Any, pointer: str, *, longest: int) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise InvalidRequest.at(pointer, "must be a string")
    if len(value) > longest:
        raise InvalidRequest.at(pointer, f"longer than {longest} characters")


def _timestamp(value: Any, pointer: str) -> str:
    try:
        return rfc3339(parse_rfc3339(value))
    except (TypeError, ValueError) as error:
        raise InvalidRequest.at(pointer, "must be an RFC 3339 timestamp with an offset") from error
