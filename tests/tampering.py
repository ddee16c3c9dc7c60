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

    def flush_all(self: Any, statements: list[str]) -> None:
        vendor = self.connection.vendor
        if vendor == "postgresql":
            # For few rows: TRUNCATE begins new files for each table and index, and waits for them.
            tables = self.connection.introspection.django_table_names(
                only_existing=True, include_views=False
            )
            deleting = [f'DELETE FROM "{table}"' for table in tables]
            flush(self, ["SET LOCAL session_replication_role = replica", *deleting])
        elif statements:
            away, back = append_only.removing(vendor), append_only.installing(vendor)
            flush(self, [*away, *statements, *back])

    with mock.patch.object(BaseDatabaseOperations, "execute_sql_flush", flush_all):
        yield


def _execute(statements: list[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
