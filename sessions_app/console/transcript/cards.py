"""A tool call and its result, as one card."""

from typing import Any, NamedTuple

from django.utils.safestring import SafeString

from ...jsontext import JSONText
from ...models import ToolCall
from ...services.transcript import SHOWN_CALL_BYTES
from ...states import ToolCallStatus
from ..values import visible
from .parts import FOLDED_CHARACTERS, value_html, value_text

_SHORT = 120


class Value(NamedTuple):
    """An argument or a result; ``rest`` characters of it are folded away."""

    html: SafeString | str
    rest: int


class CallCard(NamedTuple):
    call: ToolCall
    status: ToolCallStatus
    short: str
    arguments: Value | None
    result: Value | None
    error: str
    is_large: bool
    """Too large to be read with a page."""
    result_anchor: int | None
    """The message that is shown in this card alone."""

    @property
    def is_open(self) -> bool:
        return self.status == ToolCallStatus.FAILED


def card_of(call: ToolCall, *, result_anchor: int | None = None) -> CallCard:
    arguments: JSONText | None = call.shown_arguments  # type: ignore[attr-defined]
    result: JSONText | None = call.shown_result  # type: ignore[attr-defined]
    return CallCard(
        call=call,
        status=ToolCallStatus(call.status),
        short=short_arguments(arguments),
        arguments=_value(arguments),
        result=_value(result),
        error=visible((call.error_message or "")[:FOLDED_CHARACTERS]),
        is_large=not getattr(call, "was_read", call.size <= SHOWN_CALL_BYTES),
        result_anchor=result_anchor,
    )


def short_arguments(arguments: JSONText | None) -> str:
    """On one line: of a document, its values."""
    if arguments is None:
        return ""
    value = arguments.value
    text = value if isinstance(value, str) else arguments.text
    return visible(" ".join(text[: _SHORT * 4].split())[:_SHORT])


def _value(stored: JSONText | None) -> Value | None:
    if stored is None:
        return None
    value = _readable(stored.value)
    text = value_text(value)
    if len(text) <= FOLDED_CHARACTERS:
        return Value(value_html(value), 0)
    return Value(value_html(text[:FOLDED_CHARACTERS]), len(text) - FOLDED_CHARACTERS)


def _readable(value: Any) -> Any:
    """Of a result that is a list of texts alone, the texts."""
    if isinstance(value, list) and value:
        texts = [part.get("text") if isinstance(part, dict) else None for part in value]
        said = [text for text in texts if isinstance(text, str)]
        if len(said) == len(value):
            return "\n".join(said)
    return value
