"""A process that dies in the middle of a write, as the database sees it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from psycopg.pq import TransactionStatus


class Died(OperationalError):
    """Nothing reaches the database any more."""


@contextmanager
def dying_before(statement: int | None) -> Iterator[None]:
    """Die before that statement of the block (0 is the first), or before a COMMIT that comes in its
    place; None: live.

    Whatever the code would still do about its failure dies, too, but for the end of its connection.
    """
    if statement is None:
        yield
        return
    connection: Any = connections[DEFAULT_DB_ALIAS]
    connection.ensure_connection()
    commit_to = connection.commit
    left = statement

    def step(execute: Any, *arguments: Any) -> Any:
        nonlocal left
        if left == 0:
            raise Died("the process died here")
        left -= 1
        return execute(*arguments)

    def commit() -> None:
        # A statement that stands alone was its own transaction: it has happened.
        if _in_transaction(connection):
            step(commit_to)

    connection.commit = commit
    try:
        with connection.execute_wrapper(step):
            yield
    finally:
        del connection.commit
        if left == 0:
            connection.close()


def _in_transaction(connection: Any) -> bool:
    driver = connection.connection
    if connection.vendor == "sqlite":
        return bool(driver.in_transaction)
    return driver.info.transaction_status != TransactionStatus.IDLE
