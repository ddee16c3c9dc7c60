"""Tool calls and results, found in messages of every form and tied to each other.

Forms: chat messages (``tool_calls``; role ``tool``), content blocks (``tool_use``;
``tool_result``), provider-native items (``function_call``; ``function_call_output``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidRequest
from ..jsontext import JSONText

MAX_TOOL_CALL_ID = 2048
MAX_TOOL_NAME = 255


@dataclass(frozen=True, slots=True)
class CallDraft:
    """A call as a message announces it."""

    tool_call_id: str
    name: str
    arguments: JSONText | None


@dataclass(frozen=True, slots=True)
class ResultDraft:
    """A result as a message gives it; ``pointer`` names it in errors."""

    tool_call_id: str
    content: JSONText
    is_error: bool
    pointer: str


def calls_in(body: Mapping[str, Any], *, pointer: str) -> list[CallDraft]:
    """The calls that a message announces, in their order.

    Raises:
        InvalidRequest: a call without a usable id, name or arguments.
    """
    calls = body.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise InvalidRequest.at(f"{pointer}/tool_calls", "must be a list")
    if calls and body.get("role") != "assistant":
        raise InvalidRequest.at(f"{pointer}/tool_calls", "only an assistant message makes calls")
    drafts = [
        _chat_call(call, f"{pointer}/tool_calls/{index}") for index, call in enumerate(calls or [])
    ]
    if body.get("role") == "assistant":
        drafts += [
            _call(block.get("id"), block.get("name"), block.get("input"), path)
            for path, block in _blocks(body, "tool_use", pointer)
        ]
    item = body.get("item") or {}
    if item.get("type") == "function_call":
        path = f"{pointer}/item"
        drafts.append(_call(item.get("call_id"), item.get("name"), item.get("arguments"), path))
    return drafts


def results_in(body: Mapping[str, Any], *, pointer: str) -> list[ResultDraft]:
    """The results that a message gives, in their order.

    Raises:
        InvalidRequest: a result that names no call.
    """
    drafts = []
    if body.get("role") == "tool":
        given = body.get("tool_call_id")
        drafts.append(
            _result(given, body.get("content"), body.get("is_error"), pointer, "tool_call_id")
        )
    drafts += [
        _result(
            block.get("tool_use_id"),
            block.get("content"),
            block.get("is_error"),
            path,
            "tool_use_id",
        )
        for path, block in _blocks(body, "tool_result", pointer)
    ]
    item = body.get("item") or {}
    # One that names no call answers none: the API has such outputs, too.
    if item.get("type") == "function_call_output" and item.get("call_id") is not None:
        drafts.append(
            _result(item.get("call_id"), item.get("output"), None, f"{pointer}/item", "call_id")
        )
    return drafts


def _chat_call(call: Any, pointer: str) -> CallDraft:
    if not isinstance(call, Mapping):
        raise InvalidRequest.at(pointer, "must be an object")
    # "function" is the usual kind; others ("custom") carry the same two things by other names.
    kind = call.get("type", "function")
    inner = call.get(kind) if isinstance(kind, str) else None
    if not isinstance(inner, Mapping):
        raise InvalidRequest.at(f"{pointer}/function", "must be an object with name and arguments")
    arguments = inner.get("arguments", inner.get("input"))
    if kind == "function" and not isinstance(arguments, str):
        raise InvalidRequest.at(f"{pointer}/function/arguments", "must be a string")
    return _call(call.get("id"), inner.get("name"), arguments, pointer)


def _call(tool_call_id: Any, name: Any, arguments: Any, pointer: str) -> CallDraft:
    if not isinstance(name, str) or len(name) > MAX_TOOL_NAME:
        raise InvalidRequest.at(
            f"{pointer}/name", f"must be a string of at most {MAX_TOOL_NAME} characters"
        )
    return CallDraft(
        tool_call_id=check_tool_call_id(tool_call_id, f"{pointer}/id"),
        name=name,
        arguments=None if arguments is None else JSONText.of(arguments),
    )


def _result(
    tool_call_id: Any, content: Any, is_error: Any, pointer: str, id_name: str
) -> ResultDraft:
    path = f"{pointer}/{id_name}"
    return ResultDraft(
        tool_call_id=check_tool_call_id(tool_call_id, path),
        content=JSONText.of(content),
        is_error=is_error is True,
        pointer=path,
    )


def check_tool_call_id(value: Any, pointer: str) -> str:
    """A provider's id: any string (some local servers send an empty one), within the limit.

    Raises:
        InvalidRequest: no string, or too long.
    """
    if not isinstance(value, str) or len(value) > MAX_TOOL_CALL_ID:
        raise InvalidRequest.at(
            pointer, f"must be a string of at most {MAX_TOOL_CALL_ID} characters"
        )
    return value


def _blocks(
    body: Mapping[str, Any], kind: str, pointer: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    content = body.get("content")
    if isinstance(content, list):
        for index, part in enumerate(content):
            if part["type"] == kind:
                yield f"{pointer}/content/{index}", part
