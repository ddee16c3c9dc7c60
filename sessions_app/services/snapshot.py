"""All of a session as it is at one moment, read in many statements."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction

# What SQLite keeps of pages that were read: of a whole session it would be as much as that holds.
_FRUGAL = {"mmap_size": 0, "cache_size": -2_000}


@contextmanager
def read_snapshot() -> Iterator[None]:
    """Let every read inside see the database as it is at the first one; no lock is held.

    On PostgreSQL a transaction of REPEATABLE READ; on SQLite one that only reads, which in WAL mode
    is a snapshot (Django's own begin with the lock to write). Either keeps old rows from being
    cleared away, so nothing inside may wait for a client. Inside a caller's transaction it is that.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    else:
        with connection.cursor() as cursor, _frugal(cursor):
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")


@contextmanager
def _frugal(cursor: Any) -> Iterator[None]:
    usual = {name: cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in _FRUGAL}
    try:
        _set(cursor, _FRUGAL)
        yield
    finally:
        _set(cursor, usual)


def _set(cursor: Any, pragmas: dict[str, int]) -> None:
    for name, value in pragmas.items():
        cursor.execute(f"PRAGMA {name} = {value:d}").fetchall()
