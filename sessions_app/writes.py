"""Rows to be written: gathered while a write goes on, and stored in as few statements as possible.

A write changes rows of several tables, and to ask the database for each of them by itself costs
more than what the database then does. Inside `gathering` inserts and updates only wait. They are
stored before any other statement of the connection, so nothing can read past them, and at the
end: on PostgreSQL as one statement, a ``WITH`` of all of them; on SQLite one after the other.
Inside `at_once` there is not even a transaction before the end.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cache, partial
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import Model
from psycopg.pq import TransactionStatus

from . import statements
from .group_commit import commit
from .rows import instance
from .statements import Statement

Row = TypeVar("Row", bound=Model)


def new_row(model: type[Row], /, **given: Any) -> Row:
    """A row to insert: ``model(**given)`` by its attributes' names (``session_id=…``), in a
    sixth of the time."""
    return instance(model, _defaults(model) | given, alias=None)


@cache
def _defaults(model: type[Model]) -> dict[str, Any]:
    """Made once, for all rows: values that nobody changes. Plain ones: the driver takes long to
    find out what an enum is."""
    defaults = {field.attname: field.get_default() for field in model._meta.concrete_fields}
    return {name: str(v) if isinstance(v, Enum) else v for name, v in defaults.items()}


def insert(rows: Sequence[Model], *, or_update: Sequence[str] = ()) -> None:
    """Insert rows of one model, whose keys are set.

    Of rows that are there already, the fields ``or_update`` are stored (by attribute name).
    """
    if not rows:
        return
    connection, write = _writing()
    for statement in statements.insertions(connection, rows, or_update=or_update):
        write(statement)
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias


def update(row: Model, names: Sequence[str]) -> None:
    """Store these fields of a row that is locked, by their attributes' names."""
    connection, write = _writing()
    write(statements.change(connection, row, names))


def vendor() -> str:
    """Of the database that is written to."""
    return _connection().vendor


def flush() -> None:
    """Store what waits now: for who writes more than is to be held in memory."""
    if _here.waiting is not None:
        _here.waiting.store()


def copy(model: type[Model], fresh: Mapping[str, str], **given: Any) -> None:
    """Insert a copy of each of these stored rows, inside the database: ``fresh`` has the key of the
    copy for the key of each, ``given`` what all copies have in place of their own (by attribute
    name)."""
    if fresh:
        connection, write = _writing()
        write(statements.copies(connection, model, fresh, given))


@contextmanager
def gathering() -> Iterator[None]:
    """Let what is written inside a transaction wait for its end."""
    waiting = _Waiting(connections[DEFAULT_DB_ALIAS])
    _here.waiting = waiting
    try:
        with waiting.connection.execute_wrapper(waiting.before):
            yield
            waiting.end()
    finally:
        _here.waiting = None


@contextmanager
def at_once() -> Iterator[None]:
    """Store what is written inside in a transaction that begins when all is ready: for rows that
    are new, so that nothing is read. The lock is held as shortly as can be. PostgreSQL gets one
    statement, without BEGIN and COMMIT; on SQLite other threads may share it (`group_commit`)."""
    connection = connections[DEFAULT_DB_ALIAS]
    _here.waiting = collected = _Collected(connection)
    try:
        yield
    finally:
        _here.waiting = None
    if connection.vendor == "postgresql":
        _execute(connection, statements.together(collected.statements))
        return
    commit(collected.execute)


def is_at_once() -> bool:
    """Whether this thread is inside of `at_once`."""
    return isinstance(_here.waiting, _Collected)


class _Collected:
    """What `at_once` has to store."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection = connection
        self.statements: list[Statement] = []
        self.add = self.statements.append

    def store(self) -> None:
        """Nothing: all of it is stored at the end."""

    def execute(self, cursor: CursorWrapper) -> None:
        for statement in self.statements:
            cursor.execute(statement.sql, statement.values)


class _Waiting:
    """What was gathered and is not stored yet.

    On PostgreSQL a statement is a transaction, and the driver begins no other before one comes
    that needs it (`store`): what is executed before is committed at once.
    """

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection = connection
        self._statements: list[Statement] = []
        # One statement sees nothing of what another in its WITH does.
        self._inserted: set[type[Model]] = set()
        self._updated: set[type[Model]] = set()
        self._has_begun = not _is_at_its_beginning(connection)
        self._lets_through = False
        if not self._has_begun:
            connection.connection.autocommit = True

    def add(self, statement: Statement) -> None:
        if statement.updates in self._inserted | self._updated:
            self.store()
        self._statements.append(statement)
        self._inserted |= {statement.inserts} if statement.inserts else set()
        self._updated |= {statement.updates} if statement.updates else set()

    def before(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        """Django's hook around each statement of the connection."""
        if sql.startswith("ROLLBACK"):
            self._take()  # it began after the savepoint: see what SAVEPOINT does here
        elif not self._lets_through:
            self.store()
        return execute(sql, params, many, context)

    def end(self) -> None:
        """Store the rest; if it is all that there is, without BEGIN and COMMIT."""
        if self._has_begun:
            self.store()
        elif self._statements:
            self._execute(statements.together(self._take()))

    def store(self) -> None:
        """Execute what waits, after what must come before it."""
        if not self._has_begun:
            self._has_begun = True
            self.connection.connection.autocommit = False
        waiting = self._take()
        if waiting and self.connection.vendor == "postgresql":
            waiting = [statements.together(waiting)]
        for statement in waiting:
            self._execute(statement)

    def _take(self) -> list[Statement]:
        waiting, self._statements = self._statements, []
        self._inserted, self._updated = set(), set()
        return waiting

    def _execute(self, statement: Statement) -> None:
        """Past `before`: nothing that waits comes first."""
        self._lets_through = True
        try:
            _execute(self.connection, statement)
        finally:
            self._lets_through = False


class _Here(threading.local):
    waiting: _Waiting | _Collected | None = None


_here = _Here()


def _connection() -> BaseDatabaseWrapper:
    waiting = _here.waiting
    return connections[DEFAULT_DB_ALIAS] if waiting is None else waiting.connection


def _writing() -> tuple[BaseDatabaseWrapper, Callable[[Statement], Any]]:
    """The connection, and what becomes of a statement."""
    connection, waiting = _connection(), _here.waiting
    return connection, partial(_execute, connection) if waiting is None else waiting.add


def _execute(connection: BaseDatabaseWrapper, statement: Statement) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, statement.values)


def _is_at_its_beginning(connection: BaseDatabaseWrapper) -> bool:
    """Whether this is the outermost transaction, of which the driver has begun nothing yet."""
    driver = connection.connection
    if connection.vendor != "postgresql" or not connection.in_atomic_block or driver is None:
        return False
    is_idle = driver.info.transaction_status == TransactionStatus.IDLE
    return is_idle and not connection.savepoint_ids
