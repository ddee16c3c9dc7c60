"""Surveys: the sizes and links by which is chosen what to load, of several tables in one statement.

Each *part* is a queryset whose rows are reduced to the same five columns; a `union` of parts is a
query for `sessions_app.prepared`, and `by_part` takes its rows apart again. A part cannot be
sliced or ordered (SQLite refuses it inside a compound): it is bounded by a subquery, and whoever
reads it sorts.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Expression, QuerySet, Value
from django.db.models.expressions import Combinable

# Key, number, other, text: no named tuple, since a window looks at hundreds of them.
Entry = tuple[str, int, int, str]
Survey = dict[str, list[Entry]]

_NO_TEXT = Value("")
_NO_NUMBER = Value(0)


def part(
    name: str,
    rows: QuerySet[Any, Any],
    *,
    key: Combinable | Expression = _NO_TEXT,
    number: Combinable | Expression = _NO_NUMBER,
    other: Combinable | Expression = _NO_NUMBER,
    text: Combinable | Expression = _NO_TEXT,
) -> QuerySet[Any, Any]:
    """These rows as entries of a survey, under the name of their part.

    What is left out is empty, since databases that compare the types of a union's columns know
    none of a bare NULL.
    """
    return rows.values_list(Value(name), key, number, other, text)


def union(parts: Sequence[QuerySet[Any, Any]]) -> QuerySet[Any, Any]:
    """All rows of querysets with the same columns, in no order."""
    first, *more = parts
    return first.union(*more, all=True) if more else first


def by_part(rows: Iterable[tuple[str, str, int, int, str]]) -> Survey:
    """The entries of each part, without its name; a part without entries is an empty list."""
    found: Survey = defaultdict(list)
    for row in rows:
        found[row[0]].append(row[1:])
    return found
