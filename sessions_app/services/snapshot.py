"""All of a session as it is at one moment, read in many statements."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connections, transaction


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
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
