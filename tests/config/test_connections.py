"""What PostgreSQL does to a connection between two requests, and how its times are read."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.db.models import DateTimeField, Value

from config import connections as module
from sessions_app.models import Session
from tests.factories import make_account, make_session

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite ends no connection"),
]


def process_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def end(process: int) -> None:
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [process])
    finally:
        other.close()


@pytest.fixture(autouse=True)
def _look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SURE_FOR_SECONDS", 0)


class TestAConnection:
    def test_that_the_database_has_ended_is_replaced(self) -> None:
        first = process_id()
        end(first)
        module.drop_dead_connections()
        assert process_id() != first

    def test_that_lives_is_kept(self) -> None:
        first = process_id()
        module.drop_dead_connections()
        assert process_id() == first

    def test_is_not_looked_at_again_so_soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module.drop_dead_connections()
        monkeypatch.setattr(module, "SURE_FOR_SECONDS", 60)
        monkeypatch.setattr(module, "_has_news", pytest.fail)
        module.drop_dead_connections()


class TestAStatement:
    @pytest.fixture
    def waiting(self, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[None]:
        """A new connection of a thread that serves requests, which waits a tenth of a second, to a
        server that ends nothing by itself."""
        settings.DB_STATEMENT_TIMEOUT = 0.1
        monkeypatch.setattr(module, "_GRACE_SECONDS", 0)
        connection.close()
        module.drop_dead_connections()
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
        process = process_id()
        yield
        connection.close()
        settings.DB_STATEMENT_TIMEOUT = 30
        end(process)  # it has not noticed

    def test_that_is_never_answered_is_given_up(self, waiting: None) -> None:
        first = connection.connection
        with pytest.raises(OperationalError), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(600)")
        assert first.closed

    def test_leaves_the_next_one_a_connection(self, waiting: None) -> None:
        before = process_id()
        with pytest.raises(OperationalError), connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(600)")
        module.drop_dead_connections()
        assert process_id() != before


def test_a_time_is_read_as_it_was_written() -> None:
    connections["default"].close()  # the next one has the loader
    make_session(account=make_account())
    moments = [
        datetime(year, 2, 28, 23, 59, 58, microsecond, tzinfo=UTC)
        for year in (1, 1999, 2026, 9999)
        for microsecond in (0, 1, 120_000, 123_456)
    ]
    told = [Value(moment, DateTimeField()) for moment in moments]
    assert list(Session.objects.values_list(*told).get()) == moments
