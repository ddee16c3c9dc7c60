"""Statements of the hot paths: written with the ORM like all others, compiled once, then executed.

To build a queryset and to compile it takes several times as long as to execute it. What repeats
for every request is therefore prepared: the queryset stays the only place that says what is read,
and a request only brings the values::

    _BY_ID = Prepared(lambda given: Session.objects.filter(pk=given("session_id")))
    session = _BY_ID.first(session_id="sess_…")

What is not a value but changes the SQL (an order, a limit, which filters there are) is its *shape*:
arguments of the function beside ``given``, and one compilation for each. There must be few.
"""

import re
import threading
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Model, QuerySet
from django.db.models.query import ModelIterable

Row = TypeVar("Row")

_MOST_SHAPES = 100


# Slice by this, and bring the value ``limit``: Django has no other way to leave a limit open. In
# subqueries, too, and as an offset: ``[LIMIT : LIMIT + 1]`` is the row behind so many.
LIMIT = 2_147_483_629
_WORD = re.compile(r"\w*", re.ASCII)
_PLACES = re.compile(rf"%s|%\(\w+\)s|\b{LIMIT}\b")


class Given(Expression):
    """A value that each execution brings, by its name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", [self]


class GivenList(Given):
    """Values for an ``IN``: as many as an execution brings, but for none.

    The last one is repeated up to a power of two: databases keep the plan of each text that they
    are sent, and there are only so many lengths.
    """

    @property
    def place(self) -> str:
        return f"%({self.name})s"

    def padded(self, values: Collection[Any]) -> list[Any]:
        found = list(values)
        return found + found[-1:] * ((1 << (len(found) - 1).bit_length()) - len(found))

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return self.place, [self]


@dataclass(frozen=True, slots=True)
class _Statement:
    sql: str
    parameters: Sequence[Any]
    shape: Callable[[list[tuple[Any, ...]]], list[Any]]

    def execute(self, values: dict[str, Any]) -> list[Any]:
        connection = _connection()
        adapted = connection.ops.adapt_datetimefield_value
        values = {
            name: adapted(value) if isinstance(value, datetime) else value
            for name, value in values.items()
        }
        sql, bound = self.sql, []
        for found in self.parameters:
            if isinstance(found, GivenList):
                several = found.padded(values[found.name])
                sql = sql.replace(found.place, ", ".join(["%s"] * len(several)), 1)
                bound += several
            else:
                bound.append(values[found.name] if isinstance(found, Given) else found)
        with connection.cursor() as cursor:
            cursor.execute(sql, bound)
            return self.shape(cursor.fetchall())


@dataclass(frozen=True, slots=True)
class Listing:
    """What is to be read in pages: a prepared query, in an order of its own.

    ``build`` is called with `Given`, ``order`` and ``shape``, and makes the ordered queryset.
    """

    model: type[Model]
    build: Callable[..., QuerySet[Any, Any]]
    order: tuple[str, ...]
    shape: tuple[Hashable, ...]
    values: dict[str, Any]


class Prepared(threading.local, Generic[Row]):
    """A queryset by its shape and its values; compiled once for each shape and thread.

    Per thread, as Django's connections are, which a compiled query holds on to.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Row]]) -> None:
        self._build = build
        self._statements: dict[tuple[Hashable, ...], _Statement] = {}

    def all(self, *shape: Hashable, **values: Any) -> list[Row]:
        """All rows, as iterating over the queryset would give them."""
        statement = self._statements.get(shape)
        if statement is None:
            if len(self._statements) == _MOST_SHAPES:  # clients choose among filters
                self._statements.clear()
            statement = self._statements[shape] = _compiled(self._build(Given, *shape))
        return statement.execute(values)

    def first(self, *shape: Hashable, **values: Any) -> Row | None:
        """The first row; the queryset orders and limits where there may be several."""
        return next(iter(self.all(*shape, **values)), None)

    def queryset(self, *shape: Hashable) -> "QuerySet[Any, Row]":
        """What it is made of, with `Given` in place of values: for tests that read plans."""
        return self._build(Given, *shape)


def _compiled(queryset: QuerySet[Any, Any]) -> _Statement:
    compiler = queryset.query.get_compiler(connection=_connection())
    sql, parameters = _written_out(*compiler.as_sql())
    converters = compiler.get_converters([column for column, *_ in compiler.select])

    def converted(rows: list[tuple[Any, ...]]) -> Any:
        return compiler.apply_converters(rows, converters) if converters else rows

    if not issubclass(queryset._iterable_class, ModelIterable):
        make = getattr(queryset._iterable_class, "make", tuple)
        return _Statement(sql, parameters, lambda rows: list(map(make, converted(rows))))
    if compiler.klass_info.get("related_klass_infos"):
        raise NotImplementedError("a prepared query loads no related rows")
    first, *_, last = compiler.klass_info["select_fields"]
    names = [compiler.select[index][0].target.attname for index in range(first, last + 1)]
    notes = list(compiler.annotation_col_map.items())
    model, alias = queryset.model, queryset.db

    def instances(rows: list[tuple[Any, ...]]) -> list[Any]:
        found = []
        for row in converted(rows):
            instance = model.from_db(alias, names, row[first : last + 1])
            for name, index in notes:
                setattr(instance, name, row[index])
            found.append(instance)
        return found

    return _Statement(sql, parameters, instances)


def _written_out(sql: str, parameters: Sequence[Any]) -> tuple[str, list[Any]]:
    """The statement with a parameter where `LIMIT` stands, and with its constants as literals: of
    them there is nothing to bind, and a planner can prove by them that a partial index serves."""
    known, bound = iter(parameters), []

    def literal_or_place(place: re.Match[str]) -> str:
        value = Given("limit") if place[0] == str(LIMIT) else next(known)
        if isinstance(value, str) and _WORD.fullmatch(value):
            return f"'{value}'"
        if isinstance(value, int) and not isinstance(value, bool):
            return f"{value:d}"
        bound.append(value)
        return place[0].replace(str(LIMIT), "%s")

    return _PLACES.sub(literal_or_place, sql), bound


def _connection() -> BaseDatabaseWrapper:
    """This thread's, and not `django.db.connection`, which looks it up for every attribute."""
    return connections[DEFAULT_DB_ALIAS]
