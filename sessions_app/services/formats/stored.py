"""A stored message, taken apart: what it says, and which results it gives.

Which calls and results there are, and in which order they stand, is what `pairing` says; besides
those, items of tools that the Responses API knows by itself (a shell, a computer).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ...jsontext import JSONText
from . import media
from .parts import Call, Native, Part, Result, Said, Text, as_text, note

RESPONSES, ANTHROPIC = "openai_responses", "anthropic"
COMPACTION = "compaction"
_SUMMARY = "Summary of the conversation until here, whose messages are left out:\n\n"
_ROLES = ("system", "developer", "user", "assistant")
# Items that call a tool of their own kind: what the tool is called elsewhere, and its arguments.
_OWN_TOOLS = {
    "local_shell_call": ("local_shell", "action"),
    "shell_call": ("shell", "action"),
    "apply_patch_call": ("apply_patch", "operation"),
    "computer_call": ("computer", "action"),
}
_ANSWERS = {f"{kind}_output": kind for kind in ("custom_tool_call", *_OWN_TOOLS)}


class StoredMessage(Protocol):
    """What is needed of a message, or of its row."""

    @property
    def sequence(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def body(self) -> JSONText: ...


class Key(NamedTuple):
    """By what results find calls. Only of the common ``kind``, "", calls are in the history."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class Apart:
    """``results`` come before what is ``said``; ``calls`` are in the order in which they are
    answered."""

    results: list[tuple[Key, Result]]
    said: list[Said]
    calls: list[tuple[Key, Call]]


def take_apart(message: StoredMessage) -> Apart:
    body = message.body.value
    item = body.get("item") if isinstance(body.get("item"), Mapping) else None
    if message.type == COMPACTION and item is None:
        return Apart([], [_summary(body)], [])
    calls = _Calls(message.sequence)
    announced = [calls.of_chat(call) for call in body.get("tool_calls") or ()]
    said = _said(body, item, calls)
    if announced:  # only an assistant's message has them
        if not said or said[-1].role != "assistant":
            said.append(Said("assistant", []))
        said[-1].parts += announced
    return Apart(_results(body, item), said, calls.made)


def parts_of(content: Any, calls: "_Calls | None" = None) -> list[Part]:
    """The parts of a content: of results, and without ``calls``, no part is a call."""
    if isinstance(content, str):
        return [Text(content)] if content else []
    if content is None:
        return []
    if not isinstance(content, list):
        return parts_of([content])
    found: list[Part] = []
    for part in content:
        found += _part(part, calls)
    return found


def _summary(body: Mapping[str, Any]) -> Said:
    """As the user's words: a summary of what users and tools said must not rise to a rule."""
    words = parts_of(body.get("content")) or parts_of(body.get("summary"))
    return Said(
        "user", [Text(_SUMMARY + "\n\n".join(p.text for p in words if isinstance(p, Text)))]
    )


def _said(body: Mapping[str, Any], item: Mapping[str, Any] | None, calls: "_Calls") -> list[Said]:
    if item is not None:  # it holds the message whole; content beside it says the same again
        blocks = [part for part in _listed(body) if part.get("type") == "tool_use"]
        used = parts_of(blocks, calls) if body.get("role") == "assistant" else []
        return [*([Said("assistant", used)] if used else []), *_item(item, body, calls)]
    role = body.get("role")
    if role not in _ROLES or _only_answers(body):
        return []
    parts = parts_of(body.get("content"), calls if role == "assistant" else None)
    if role == "assistant":
        parts += _beside(body, parts)
    name, phase = body.get("name"), body.get("phase")
    return [
        Said(
            role,
            parts,
            name=name if isinstance(name, str) else None,
            phase=phase if _is_phase(phase) else None,
        )
    ]


def _beside(body: Mapping[str, Any], parts: list[Part]) -> list[Part]:
    """What an assistant's chat message says in keys of its own."""
    found = parts_of(body["refusal"]) if isinstance(body.get("refusal"), str) else []
    audio = body.get("audio")
    if not parts and isinstance(audio, Mapping) and isinstance(audio.get("transcript"), str):
        found += parts_of(audio["transcript"])
    return found


def _item(item: Mapping[str, Any], body: Mapping[str, Any], calls: "_Calls") -> list[Said]:
    kind = str(item.get("type"))
    if kind == "function_call_output" or kind in _ANSWERS:
        return []
    if kind == "message":
        role = item.get("role") if item.get("role") in _ROLES else body.get("role")
        known = role if role in _ROLES else "user"
        phase = item.get("phase")
        return [
            Said(known, parts_of(item.get("content")), phase=phase if _is_phase(phase) else None)
        ]
    if kind == "function_call" or kind in _ANSWERS.values():
        call = calls.of_item(kind, item)
        return [Said("assistant", [call])] if call else []
    return [Said("assistant", [Native(RESPONSES, item, is_thought=kind == "reasoning")])]


def _is_phase(value: Any) -> bool:
    return value in ("commentary", "final_answer")


