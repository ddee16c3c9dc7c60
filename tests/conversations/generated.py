"""Items of every kind, made of the official client's own request types."""

import types
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import typing_extensions
from hypothesis import strategies as st
from openai.types.responses import ResponseInputItemParam
from typing_extensions import is_typeddict

_TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20)
_NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
_SCALARS = st.none() | st.booleans() | st.integers() | _NUMBERS
JSON = st.recursive(
    _SCALARS | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=5,
)
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: _TEXTS,
    int: st.integers(),
    float: _NUMBERS,
    bool: st.booleans(),
    type(None): st.none(),
    object: JSON,
    Any: JSON,
}
# Which only a request has, and no conversation keeps.
_ONLY_ASKED = ("compaction_trigger",)


@cache
def kinds() -> dict[str, list[Any]]:
    """The request's types of each kind of item."""
    found: dict[str, list[Any]] = {}
    for shape in get_args(ResponseInputItemParam):
        hint = _bare(get_type_hints(shape, include_extras=True)["type"])
        for choice in get_args(hint) if get_origin(hint) is Union else (hint,):
            for kind in get_args(choice):
                if isinstance(kind, str) and kind not in _ONLY_ASKED:
                    found.setdefault(kind, []).append(shape)
    return found


def items(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """Items of a known kind; their ids are left out, for the caller to give."""
    shapes = st.one_of(*map(_of, kinds()[kind]))
    return shapes.map(lambda item: {**item, "type": kind}).map(_without_id)


def _without_id(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "id"}


def unknown_items() -> st.SearchStrategy[dict[str, Any]]:
    """Items that nobody has heard of, and messages with such parts."""
    part = _unknown()
    message = st.fixed_dictionaries(
        {
            "type": st.just("message"),
            "role": st.sampled_from(["user", "assistant", "system", "critic", "tool"]),
            "content": st.lists(part, max_size=3),
        },
        optional={"status": st.sampled_from(["completed", "incomplete", "in_progress"])},
    )
    return (_unknown() | message).map(_without_id)


def _unknown() -> st.SearchStrategy[dict[str, Any]]:
    kind = st.from_regex(r"new_[a-z_]{0,20}", fullmatch=True) | st.sampled_from(
        ["text", "tool_use", "tool_result", "image_url", "thinking"]
    )
    return st.dictionaries(_TEXTS, JSON, max_size=3).flatmap(
        lambda rest: kind.map(lambda name: {**rest, "type": name})
    )


@cache
def _of(hint: Any) -> st.SearchStrategy[Any]:
    hint = _bare(hint)
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin in (Literal, typing_extensions.Literal):
        return st.sampled_from(inner)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(_of, inner))
    if isinstance(origin, type) and issubclass(origin, dict):
        return st.dictionaries(_TEXTS, _of(inner[1]), max_size=2)
    if isinstance(origin, type) and issubclass(origin, (Sequence, Iterable)):
        return st.lists(_of(inner[0]), max_size=2)
    if is_typeddict(hint):
        return st.deferred(lambda: _of_keys(hint))
    raise NotImplementedError(hint)


def _of_keys(shape: Any) -> st.SearchStrategy[dict[str, Any]]:
    hints = get_type_hints(shape, include_extras=True)
    # Not `__required_keys__`: in a module whose annotations are strings, nothing is required.
    needed = {
        name
        for name, hint in hints.items()
        if get_origin(hint) is Required or (shape.__total__ and get_origin(hint) is not NotRequired)
    }
    return st.fixed_dictionaries(
        {name: _of(hint) for name, hint in hints.items() if name in needed},
        optional={name: _of(hint) for name, hint in hints.items() if name not in needed},
    )


def _bare(hint: Any) -> Any:
    while get_origin(hint) in (Required, NotRequired, typing_extensions.Annotated):
        hint = get_args(hint)[0]
    return hint
