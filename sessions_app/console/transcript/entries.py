"""Messages in their order, with the marks between them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...models import Message, ToolCall
from ...services.transcript import TranscriptPage
from ..markdown import Budget
from ..values import cut, visible
from .cards import CallCard, card_of
from .parts import Block, blocks_of

IDLE_GAP = timedelta(minutes=30)
FOLDED_ROLES = {"system", "developer"}
ROLES = {
    "system": gettext_lazy("System"),
    "developer": gettext_lazy("Developer"),
    "user": gettext_lazy("User"),
    "assistant": gettext_lazy("Assistant"),
    "tool": gettext_lazy("Tool"),
}
_FIRST_LINE = 120


@dataclass(slots=True)
class Entry:
    """One message. ``calls`` are those that it made, ``results`` those that it answers and that
    are not on the page by themselves."""

    message: Message
    role: str
    label: str
    author: str = ""
    model: str = ""
    tokens: int | None = None
    first_line: str = ""
    blocks: list[Block] = field(default_factory=list)
    calls: list[CallCard] = field(default_factory=list)
    results: list[CallCard] = field(default_factory=list)
    calls_left_out: int = 0
    """More of them than are shown."""
    day: date | None = None
    gap: str = ""
    run: Any = None
    """The run that begins here."""
    leaves_run: bool = False
    is_partial: bool = False
    answers_nothing: bool = False
    """A result without its call: none is taken, so that other hands stored it."""

    @property
    def is_folded(self) -> bool:
        return self.role in FOLDED_ROLES

    @property
    def calls_at_once(self) -> int:
        return len(self.calls) + self.calls_left_out

    @property
    def is_empty(self) -> bool:
        return not (self.blocks or self.calls or self.results or self.calls_left_out)


def entries_of(page: TranscriptPage, *, runs: Mapping[str, Any]) -> list[Entry]:
    """What the page shows: a result stands with its call, if both are on it."""
    absorbed: dict[int, str] = {}
    for calls in page.calls.made.values():
        for call in calls:
            if call.result_sequence is not None:
                absorbed.setdefault(call.result_sequence, call.id)
    entries: list[Entry] = []
    budget = Budget()
    for message in page.messages:
        at = message.sequence
        entry = _entry(message, budget)
        entry.calls = _cards(page.calls.made.get(at, ()), absorbed)
        entry.results = [card_of(call) for call in page.calls.answered.get(at, ())]
        entry.calls_left_out = page.calls.left_out.get(at, 0)
        if entry.role == "tool" and entry.is_empty and at not in absorbed:
            _show_alone(entry, budget)
        if not (entry.is_empty and at in absorbed and message.removed_at is None):
            _drop_anchor(entries, at)
            entries.append(entry)
    _mark(entries, runs)
    return entries


def _show_alone(entry: Entry, budget: Budget) -> None:
    """Report PAIR-04: a result without its call, of which no card would show anything."""
    if entry.message.removed_at is None:
        entry.answers_nothing = True
        entry.blocks = blocks_of(entry.message.body.value, budget)


def _cards(calls: Iterable[ToolCall], absorbed: Mapping[int, str]) -> list[CallCard]:
    """The first of the calls that a message answers takes its place."""
    return [
        card_of(
            call,
            result_anchor=call.result_sequence
            if call.result_sequence is not None and absorbed.get(call.result_sequence) == call.id
            else None,
        )
        for call in calls
    ]


def _drop_anchor(entries: Iterable[Entry], sequence: int) -> None:
    """A message that says more than its results has its own place."""
    for entry in entries:
        entry.calls = [
            card._replace(result_anchor=None) if card.result_anchor == sequence else card
            for card in entry.calls
        ]


def _entry(message: Message, budget: Budget) -> Entry:
    body = message.body.value if message.removed_at is None else None
    said = body if isinstance(body, dict) else {}
    role, label = label_of(message, said)
    usage = said.get("usage")
    content = said.get("content")
    return Entry(
        message=message,
        role=role,
        label=label,
        author=visible(str(said.get("name") or "")[:80]),
        model=visible(str(said.get("model") or "")[:80]),
        tokens=_tokens(usage) if isinstance(usage, dict) else None,
        first_line=_first_line(content),
        is_partial=said.get("status") == "incomplete",
        blocks=blocks_of(said if role != "tool" or not message.role else _of_tool(said), budget),
    )


def _of_tool(body: Mapping[str, Any]) -> dict[str, Any]:
    """A result is shown by the card of its call; what it has beside text and data is not there."""
    content = body.get("content")
    parts = content if isinstance(content, list) else []
    pictures = [part for part in parts if str(part.get("type")) in {"image", "image_url"}]
    return {"content": pictures}


def label_of(message: Message, body: Mapping[str, Any]) -> tuple[str, str]:
    """Who speaks, as a role and in words."""
    role = _role(message, body)
    if message.through_sequence is not None:
        return role, _("Summary up to #%(sequence)d") % {"sequence": message.through_sequence}
    return role, str(ROLES.get(role, _("Item")))


def _role(message: Message, body: Mapping[str, Any]) -> str:
    if message.role:
        return message.role
    item = body.get("item") or {}
    said_by = str(item.get("role"))
    if item.get("type") == "message" and said_by in ROLES:
        return said_by
    if message.type == "reasoning" or message.type.endswith("_call"):
        return "assistant"
    return "tool" if message.type.endswith("_output") else "item"


def _tokens(usage: Mapping[str, Any]) -> int | None:
    counted = [
        usage.get(name)
        for name in ("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens")
    ]
    numbers = [each for each in counted if isinstance(each, int)]
    return sum(numbers) if numbers else None


def _first_line(content: Any) -> str:
    if isinstance(content, list):
        texts = (part.get("text") for part in content)
        content = next((text for text in texts if isinstance(text, str)), "")
    text = " ".join(str(content or "")[: _FIRST_LINE * 4].split())
    return visible(cut(text, _FIRST_LINE))


def _mark(entries: list[Entry], runs: Mapping[str, Any]) -> None:
    before: Entry | None = None
    for entry in entries:
        at, run_id = entry.message.created_at, entry.message.run_id
        if before is None or before.message.created_at.date() != at.date():
            entry.day = at.date()
        if before is not None:
            entry.gap = _gap(at, before.message.created_at)
        if run_id != (before.message.run_id if before else None):
            entry.run = runs.get(run_id) if run_id else None
            entry.leaves_run = run_id is None
        before = entry


def _gap(at: datetime, before: datetime) -> str:
    """How long nothing was said, if it was long."""
    length = at - before
    if length < IDLE_GAP:
        return ""
    minutes = int(length.total_seconds() // 60)
    for unit, text in (
        (1440, lambda n: ngettext("%(count)d day later", "%(count)d days later", n)),
        (60, lambda n: ngettext("%(count)d hour later", "%(count)d hours later", n)),
        (1, lambda n: ngettext("%(count)d minute later", "%(count)d minutes later", n)),
    ):
        if count := minutes // unit:
            return text(count) % {"count": count}
    return ""
