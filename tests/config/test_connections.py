"""What PostgreSQL does to a connection between two requests, and how its times are read."""

from datetime import UTC, datetime

import pytest
from django.db import connection, connections
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
    monkeypatch.setattr(module, "_SURE_FOR_SECONDS", 0)


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
        monkeypatch.setattr(module, "_SURE_FOR_SECONDS", 60)
        monkeypatch.setattr(module, "_has_news", pytest.fail)
        module.drop_dead_connections()


@pytest.mark.parametrize("microsecond", [0, 1, 120_000, 123_456])
@pytest.mark.parametrize("year", [1, 1999, 2026, 9999])
def test_a_time_is_read_as_it_was_written(year: int, microsecond: int) -> None:
    connections["default"].close()  # the next one has the loader
    make_session(account=make_account())
    moment = datetime(year, 2, 28, 23, 59, 58, microsecond, tzinfo=UTC)
    told = Value(moment, DateTimeField())
    assert Session.objects.values_list(told, flat=True).get() == moment
