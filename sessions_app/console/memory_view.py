"""Working memory as a person reads it, and what a revision changed."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from ..jsontext import JSONText
from ..models import WorkingMemoryRevision
from .markdown import highlighted, markdown
from .terminal import plain
from .transcript.parts import FOLDED_CHARACTERS, value_text
from .values import visible

LABELS = {
    "goal": _("Goal"),
    "next_action": _("Next action"),
    "plan": _("Plan"),
    "completed": _("Completed"),
    "errors": _("Errors"),
    "important_files": _("Important files"),
    "extra": _("Extra"),
}
_MOST_ITEMS = 200
_MOST_CHANGES = 20
_ITEM_CHARACTERS = 1_000


class Field(NamedTuple):
    name: str
    label: Any
    html: Any = ""
    items: Sequence[str] = ()
    more: int = 0


class Change(NamedTuple):
    label: Any
    added: Sequence[str]
    removed: Sequence[str]
    more: int


class Revision(NamedTuple):
    revision: WorkingMemoryRevision
    changes: Sequence[Change]


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
    documents = [_document(each.memory) for each in revisions] + [{}]
    return [
        Revision(revisions[index], _changes(documents[index + 1], documents[index]))
        for index in range(count)
    ]


def _document(memory: JSONText) -> dict[str, Any]:
    value = memory.value
    return value if isinstance(value, dict) else {}


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    found = []
    for name, label in LABELS.items():
        old, new = _lines(before.get(name)), _lines(after.get(name))
        if old == new:
            continue
        added, removed = _without(new, old), _without(old, new)
        more = max(0, len(added) - _MOST_CHANGES) + max(0, len(removed) - _MOST_CHANGES)
        found.append(Change(label, added[:_MOST_CHANGES], removed[:_MOST_CHANGES], more))
    return found


def _without(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    known = set(others)
    return [visible(each[:_ITEM_CHARACTERS]) for each in lines if each not in known]


def _lines(value: Any) -> list[str]:
    """A list's items; of an object, one line for each key; a text as it is."""
    if isinstance(value, list):
        return [str(item) for item in value]
    if isinstance(value, dict):
        return [f"{key}: {value_text(item)}" for key, item in value.items()]
    return [str(value)] if value else []
