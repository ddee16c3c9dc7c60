"""The statements that write rows: their texts, made once for each shape, and their values."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from itertools import chain, compress
from operator import is_not, itemgetter
from sqlite3 import SQLITE_LIMIT_VARIABLE_NUMBER
from typing import Any, NamedTuple

import orjson
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    AutoField,
    CharField,
    DateTimeField,
    ForeignKey,
    IntegerField,
    Model,
    TextField,
)


class Statement(NamedTuple):
    """SQL in the dialect of the connection, its values, and whose rows it writes."""

    sql: str
    values: list[Any]
    inserts: type[Model] | None = None
    updates: type[Model] | None = None


def insertions(
    connection: BaseDatabaseWrapper, rows: Sequence[Model], *, or_update: Sequence[str] = ()
) -> Iterable[Statement]:
    """Insert rows of one model, as many in a statement as it holds; the database makes no key.

    Of rows that are there already, the fields ``or_update`` are stored (by attribute name).
    """
    model = type(rows[0])
    written = (
        [_insert_row(connection.vendor, model, rows[0])]
        if len(rows) == 1
        else _insert_portions(connection, model, rows)
    )
    if not or_update:
        return (Statement(sql, values, inserts=model) for sql, values in written)
    conflict = _or_update(model, tuple(or_update))
    return (
        Statement(sql + conflict, values, inserts=model, updates=model) for sql, values in written
    )


def change(connection: BaseDatabaseWrapper, row: Model, names: Sequence[str]) -> Statement:
    """Store these fields of a row, by their attributes' names."""
    model = type(row)
    forms = _forms(connection, model)
    values = [forms.get(name, _itself)(getattr(row, name)) for name in names]
    return Statement(_change(model, tuple(names)), [*values, row.pk], updates=model)


def copies(
    connection: BaseDatabaseWrapper,
    model: type[Model],
    fresh: Mapping[str, str],
    given: Mapping[str, Any],
) -> Statement:
    """Insert a copy of each row whose key stands in ``fresh``, under the key that stands there for
    it, and with the values ``given`` (by attribute name) in place of its own."""
    forms = _forms(connection, model)
    given = {name: given[name] for name in _fields_of(model) if name in given}
    values = [forms.get(name, _itself)(value) for name, value in given.items() if value is not None]
    places = tuple((name, value is None) for name, value in given.items())
    keys = orjson.dumps(fresh).decode()
    return Statement(_copy(connection.vendor, model, places), [*values, keys], inserts=model)


# --- Of PostgreSQL alone ---


def together(statements: Sequence[Statement]) -> Statement:
    """One ``WITH`` of all of them. The order among them does not matter: keys between tables are
    checked at the transaction's end."""
    texts, values, *_ = zip(*statements, strict=True)
    return Statement(_with(texts), [*chain.from_iterable(values)])


@lru_cache(maxsize=256)
def _with(texts: tuple[str, ...]) -> str:
    *others, last = texts
    named = [f"w{number} AS ({each})" for number, each in enumerate(others)]
    return f"WITH {', '.join(named)} {last}" if named else last


# --- Their parts ---


@cache
def _names(model: type[Model]) -> tuple[str, ...]:
    return tuple(_fields_of(model))


def _forms(connection: BaseDatabaseWrapper, model: type[Model]) -> dict[str, Callable[[Any], Any]]:
    """How values of some columns are stored: those that a driver does not take as they are. To ask
    the field of each value takes longer than all that the driver does."""
    return _forms_on(connection.vendor, model)


@cache
def _forms_on(vendor: str, model: type[Model]) -> dict[str, Callable[[Any], Any]]:
    times, others = _special(model)
    return others if vendor == "postgresql" else others | dict.fromkeys(times, stored_moment)


@lru_cache(maxsize=64)
def stored_moment(value: datetime | None) -> Any:
    """A time (in UTC, as all of ours are) as a column of SQLite holds it; the rows of one write
    have mostly the same."""
    return connections[DEFAULT_DB_ALIAS].ops.adapt_datetimefield_value(value)


@cache
def _special(model: type[Model]) -> tuple[list[str], dict[str, Callable[[Any], Any]]]:
    """The names of times, and how what is neither a time nor plain is stored."""
    fields = {name: field for name, field in _fields_of(model).items() if not _is_plain(field)}
    times = [name for name, field in fields.items() if isinstance(field, DateTimeField)]
    return times, {n: field.get_prep_value for n, field in fields.items() if n not in times}


