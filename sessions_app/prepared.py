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
from django.db.models.query import ModelIterable, ValuesListIterable

from .rows import instance

Row = TypeVar("Row")
_Tuples = list[tuple[Any, ...]]

_MOST_SHAPES = 100

# Slice by this, and bring the value ``limit``: Django has no other way to leave a limit open. In
# subqueries, too, and as an offset: ``[GIVEN_LIMIT : GIVEN_LIMIT + 1]`` is the row behind so many.
# It is looked for in the SQL, so it is a number that no queryset says for another reason.
GIVEN_LIMIT = 2_147_483_629
_WORD = re.compile(r"\w*", re.ASCII)
_PLACES = re.compile(rf"%s|%\(\w+\)s|\b{GIVEN_LIMIT}\b")


class Given(Expression):
    """A value that each execution brings, by its name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", [self]


class GivenList(Given):
    """Values for an ``IN``, at least one: ``filter(pk__in=[GivenList("ids")])``.

    The last one is repeated up to a power of two, since databases keep the plan of each text that
    they are sent: so there are few.
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
    load: Callable[[_Tuples], list[Any]]

    def execute(self, values: dict[str, Any]) -> list[Any]:
        connection = _connection()
        adapted = connection.ops.adapt_datetimefield_value
        sql, bound = self._bind(
            {
                name: adapted(value) if isinstance(value, datetime) else value
                for name, value in values.items()
            }
        )
        with connection.cursor() as cursor:
            cursor.execute(sql, bound)
            return self.load(cursor.fetchall())

    def _bind(self, values: dict[str, Any]) -> tuple[str, list[Any]]:
        sql, bound = self.sql, []
        for parameter in self.parameters:
            if isinstance(parameter, GivenList):
                several = parameter.padded(values[parameter.name])
                sql = sql.replace(parameter.place, ", ".join(["%s"] * len(several)), 1)
                bound += several
            elif isinstance(parameter, Given):
                bound.append(values[parameter.name])
            else:
                bound.append(parameter)
        return sql, bound


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


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read in pages by a function of its own, in the order of one unique key.

    ``read(key, backward, inclusive, limit)`` gives the rows on one side of a key, the nearest
    first; None: from the beginning.
    """

    model: type[Model]
    order: tuple[str]
    read: Callable[[Any, bool, bool, int], list[Any]]


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
    kind = queryset._iterable_class
    to_row = _instance_maker(queryset, compiler) if issubclass(kind, ModelIterable) else _make(kind)

    def load(rows: _Tuples) -> list[Any]:
        return [*map(to_row, compiler.apply_converters(rows, converters) if converters else rows)]

    return _Statement(sql, parameters, load)


def _make(kind: Any) -> Callable[[tuple[Any, ...]], Any]:
    """How `values_list`, and what `sessions_app.querysets` makes of it, makes a row of a tuple."""
    if not issubclass(kind, ValuesListIterable):
        raise NotImplementedError("a prepared query loads instances or tuples")
    make: Callable[[tuple[Any, ...]], Any] = getattr(kind, "make", tuple)
    return make


def _instance_maker(
    queryset: QuerySet[Any, Any], compiler: Any
) -> Callable[[tuple[Any, ...]], Model]:
    """What `ModelIterable` does, without what only related rows need."""
    if compiler.klass_info.get("related_klass_infos"):
        raise NotImplementedError("a prepared query loads no related rows")
    first, *_, last = compiler.klass_info["select_fields"]
    names = [compiler.select[index][0].target.attname for index in range(first, last + 1)]
    annotations = list(compiler.annotation_col_map.items())
    model, alias = queryset.model, queryset.db

    def to_instance(row: tuple[Any, ...]) -> Model:
        values = dict(zip(names, row[first : last + 1], strict=True))
        values |= {name: row[index] for name, index in annotations}
        return instance(model, values, alias=alias)

    return to_instance


def _written_out(sql: str, parameters: Sequence[Any]) -> tuple[str, list[Any]]:
    """The statement with a parameter where `GIVEN_LIMIT` stands, and its constants as literals: of
    them there is nothing to bind, and a planner can prove by them that a partial index serves."""
    known, bound = iter(parameters), []

    def literal_or_place(place: re.Match[str]) -> str:
        value = Given("limit") if place[0] == str(GIVEN_LIMIT) else next(known)
        if isinstance(value, str) and _WORD.fullmatch(value):
            return f"'{value}'"
        if isinstance(value, int) and not isinstance(value, bool):
            return f"{value:d}"
        bound.append(value)
        return place[0].replace(str(GIVEN_LIMIT), "%s")

    return _PLACES.sub(literal_or_place, sql), bound


def _connection() -> BaseDatabaseWrapper:
    """This thread's, and not `django.db.connection`, which looks it up for every attribute."""
    return connections[DEFAULT_DB_ALIAS]
