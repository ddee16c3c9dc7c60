"""Whether the APIs of model providers would take a conversation.

The shapes are judged by the request types of the official packages, with no key that they do not
name; the order, which types cannot say, by rules of our own: what the APIs document, and refuse.
"""

import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Literal

from anthropic.types import ContentBlockParam
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

PROVIDERS = ("openai_chat", "openai_responses", "anthropic")


class AnthropicTurn(TypedDict):
    """As the package's, without the classes of answers, which take any key."""

    role: Literal["user", "assistant"]
    content: list[ContentBlockParam]


_TYPES: dict[str, Any] = {
    "openai_chat": list[ChatCompletionMessageParam],
    "openai_responses": list[ResponseInputItemParam],
    "anthropic": list[AnthropicTurn],
}


@cache
def _adapter(format: str) -> TypeAdapter[Any]:
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    return TypeAdapter(_TYPES[format], config=config)


def check_types(format: str, messages: list[dict[str, Any]]) -> None:
    """Raises pydantic's ValidationError. The contract's mark is taken off first."""
    _exhaust(_adapter(format).validate_python(unmarked(messages), strict=True))


def unmarked(value: Any) -> Any:
    """Without ``"synthetic": true``: the one key that no API knows."""
    if isinstance(value, dict):
        is_result = value.get("role") == "tool" or "type" in value
        left_out = "synthetic" if is_result and value.get("synthetic") is True else None
        return {key: unmarked(each) for key, each in value.items() if key != left_out}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


def _exhaust(value: Any) -> None:
    """What is typed as iterable is validated only while it is iterated."""
    if isinstance(value, dict):
        for each in value.values():
            _exhaust(each)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for each in value:
            _exhaust(each)


def synthetic(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All results that are marked, in any format."""
    blocks = [
        block
        for message in messages
        if isinstance(message.get("content"), list)
        for block in message["content"]
    ]
    return [each for each in [*messages, *blocks] if each.get("synthetic") is True]


def answered(format: str, messages: list[dict[str, Any]]) -> list[tuple[Any, Any, bool]]:
    """Each call's arguments (a string, or Anthropic's object) with what its result says, and
    whether that is marked, in order of the calls."""
    calls: dict[str, Any] = {}
    found: list[tuple[Any, Any, bool]] = []
    for each in _each_call_and_result(format, messages):
        call_id = each.get("call_id") or each.get("tool_call_id") or each.get("tool_use_id")
        if call_id is None or each.get("type") in _CALLS:
            calls[call_id or each["id"]] = each
        else:
            said = each.get("output", each.get("content", ""))
            found.append((_arguments(calls[call_id]), said, each.get("synthetic") is True))
    return found


def _each_call_and_result(format: str, messages: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    for message in messages:
        if format == "anthropic":
            kinds = ("tool_use", "tool_result")
            yield from (block for block in message["content"] if block["type"] in kinds)
        elif format == "openai_responses":
            yield from [message] if message["type"].rpartition("_")[2] in ("call", "output") else []
        else:
            yield from message.get("tool_calls", ())
            yield from [message] if message["role"] == "tool" else []


def _arguments(call: dict[str, Any]) -> Any:
    inner = call.get(call["type"], call)
    return inner["arguments"] if "arguments" in inner else inner["input"]


def check(format: str, messages: list[dict[str, Any]], system: str | None = None) -> None:
    """Assert that this API takes the conversation; an empty one waits for its first message."""
    check_types(format, messages)
    {
        "openai_chat": check_openai_chat,
        "openai_responses": check_openai_responses,
        "anthropic": check_anthropic,
    }[format](messages)
    assert (system is not None) == (format == "anthropic")
    json.dumps(messages, allow_nan=False)


def check_openai_chat(messages: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    for message in messages:
        content, calls = message.get("content"), message.get("tool_calls")
        assert content != []
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])  # of the message just before, each once
            continue
        assert waiting == [], f"not answered at once: {waiting}"
        assert isinstance(content, str | list) or (message["role"] == "assistant" and calls)
        assert calls is None or calls
        waiting = [call["id"] for call in calls or ()]
        assert len(set(waiting)) == len(waiting)
        for call in calls or ():
            assert 1 <= len(call["id"]) <= 40
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call[call["type"]]["name"])
    assert waiting == []


_OWN_CALLS = ("local_shell_call", "shell_call", "apply_patch_call", "computer_call")
_CALLS = ("function_call", "custom_tool_call", *_OWN_CALLS)


def check_openai_responses(items: list[dict[str, Any]]) -> None:
    open_calls: dict[str, str] = {}
    seen: set[str] = set()
    for item, after in zip(items, [*items, None][1:], strict=True):
        kind = item["type"]
        if kind in _CALLS:
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["call_id"])
            assert item["call_id"] not in seen
            seen.add(item["call_id"])
            open_calls[item["call_id"]] = kind
        elif kind.endswith("_output"):
            call_id = item["call_id"] if "call_id" in item else item["id"]
            assert f"{open_calls.pop(call_id)}_output" == kind
        elif kind == "message":
            assert item["content"]
            if item["role"] == "assistant":
                assert isinstance(item["content"], str)
            else:
                assert not open_calls, "somebody speaks between a call and its output"
        elif kind == "reasoning":
            assert after is not None, "a thought that nothing follows"
            assert after.get("role", "assistant") == "assistant"
            assert not after["type"].endswith("_output")
    assert not open_calls


def check_anthropic(messages: list[dict[str, Any]]) -> None:
    roles = [message["role"] for message in messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)
    used: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        blocks = message["content"]
        assert blocks
        results = [block for block in blocks if block["type"] == "tool_result"]
        assert blocks[: len(results)] == results, "results do not come first"
        assert sorted(block["tool_use_id"] for block in results) == sorted(waiting)
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert not used.intersection(waiting)
        assert len(set(waiting)) == len(waiting)
        used.update(waiting)
        _check_blocks(message["role"], blocks)
    assert waiting == []
    if messages and messages[-1]["role"] == "assistant":
        last = messages[-1]["content"][-1]
        assert last.get("text", "") == last.get("text", "").rstrip()


def _check_blocks(role: str, blocks: list[dict[str, Any]]) -> None:
    ours = {"assistant": ("tool_use", "thinking", "redacted_thinking"), "user": ("tool_result",)}
    for block in blocks:
        kind = block["type"]
        assert all(kind not in kinds for side, kinds in ours.items() if side != role)
        if kind == "text":
            assert block["text"].strip()
        if kind == "tool_use":
            assert re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"])
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["name"])
        if kind == "tool_result":
            _check_result(block)
        assert kind != "image" or role == "user"
    assert blocks[-1]["type"] not in ("thinking", "redacted_thinking")


def _check_result(block: dict[str, Any]) -> None:
    content = block.get("content", "")
    texts = [content] if isinstance(content, str) else [part.get("text") for part in content]
    if block.get("is_error"):
        assert all(text and text.strip() for text in texts)
        assert texts
    elif not isinstance(content, str):
        assert all(text is None or text.strip() for text in texts)