def _is_plain(field: Any) -> bool:
    return isinstance(field, CharField | IntegerField | ForeignKey) or type(field) is TextField


def _itself(value: Any) -> Any:
    return value


def _insert_portions(
    connection: BaseDatabaseWrapper, model: type[Model], rows: Sequence[Model]
) -> Iterator[tuple[str, list[Any]]]:
    write = _insert_items if connection.vendor == "postgresql" else _insert_rows
    names = _names(model)
    portion = _most_rows(connection, len(names))
    for start in range(0, len(rows), portion):
        given = map(itemgetter(*names), map(vars, rows[start : start + portion]))
        columns = dict(zip(names, map(list, zip(*given, strict=True)), strict=True))
        for name, form in _forms(connection, model).items():
            columns[name] = _formed(form, columns[name])
        yield write(model, [*columns.values()])


def _formed(form: Callable[[Any], Any], column: list[Any]) -> list[Any]:
    """The values as they are stored; what all rows have (their time) is looked at once."""
    first = column[0]
    if all(value is first for value in column):
        return [form(first)] * len(column)
    return [*map(form, column)]


def _insert_row(vendor: str, model: type[Model], row: Model) -> tuple[str, list[Any]]:
    """One row, as most are: without a look at each of its values in Python."""
    take, constants = _row_of(model)
    given = take(vars(row))
    is_bound = (*map(is_not, given, constants),)
    sql, forms = _insertion_of_row(vendor, model, is_bound)
    values = [*compress(given, is_bound)]
    for position, form in forms:
        values[position] = form(values[position])
    return sql, values


@cache
def _row_of(model: type[Model]) -> tuple[Callable[[dict[str, Any]], tuple[Any, ...]], list[Any]]:
    """What takes a row's values, and what most rows have of each that can stand in the text."""
    defaults = [field.get_default() for field in _fields_of(model).values()]
    return itemgetter(*_names(model)), [
        default if default is None or type(default) is int else _NO_CONSTANT for default in defaults
    ]


@lru_cache(maxsize=256)
def _insertion_of_row(
    vendor: str, model: type[Model], is_bound: tuple[bool, ...]
) -> tuple[str, list[tuple[int, Callable[[Any], Any]]]]:
    """The text, and how some of its parameters are stored, by their positions."""
    _, constants = _row_of(model)
    fields = _fields_of(model).values()
    typed = _typed if vendor == "postgresql" else _as_it_is
    places = [
        typed(field, _GIVEN) if bound else _literal(constant)
        for field, bound, constant in zip(fields, is_bound, constants, strict=True)
    ]
    forms = _forms(connections[DEFAULT_DB_ALIAS], model)
    bound = [*compress(_names(model), is_bound)]
    select = "SELECT {}" if vendor == "postgresql" else "VALUES ({})"
    return (
        f"{_into(model)} {select.format(', '.join(places))}",
        [(bound.index(name), form) for name, form in forms.items() if name in bound],
    )


def _literal(constant: int | None) -> str:
    return "NULL" if constant is None else f"{constant:d}"


def _insert_items(model: type[Model], columns: list[list[Any]]) -> tuple[str, list[Any]]:
    """The columns in which the rows differ as one document: so the text, which PostgreSQL plans
    once and keeps, is the same for any number of rows, and none of them is a parameter of its own.
    (Of arrays the driver escapes each item in Python, which takes longer than all the rest.)"""
    places = tuple(map(_place, columns))
    pairs = [*zip(_names(model), columns, places, strict=True)]
    values = [column[0] for _, column, place in pairs if place == _GIVEN]
    different = [(name, column) for name, column, place in pairs if place == _DIFFERENT]
    names = [name for name, _ in different]
    rows = zip(*(column for _, column in different), strict=True)
    items = orjson.dumps([dict(zip(names, row, strict=True)) for row in rows]).decode()
    return _insertion_of_items(model, places), [*values, items]


def _insert_rows(model: type[Model], columns: list[list[Any]]) -> tuple[str, list[Any]]:
    places = tuple(map(_place, columns))
    given = [column for column, _ in _bound(zip(columns, places, strict=True))]
    values = [value for row in zip(*given, strict=True) for value in row]
    return _insertion_of_rows(model, places, len(columns[0])), values


_GIVEN, _DIFFERENT, _NO_CONSTANT = "%s", "each", object()


def _place(column: list[Any]) -> str:
    """What stands in the text for a column: what most rows are made with stands there itself, for
    the driver keeps no statement of more than 50 parameters."""
    first = column[0]
    if column.count(first) < len(column):
        return _DIFFERENT
    if first is None:
        return "NULL"
    return "0" if first == 0 and type(first) is int else _GIVEN


