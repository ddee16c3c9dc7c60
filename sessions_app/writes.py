"""Rows to be written: gathered while a write goes on, and stored in as few statements as possible.

A write changes rows of several tables, and to ask the database for each of them by itself costs
more than what the database then does. Inside `gathering` inserts and updates only wait. They are
stored before any other statement of the connection, so nothing can read past them, and at the
end: on PostgreSQL as one statement, a ``WITH`` of all of them; on SQLite one after the other.

The order among them does not matter: keys between tables are checked at the transaction's end.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from sqlite3 import SQLITE_LIMIT_VARIABLE_NUMBER
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from psycopg.pq import TransactionStatus

# Of PostgreSQL's protocol.
_MOST_PARAMETERS = 65_535
# What every driver takes as it is. To ask the field takes longer than all that the driver does.
_PLAIN = (str, int, type(None))

Statement = tuple[str, list[Any]]


def insert(rows: Sequence[Model], *, or_update: Sequence[str] = ()) -> None:
    """Insert rows of one model, whose keys are set, as many in a statement as it holds.

    Of rows that are there already, the fields ``or_update`` are stored (by attribute name).
    """
    if not rows:
        return
    connection, model = connections[DEFAULT_DB_ALIAS], type(rows[0])
    fields = model._meta.concrete_fields
    portion = _most_parameters(connection) // len(fields)
    for start in range(0, len(rows), portion):
        part = [row.__dict__ for row in rows[start : start + portion]]
        columns = {field: [row[field.attname] for row in part] for field in fields}
        # What is null in all of them the column is by itself.
        given = {
            field.attname: [
                value if type(value) in _PLAIN else field.get_db_prep_save(value, connection)
                for value in column
            ]
            for field, column in columns.items()
            if column.count(None) < len(column)
        }
        sql, values = _insertion(connection, model, tuple(given), list(given.values()))
        sql += _or_update(model, tuple(or_update))
        _write(connection, (sql, values), inserts=model, updates=model if or_update else None)
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias


def update(row: Model, names: Sequence[str]) -> None:
    """Store these fields of a row that is locked, by their attributes' names."""
    connection, model = connections[DEFAULT_DB_ALIAS], type(row)
    fields = [*map(_fields_of(model).__getitem__, names), model._meta.pk]
    values = [field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields]
    _write(connection, (_change(model, tuple(names)), values), updates=model)


@contextmanager
def gathering() -> Iterator[None]:
    """Let what is written inside wait for its end; it opens no transaction."""
    connection = connections[DEFAULT_DB_ALIAS]
    waiting = _Waiting(connection)
    _here.waiting = waiting
    try:
        with connection.execute_wrapper(waiting.before):
            yield
            waiting.store(last=True)
    finally:
        _here.waiting = None


class _Waiting:
    """What was gathered and is not stored yet."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._statements: list[Statement] = []
        # One statement sees nothing of what another in its WITH does.
        self._inserted: set[type[Model]] = set()
        self._updated: set[type[Model]] = set()

    def add(
        self,
        statement: Statement,
        *,
        inserts: type[Model] | None = None,
        updates: type[Model] | None = None,
    ) -> None:
        if updates in self._inserted | self._updated:
            self.store()
        self._statements.append(statement)
        self._inserted |= {inserts} if inserts else set()
        self._updated |= {updates} if updates else set()

    def before(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        """Django's hook around each statement of the connection."""
        if sql.startswith("ROLLBACK"):
            self._take()  # it began after the savepoint: see `before` of SAVEPOINT
        else:
            self.store()
        return execute(sql, params, many, context)

    def store(self, *, last: bool = False) -> None:
        """Execute what waits. The ``last`` of a transaction that did nothing else needs no BEGIN
        and COMMIT on PostgreSQL: a statement is a transaction."""
        statements = self._take()
        if not statements:
            return
        if self._connection.vendor == "postgresql":
            statements = [_together(statements)]
        with _autocommitted(self._connection, last and len(statements) == 1):
            for statement in statements:
                _execute(self._connection, statement)

    def _take(self) -> list[Statement]:
        statements, self._statements = self._statements, []
        self._inserted, self._updated = set(), set()
        return statements


class _Here(threading.local):
    waiting: _Waiting | None = None


_here = _Here()


def _write(
    connection: BaseDatabaseWrapper,
    statement: Statement,
    *,
    inserts: type[Model] | None = None,
    updates: type[Model] | None = None,
) -> None:
    if _here.waiting is None:
        _execute(connection, statement)
    else:
        _here.waiting.add(statement, inserts=inserts, updates=updates)


