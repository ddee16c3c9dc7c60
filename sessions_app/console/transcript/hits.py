"""What a search has found, in a line or two for each message."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...folding import fold, plain_text
from ...models import Message, ToolCall
from ...services.mentions import Mentions
from ..terminal import plain
from ..values import visible
from .cards import short_arguments
from .entries import label_of

_BEFORE, _AFTER = 60, 200
_MOST_CALLS = 10


class Snippet(NamedTuple):
    """A piece of a text; ``marked`` are the words that were looked for, if it has them."""

    before: str
    marked: str
    after: str


class Hit(NamedTuple):
    """``calls`` are the first that were found in it, by name and short arguments."""

    message: Message
    role: str
    label: str
    snippet: Snippet
    calls: list[tuple[str, str]]
    calls_left_out: int


def hits_of(mentions: Mentions, *, words: str) -> list[Hit]:
    return [_hit(message, mentions.calls, fold(words)) for message in mentions.messages]


def _hit(message: Any, calls: Iterable[ToolCall], folded: str) -> Hit:
    body = message.whole.value if message.whole else None
    said = body if isinstance(body, dict) else {}
    role, label = label_of(message, said)
    mine = [call for call in calls if call.message_sequence == message.sequence]
    shown = [
        (call.name, short_arguments(call.shown_arguments))  # type: ignore[attr-defined]
        for call in mine[:_MOST_CALLS]
    ]
    snippet = _snippet(_text(message, said), folded)
    return Hit(message, role, label, snippet, shown, len(mine) - len(shown))


def _text(message: Any, body: dict[str, Any]) -> str:
    """As it is spelt, where folding has left each character its place; else folded."""
    spelt = plain_text(body.get("content"))
    return plain(spelt if spelt and len(fold(spelt)) == len(spelt) else message.around)


def _snippet(text: str, folded: str) -> Snippet:
    place = max(0, fold(text).find(folded))
    end = place + len(folded) if folded in fold(text) else place
    begin = max(0, place - _BEFORE)
    before = ("…" if begin else "") + text[begin:place]
    after = text[end : end + _AFTER] + ("…" if len(text) > end + _AFTER else "")
    return Snippet(*(visible(each) for each in (before, text[place:end], after)))
