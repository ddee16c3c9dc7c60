"""Past what the database refuses: how a test changes what happened, and how tables are emptied
between tests that commit."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.db import connection
from django.db.backends.base.operations import BaseDatabaseOperations

from sessions_app import append_only


@contextmanager
def owner_of_the_tables() -> Iterator[None]:
    """What is done inside is done by somebody who takes the triggers away, and puts them back."""
    _execute(append_only.removing(connection.vendor))
    yield
    _execute(append_only.installing(connection.vendor))


@contextmanager
def tables_can_be_emptied() -> Iterator[None]:
    """Django empties all tables after a test that commits."""
    flush = BaseDatabaseOperations.execute_sql_flush

    def deleting(_: Any, style: Any, tables: list[str], **__: Any) -> list[str]:
        # For few rows: TRUNCATE begins new files for each table and index, and waits for them.
        deletions = [f'DELETE FROM "{table}"' for table in tables]
        return ["SET LOCAL session_replication_role = replica", *deletions]

    def without_triggers(self: Any, statements: list[str]) -> None:
        vendor = self.connection.vendor
        if statements:
            flush(
                self, [*append_only.removing(vendor), *statements, *append_only.installing(vendor)]
            )

    patch = (
        mock.patch.object(type(connection.ops), "sql_flush", deleting)
        if connection.vendor == "postgresql"
        else mock.patch.object(BaseDatabaseOperations, "execute_sql_flush", without_triggers)
    )
    with patch:
        yield


def _execute(statements: list[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
