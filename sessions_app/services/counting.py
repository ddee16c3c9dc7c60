"""Counts that stop: what a page says of a big table without walking through it."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet


class Bounded(NamedTuple):
    """So many, or with ``is_more`` at least so many."""

    number: int
    is_more: bool = False

    def __add__(self, other: Any) -> "Bounded":
        return Bounded(self.number + other.number, self.is_more or other.is_more)


def bounded(number: int, most: int) -> Bounded:
    return Bounded(min(number, most), number > most)


def count_all(rows: Mapping[str, tuple[QuerySet[Any], int]]) -> dict[str, Bounded]:
    """How many rows each queryset has, up to its limit; all in one statement."""
    limited = (queryset.order_by().values("pk")[: most + 1] for queryset, most in rows.values())
    found = dict(of_each("SELECT {index}, count(*) FROM ({rows}) AS counted", limited))
    return {
        name: bounded(found.get(index, 0), most)
        for index, (name, (_, most)) in enumerate(rows.items())
    }


def of_each(statement: str, querysets: Iterable[QuerySet[Any]]) -> list[tuple[Any, ...]]:
    """What this statement says of each queryset, in one round trip.

    In it ``{rows}`` stands for the queryset's own statement, ``{index}`` for its number.
    """
    parts: list[str] = []
    params: list[Any] = []
    for index, queryset in enumerate(querysets):
        try:
            sql, values = queryset.query.sql_with_params()
        except EmptyResultSet:  # what cannot match is no statement
            continue
        parts.append(statement.format(index=index, rows=sql))
        params += values
    if not parts:
        return []
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), params)
        return list(cursor.fetchall())
