"""Working memory as a person reads it, and what a revision changed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from ..models import WorkingMemoryRevision
from .markdown import highlighted, markdown
from .terminal import plain
from .transcript.parts import FOLDED_CHARACTERS, value_text
from .values import cut, visible

LABELS = {
    "goal": _("Goal"),
    "next_action": _("Next action"),
    "plan": _("Plan"),
    "completed": _("Completed"),
    "errors": _("Errors"),
    "important_files": _("Important files"),
    "extra": _("Extra"),
}
Before = WorkingMemoryRevision | None
_MOST_ITEMS = 200
_MOST_LINES = 50
_ITEM_CHARACTERS = 1_000


class Field(NamedTuple):
    name: str
    label: Any
    html: Any = ""
    items: Sequence[str] = ()
    more: int = 0


class Line(NamedTuple):
    """``change`` is kept, added or removed."""

    change: str
    text: str


class Comparison(NamedTuple):
    """A field before and after: what is gone, then what is there."""

    label: Any
    lines: Sequence[Line]
    hidden: int
    is_changed: bool


class Revision(NamedTuple):
    revision: WorkingMemoryRevision
    changes: Sequence[Comparison]


def shown_memory(memory: Mapping[str, Any]) -> list[Field]:
    return [_field(name, memory.get(name)) for name in LABELS]


def _field(name: str, value: Any) -> Field:
    label = LABELS[name]
    if isinstance(value, list):
        items = [visible(str(item)[:_ITEM_CHARACTERS]) for item in value[:_MOST_ITEMS]]
        return Field(name, label, items=items, more=max(0, len(value) - _MOST_ITEMS))
    if isinstance(value, dict):
        text = value_text(value) if value else ""
        return Field(name, label, highlighted(visible(text[: FOLDED_CHARACTERS * 4]), "json"))
    text = plain(str(value or ""))[: FOLDED_CHARACTERS * 4]
    return Field(name, label, markdown(visible(text)) if text else "")


def revisions_of(revisions: Sequence[WorkingMemoryRevision], *, count: int) -> list[Revision]:
    """The first ``count``, newest first, each compared with the next."""
    pairs = zip(revisions[:count], [*revisions[1:], None], strict=False)
    return [Revision(each, _changes(before, each)) for each, before in pairs]


def _changes(before: Before, after: WorkingMemoryRevision) -> list[Comparison]:
    found = compared(before, after, with_kept=False)
    return [each for each in found if each.is_changed]


def compared(before: Before, after: Before, *, with_kept: bool = True) -> list[Comparison]:
    """Every field, whether or not anything changed; ``with_kept`` also what stayed in it."""
    old, new = _document(before), _document(after)
    return [
        _comparison(label, _lines(old.get(name)), _lines(new.get(name)), with_kept)
        for name, label in LABELS.items()
    ]


def _document(revision: Before) -> dict[str, Any]:
    value = revision.memory.value if revision else None
    return value if isinstance(value, dict) else {}


def _comparison(label: Any, old: Sequence[str], new: Sequence[str], with_kept: bool) -> Comparison:
    """Only what is shown becomes lines: there may be tens of thousands."""
    staying, known = set(new), set(old)
    found = [("removed", text) for text in old if text not in staying]
    if with_kept:
        found += [("kept" if text in known else "added", text) for text in new]
    else:
        found += [("added", text) for text in new if text not in known]
    shown = [Line(change, cut(text, _ITEM_CHARACTERS)) for change, text in found[:_MOST_LINES]]
    return Comparison(label, shown, len(found) - len(shown), old != new)


def _lines(value: Any) -> list[str]:
    """A list's items; of an object, one line for each key; a text as it is."""
    if isinstance(value, list):
        return [str(item) for item in value]
    if isinstance(value, dict):
        return [f"{key}: {_in_short(item)}" for key, item in value.items()]
    return [str(value)] if value else []


def _in_short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
