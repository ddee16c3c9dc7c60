"""Counts that stop: what a page says of a big table without walking through it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

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
    parts: list[str] = []
    params: list[Any] = []
    for index, (queryset, most) in enumerate(rows.values()):
        sql, values = queryset.order_by().values("pk")[: most + 1].query.sql_with_params()
        parts.append(f"SELECT {index}, count(*) FROM ({sql}) AS counted")  # noqa: S608
        params += values
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), params)
        found = dict(cursor.fetchall())
    return {
        name: bounded(found[index], most) for index, (name, (_, most)) in enumerate(rows.items())
    }