def _execute(connection: BaseDatabaseWrapper, statement: Statement) -> None:
    with connection.cursor() as cursor:
        cursor.execute(*statement)


def _together(statements: list[Statement]) -> Statement:
    texts = tuple(sql for sql, _ in statements)
    return _with(texts), [value for _, values in statements for value in values]


@lru_cache(maxsize=256)
def _with(texts: tuple[str, ...]) -> str:
    *others, last = texts
    if not others:
        return last
    named = ", ".join(f"w{number} AS ({each})" for number, each in enumerate(others))
    return f"WITH {named} {last}"


@contextmanager
def _autocommitted(connection: BaseDatabaseWrapper, alone: bool) -> Iterator[None]:
    """Without BEGIN and COMMIT, if this is all that a transaction does: PostgreSQL's driver begins
    one with its first statement, and has nothing to commit if there was none."""
    driver = connection.connection
    nested = bool(connection.savepoint_ids) or not connection.in_atomic_block
    if connection.vendor != "postgresql" or nested or not alone or not _idle(driver):
        yield
        return
    driver.autocommit = True
    try:
        yield
    finally:
        if not driver.closed:  # a connection that broke refuses it, and would hide the reason
            driver.autocommit = False


def _idle(driver: Any) -> bool:
    return driver is not None and driver.info.transaction_status == TransactionStatus.IDLE


def _insertion(
    connection: BaseDatabaseWrapper,
    model: type[Model],
    names: tuple[str, ...],
    columns: list[list[Any]],
) -> Statement:
    """PostgreSQL takes several rows as an array for each column in which they differ: the text,
    which it plans once and keeps, is the same for any number of rows."""
    count = len(columns[0])
    if count > 1 and connection.vendor == "postgresql":
        differ = tuple(len(set(column)) > 1 for column in columns)
        values = [
            column if several else column[0]
            for column, several in zip(columns, differ, strict=True)
        ]
        return _insertion_of_arrays(model, names, differ), values
    return _insertion_of_rows(model, names, count), [
        column[number] for number in range(count) for column in columns
    ]


@lru_cache(maxsize=256)
def _insertion_of_arrays(
    model: type[Model], names: tuple[str, ...], differ: tuple[bool, ...]
) -> str:
    types = [_fields_of(model)[name].db_type(connections[DEFAULT_DB_ALIAS]) for name in names]
    values = [
        f"unnest(%s::{kind}[])" if several else f"%s::{kind}"
        for kind, several in zip(types, differ, strict=True)
    ]
    return f"{_into(model, names)} SELECT {', '.join(values)}"


@cache
def _or_update(model: type[Model], names: tuple[str, ...]) -> str:
    if not names:
        return ""
    columns = [_quoted(_fields_of(model)[name].column) for name in names]
    changes = ", ".join(f"{column} = EXCLUDED.{column}" for column in columns)
    return f" ON CONFLICT ({_quoted(model._meta.pk.column)}) DO UPDATE SET {changes}"


@lru_cache(maxsize=256)
def _insertion_of_rows(model: type[Model], names: tuple[str, ...], count: int) -> str:
    row = f"({', '.join(['%s'] * len(names))})"
    return f"{_into(model, names)} VALUES {', '.join([row] * count)}"


def _into(model: type[Model], names: tuple[str, ...]) -> str:
    columns = ", ".join(_quoted(_fields_of(model)[name].column) for name in names)
    return f"INSERT INTO {_quoted(model._meta.db_table)} ({columns})"


@cache
def _change(model: type[Model], names: tuple[str, ...]) -> str:
    columns = ", ".join(f"{_quoted(_fields_of(model)[name].column)} = %s" for name in names)
    table, key = _quoted(model._meta.db_table), _quoted(model._meta.pk.column)
    return f"UPDATE {table} SET {columns} WHERE {key} = %s"  # noqa: S608 (names of ours)


@cache
def _fields_of(model: type[Model]) -> dict[str, Any]:
    return {field.attname: field for field in model._meta.concrete_fields}


def _quoted(name: str | None) -> str:
    return str(connections[DEFAULT_DB_ALIAS].ops.quote_name(name or ""))


def _most_parameters(connection: BaseDatabaseWrapper) -> int:
    """Of one statement. SQLite's own limit: Django's is that of builds from before 2020."""
    if connection.vendor != "sqlite":
        return _MOST_PARAMETERS
    connection.ensure_connection()
    return int(connection.connection.getlimit(SQLITE_LIMIT_VARIABLE_NUMBER))