def _bound(pairs: Iterable[tuple[list[Any], str]]) -> list[tuple[list[Any], str]]:
    """The columns whose values are parameters, with their places."""
    return [pair for pair in pairs if pair[1] in (_DIFFERENT, _GIVEN)]


@lru_cache(maxsize=256)
def _insertion_of_items(model: type[Model], places: tuple[str, ...]) -> str:
    pairs = [*zip(_fields_of(model).items(), places, strict=True)]
    written = [
        _quoted(name) if place == _DIFFERENT else _typed(field, place)
        for (name, field), place in pairs
    ]
    kinds = [
        f"{_quoted(name)} {_kind(field)}" for (name, field), place in pairs if place == _DIFFERENT
    ]
    items = f"json_to_recordset(%s::json) AS item({', '.join(kinds)})"
    return f"{_into(model)} SELECT {', '.join(written)} FROM {items}"  # noqa: S608 (names of ours)


def _as_it_is(_field: Any, place: str) -> str:
    return place


def _typed(field: Any, place: str) -> str:
    """What is no text for PostgreSQL, though for the driver it is, needs its type."""
    is_cast = place == _GIVEN and hasattr(field, "get_placeholder")
    return f"{place}::{_kind(field)}" if is_cast else place


def _kind(field: Any) -> str:
    """A column's type without a length: a cast would cut off what the column refuses."""
    return str(field.db_type(connections[DEFAULT_DB_ALIAS])).partition("(")[0]


@lru_cache(maxsize=256)
def _insertion_of_rows(model: type[Model], places: tuple[str, ...], count: int) -> str:
    row = f"({', '.join(_GIVEN if place == _DIFFERENT else place for place in places)})"
    return f"{_into(model)} VALUES {', '.join([row] * count)}"


@cache
def _copy(vendor: str, model: type[Model], given: tuple[tuple[str, bool], ...]) -> str:
    """``given``: what is given, in the order of the columns, and whether it is null."""
    fresh = "json_each_text(%s::json)" if vendor == "postgresql" else "json_each(%s)"
    table, key = _quoted(model._meta.db_table), _quoted(model._meta.pk.column)
    replaced = {name: "NULL" if is_null else _GIVEN for name, is_null in given}
    columns = [
        "fresh.value"
        if field.primary_key
        else replaced.get(name, f"original.{_quoted(field.column)}")
        for name, field in _fields_of(model).items()
    ]
    found = f"{fresh} AS fresh JOIN {table} AS original ON original.{key} = fresh.key"
    return f"{_into(model)} SELECT {', '.join(columns)} FROM {found}"  # noqa: S608 (names of ours)


@cache
def _or_update(model: type[Model], names: tuple[str, ...]) -> str:
    columns = [_quoted(_fields_of(model)[name].column) for name in names]
    changes = ", ".join(f"{column} = EXCLUDED.{column}" for column in columns)
    return f" ON CONFLICT ({_quoted(model._meta.pk.column)}) DO UPDATE SET {changes}"


def _into(model: type[Model]) -> str:
    columns = ", ".join(_quoted(field.column) for field in _fields_of(model).values())
    return f"INSERT INTO {_quoted(model._meta.db_table)} ({columns})"


@lru_cache(maxsize=256)
def _change(model: type[Model], names: tuple[str, ...]) -> str:
    columns = ", ".join(f"{_quoted(_fields_of(model)[name].column)} = %s" for name in names)
    table, key = _quoted(model._meta.db_table), _quoted(model._meta.pk.column)
    return f"UPDATE {table} SET {columns} WHERE {key} = %s"  # noqa: S608 (names of ours)


@cache
def _fields_of(model: type[Model]) -> dict[str, Any]:
    """By their attributes' names, without a key that the database makes: none may be set."""
    fields = model._meta.concrete_fields
    return {field.attname: field for field in fields if not isinstance(field, AutoField)}


def _quoted(name: str | None) -> str:
    return str(connections[DEFAULT_DB_ALIAS].ops.quote_name(name or ""))


def _most_rows(connection: BaseDatabaseWrapper, columns: int) -> int:
    """Of one statement, on SQLite by its own limit: Django's is that of builds from before 2020.
    PostgreSQL takes any number as one document."""
    if connection.vendor != "sqlite":
        return sys.maxsize
    connection.ensure_connection()
    return int(connection.connection.getlimit(SQLITE_LIMIT_VARIABLE_NUMBER)) // columns