class _Calls:
    """Makes the calls of one message, in the order in which results answer them."""

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence
        self.made: list[tuple[Key, Call]] = []
        self.of_chat_ids: set[str] = set()

    def of_chat(self, call: Mapping[str, Any]) -> Call:
        kind = call.get("type", "function")
        inner = call[kind]
        self.of_chat_ids.add(call["id"])
        arguments = inner.get("arguments", inner.get("input"))
        return self._make("", call["id"], inner["name"], arguments, is_custom=kind == "custom")

    def of_block(self, block: Mapping[str, Any]) -> Call | None:
        """None: some clients say one call twice, in a block and in ``tool_calls``."""
        if block["id"] in self.of_chat_ids:
            return None
        return self._make("", block["id"], block["name"], block.get("input"))

    def of_item(self, kind: str, item: Mapping[str, Any]) -> Call | None:
        """None: an item without what a call must have, which nobody checked."""
        if kind == "function_call":
            return self._make("", item["call_id"], item["name"], item.get("arguments"))
        call_id = item.get("call_id")
        if not isinstance(call_id, str):
            return None
        if kind == "custom_tool_call":
            name, given = str(item.get("name")), as_text(item.get("input"))
            return self._make(kind, call_id, name, given, is_custom=True)
        name, holder = _OWN_TOOLS[kind]
        return self._make(kind, call_id, name, item.get(holder), native=item)

    def _make(self, kind: str, id: str, name: str, arguments: Any, **more: Any) -> Call:
        call = Call(self.sequence, len(self.made), id, name, arguments, **more)
        self.made.append((Key(kind, id), call))
        return call


def _results(body: Mapping[str, Any], item: Mapping[str, Any] | None) -> list[tuple[Key, Result]]:
    found = [
        (Key("", part["tool_use_id"]), _result(part))
        for part in _listed(body)
        if part.get("type") == "tool_result"
    ]
    if body.get("role") == "tool" and isinstance(body.get("tool_call_id"), str):
        found.insert(0, (Key("", body["tool_call_id"]), _result(body)))
    return found if item is None else [*found, *_answers(item)]


def _result(given: Mapping[str, Any]) -> Result:
    return Result(parts_of(given.get("content")), is_error=given.get("is_error") is True)


def _answers(item: Mapping[str, Any]) -> Iterator[tuple[Key, Result]]:
    kind = str(item.get("type"))
    if kind == "function_call_output":
        if item.get("call_id") is not None:
            yield Key("", item["call_id"]), Result(_output(item.get("output")))
    elif kind in _ANSWERS:
        call_id = item.get("call_id") or item.get("id")  # a local shell names its call so
        if isinstance(call_id, str):
            native = item if _ANSWERS[kind] in _OWN_TOOLS else None
            yield Key(_ANSWERS[kind], call_id), Result(_output(item.get("output")), native=native)


def _output(output: Any) -> list[Part]:
    """Of items nothing was checked: what is no list of parts is said as JSON."""
    parts = output if isinstance(output, list) else [output]
    if output is None or isinstance(output, str) or all(_has_type(part) for part in parts):
        return parts_of(output)
    return [Text(as_text(output))]


def _has_type(part: Any) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("type"), str)


def _listed(body: Mapping[str, Any]) -> list[Any]:
    content = body.get("content")
    return content if isinstance(content, list) else []


def _only_answers(body: Mapping[str, Any]) -> bool:
    parts = _listed(body)
    answers = all(part.get("type") == "tool_result" for part in parts)
    return bool(parts) and answers and not body.get("tool_calls")


def _part(part: Any, calls: _Calls | None) -> list[Part]:
    if not _has_type(part):
        return [Text(as_text(part))] if part else []
    kind = part["type"]
    if kind == "tool_result":
        return []
    if kind == "tool_use" and calls is not None:
        call = calls.of_block(part)
        return [call] if call else []
    return _plain_part(kind, part)


def _plain_part(kind: str, part: Mapping[str, Any]) -> list[Part]:
    if kind in _THOUGHTS:
        return [Native(ANTHROPIC, part, is_thought=True)]
    if kind == "server_tool_use" or kind.endswith("_tool_result"):
        return [Native(ANTHROPIC, part)]
    if read := _MEDIA.get(kind):
        return [read(part)]
    text = part.get("refusal" if kind == "refusal" else "text")
    if isinstance(text, str):
        return [Text(text)] if text else []
    return [note(kind)]


_THOUGHTS = {"thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text"}
_MEDIA: dict[str, Callable[[Mapping[str, Any]], Part]] = {
    "image_url": media.picture_of_chat,
    "input_image": media.picture_of_chat,
    "computer_screenshot": media.picture_of_chat,
    "image": media.picture_of_blocks,
    "file": media.file_of_chat,
    "input_file": media.file_of_chat,
    "document": media.document_of_blocks,
    "input_audio": media.sound_of_chat,
}
