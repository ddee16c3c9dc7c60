"""Items that a client sends, as the messages that they are stored as.

Nothing is added to an item and nothing taken away: what it lacks (an id, a status, parts in place
of a text) is `outgoing`'s to say. A message of a form that both sides share is stored as a message
like any other; everything else is kept whole, as the ``item`` of one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from ...errors import InvalidItem, InvalidRequest, PayloadTooLarge
from ...usage import Usage
from ..drafts import ROLES, STATUSES, Draft, draft_message
from .ids import MAX_ITEM_ID, PREFIXES, begins_well, is_id
from .outgoing import SHARED_PARTS

ITEM_ROLES = (
    "unknown",
    "user",
    "assistant",
    "system",
    "critic",
    "discriminator",
    "developer",
    "tool",
)
# A tool's message names a call; an item of that role does not.
_SHARED_ROLES = frozenset(ROLES) - {"tool"}
_SHARED_KEYS = frozenset({"id", "type", "role", "content", "status", "phase"})


def draft_items(raw: Any, *, pointer: str) -> list[Draft]:
    """Check a list of items.

    Raises:
        InvalidRequest, InvalidItem: by JSON pointer, what is not acceptable.
        PayloadTooLarge: more than a batch may have.
    """
    if not isinstance(raw, Sequence) or isinstance(raw, str):
        raise InvalidRequest.at(pointer, "must be a list")
    if len(raw) > settings.MAX_MESSAGES_PER_BATCH:
        raise PayloadTooLarge(f"More than {settings.MAX_MESSAGES_PER_BATCH} items in a request.")
    return [draft_item(item, pointer=f"{pointer}/{index}") for index, item in enumerate(raw)]


def draft_item(raw: Any, *, pointer: str) -> Draft:
    """Check one item; of its type's own fields no more than what the history is made of."""
    if not isinstance(raw, Mapping):
        raise InvalidRequest.at(pointer, "must be an object")
    kind = raw.get("type", "message")
    if not isinstance(kind, str):
        raise InvalidRequest.at(f"{pointer}/type", "must be a string")
    _check_id(raw.get("id"), kind, pointer)
    if kind == "message":
        _check_message(raw, pointer)
    elif kind == "reasoning" and raw.get("id") is None and not raw.get("encrypted_content"):
        raise InvalidItem.at(pointer, "a reasoning item needs an id or encrypted_content")
    return draft_message(_as_message(kind, raw), pointer=pointer)


def _check_id(given: Any, kind: str, pointer: str) -> None:
    if given is None:
        return
    if not isinstance(given, str) or not is_id(given):
        expected = f"a string of 1 to {MAX_ITEM_ID} characters, without a slash"
        raise InvalidRequest.at(f"{pointer}/id", expected)
    if not begins_well(kind, given):
        expected = f"Expected an ID that begins with '{PREFIXES[kind]}'"
        raise InvalidRequest.at(f"{pointer}/id", f"'{given}'. {expected}")


def _check_message(raw: Mapping[str, Any], pointer: str) -> None:
    if raw.get("role") not in ITEM_ROLES:
        raise InvalidRequest.at(f"{pointer}/role", f"must be one of {', '.join(ITEM_ROLES)}")
    content = raw.get("content")
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise InvalidRequest.at(f"{pointer}/content", "must be a string or a list of parts")
    for index, part in enumerate(content):
        if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
            raise InvalidRequest.at(f"{pointer}/content/{index}", "must be an object with a type")


def _as_message(kind: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "message" and _is_shared(raw):
        return {key: value for key, value in raw.items() if key != "type" and value is not None}
    item = {"type": kind} | {
        key: value for key, value in raw.items() if key != "id" or value is not None
    }
    role = raw["role"] if kind == "message" and raw["role"] in _SHARED_ROLES else None
    message: dict[str, Any] = {} if role is None else {"role": role}
    return message | _usage_of(raw) | {"item": item}


def _is_shared(raw: Mapping[str, Any]) -> bool:
    """Whether the message reads the same on either side, and comes back as it is.

    A null status or phase is kept only by an item.
    """
    content, optional = raw["content"], [raw[key] for key in ("status", "phase") if key in raw]
    return (
        raw["role"] in _SHARED_ROLES
        and raw.keys() <= _SHARED_KEYS
        and None not in optional
        and raw.get("status", STATUSES[0]) in STATUSES
        and (isinstance(content, str) or all(part["type"] in SHARED_PARTS for part in content))
    )


def _usage_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What an item says that it cost: beside it, where it is counted; nothing is refused for it."""
    for name in ("usage", "svg_usage"):
        try:
            if Usage.from_client(raw.get(name), pointer=f"/{name}"):
                return {"usage": raw[name]}
        except InvalidRequest:
            continue
    return {}
