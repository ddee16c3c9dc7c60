"""Stored messages as items, whoever stored them.

An item comes back as it was sent, with what the API gives every item: an id, and a status where
its type has one. A message of another provider's form is said as items: the calls that it makes
and the results that it gives are items of their own beside its words.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import orjson

from ...jsontext import JSONText
from ..formats import openai_responses
from ..formats.parts import Call, Said, text_of
from ..formats.stored import StoredMessage, take_apart
from .ids import mint

Item = dict[str, Any]

# The parts of a message that the Responses API writes and reads.
SHARED_PARTS = frozenset(
    {
        "input_text",
        "output_text",
        "summary_text",
        "reasoning_text",
        "refusal",
        "input_image",
        "input_file",
        "computer_screenshot",
    }
)
# The types whose answers must have a status, and whose requests need not.
_HAVE_STATUS = frozenset(
    {
        "message",
        "function_call",
        "function_call_output",
        "computer_call_output",
        "tool_search_call",
        "tool_search_output",
        "shell_call",
        "shell_call_output",
    }
)
_OUTPUT = '{"type":"output_text","text":%s,"annotations":[],"logprobs":[]}'
_INPUT = '{"type":"input_text","text":%s}'
_USUAL_KEYS = 2  # role and content
# What only a client that speaks another API puts beside a message's content.
_FOREIGN = frozenset({"tool_calls", "refusal", "audio", "through_sequence"})


class NamedMessage(StoredMessage, Protocol):
    @property
    def message_id(self) -> str: ...
    @property
    def role(self) -> str | None: ...
    @property
    def item_id(self) -> str | None: ...


class NamedItem(NamedTuple):
    """An item with its id, as JSON or as what JSON is made of."""

    id: str
    item: Item | JSONText


def items_of(message: NamedMessage) -> list[NamedItem]:
    """One message's items in their order: at least one."""
    if usual := _usual(message):
        return [usual]
    body = message.body.value
    item = body.get("item")
    if isinstance(item, Mapping) or _is_plain(body):
        sent = _plain(body) if item is None else item
        kind = str(sent.get("type"))
        return [_complete(sent, kind, message.item_id or mint(kind, message.message_id))]
    found = [*_translated(message)] or [_said(message.role or "assistant", [])]
    return [
        _complete(each, each["type"], mint(each["type"], message.message_id, place))
        for place, each in enumerate(found)
    ]


def _usual(message: NamedMessage) -> NamedItem | None:
    """Of a message that says a text and no more, as most do: a page is a hundred of them, and their
    texts are copied, not written anew."""
    text = message.body.text
    start = f'{{"role":"{message.role}","content":'
    if not (text.startswith(f'{start}"') and _has_two_keys(text)):
        return None
    item_id = mint("message", message.message_id)
    part = (_OUTPUT if message.role == "assistant" else _INPUT) % text[len(start) : -1]
    head = f'"id":"{item_id}","type":"message","role":"{message.role}","status":"completed"'
    return NamedItem(item_id, JSONText(f'{{{head},"content":[{part}]}}'))


def _has_two_keys(text: str) -> bool:
    try:
        return len(orjson.loads(text)) == _USUAL_KEYS
    except orjson.JSONDecodeError:  # an integer beyond the doubles, in another key
        return False


def _complete(item: Mapping[str, Any], kind: str, item_id: str) -> NamedItem:
    """With its id, its status, and a message's text as a part."""
    whole = {**item, "id": item_id}
    if kind in _HAVE_STATUS and item.get("status") is None:
        whole["status"] = "completed"
    if kind == "message" and isinstance(item.get("content"), str):
        whole["content"] = [_part(item["content"], item.get("role"))]
    return NamedItem(item_id, whole)


def _part(text: str, role: Any) -> Item:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "input_text", "text": text}


def _is_plain(body: Mapping[str, Any]) -> bool:
    content = body.get("content")
    if body.get("role") == "tool" or not _FOREIGN.isdisjoint(body):
        return False
    if isinstance(content, list):
        return all(part["type"] in SHARED_PARTS for part in content)
    return isinstance(content, str)


def _plain(body: Mapping[str, Any]) -> Item:
    item = {"type": "message", "role": body["role"], "content": body["content"]}
    return item | {key: body[key] for key in ("status", "phase") if key in body}


def _translated(message: StoredMessage) -> Iterator[Item]:
    apart = take_apart(message)
    for key, result in apart.results:
        output = openai_responses.returned(result)
        yield {"type": "function_call_output", "call_id": key.id, "output": output}
    for said in apart.said:
        if parts := _parts(said):
            yield _said(said.role, parts)
        for call in said.calls:
            yield openai_responses.called(call, call.id)


def _said(role: str, parts: list[Item]) -> Item:
    return {"type": "message", "role": role, "content": parts}


def _parts(said: Said) -> list[Item]:
    spoken = [part for part in said.parts if not isinstance(part, Call) and text_of(part)]
    if said.role == "assistant":
        return [_part(text_of(part), said.role) for part in spoken]
    return [openai_responses.shown(part) for part in spoken]
