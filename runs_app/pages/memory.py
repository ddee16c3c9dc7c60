"""What a run has changed in the working memory, field by field."""

from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from sessions_app.models import WorkingMemoryRevision

from ..services.inspection import MemoryChange

Promise = Any  # a lazy translation

_FIELDS: dict[str, Promise] = {
    "goal": _("Goal"),
    "plan": _("Plan"),
    "completed": _("Completed"),
    "errors": _("Errors"),
    "important_files": _("Important files"),
    "next_action": _("Next action"),
}
_OWN_KEYS = _("Own keys")
_MOST_ITEMS, _CHARACTERS = 50, 400


class Item(NamedTuple):
    """``change`` is kept, added or removed."""

    change: str
    text: str


class Field(NamedTuple):
    label: Promise
    items: list[Item]
    hidden: int
    is_changed: bool


def fields_of(change: MemoryChange) -> list[Field]:
    """The fields that hold anything, before or after."""
    before, after = _document(change.before), _document(change.after)
    fields = [_field(_FIELDS[name], before.get(name), after.get(name)) for name in _FIELDS]
    extra = [document.get("extra") or {} for document in (before, after)]
    own = [[f"{key}: {_text(value)}" for key, value in each.items()] for each in extra]
    return [each for each in (*fields, _field(_OWN_KEYS, *own)) if each.items]


def _document(revision: WorkingMemoryRevision | None) -> dict[str, Any]:
    value = revision.memory.value if revision else {}
    return value if isinstance(value, dict) else {}


def _field(label: Promise, before: Any, after: Any) -> Field:
    old, new = _items(before), _items(after)
    gone, known = set(new), set(old)
    items = [Item("removed", text) for text in old if text not in gone]
    items += [Item("kept" if text in known else "added", text) for text in new]
    shown = [Item(each.change, _cut(each.text)) for each in items[:_MOST_ITEMS]]
    return Field(label, shown, len(items) - len(shown), old != new)


def _items(value: Any) -> list[str]:
    if isinstance(value, list):
        return [_text(item) for item in value]
    return [_text(value)] if value else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _cut(text: str) -> str:
    return text[:_CHARACTERS] + ("…" if len(text) > _CHARACTERS else "")
