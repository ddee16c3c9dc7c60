"""What is gathered in a write: stored before anything could miss it, and all or nothing."""

from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.models import IdempotencyRecord
from sessions_app.services.locking import write_transaction
from sessions_app.writes import insert, update

pytestmark = pytest.mark.django_db

RECORDS = IdempotencyRecord.objects


@pytest.fixture
def user() -> User:
    return User.objects.create_user("writer")


def record(user: User, digest: str, **fields: Any) -> IdempotencyRecord:
    return IdempotencyRecord(digest=digest, account=user, created_at=timezone.now(), **fields)


class TestGathered:
    def test_is_seen_by_the_next_read(self, user: User) -> None:
        with write_transaction():
            insert([record(user, "a")])
            assert RECORDS.filter(pk="a").exists()

    def test_goes_with_the_transaction_that_fails(self, user: User) -> None:
        with suppress(ZeroDivisionError), write_transaction():
            insert([record(user, "a")])
            raise ZeroDivisionError
        assert not RECORDS.exists()

    def test_of_a_savepoint_goes_with_it_alone(self, user: User) -> None:
        with write_transaction():
            insert([record(user, "outer")])
            with suppress(ZeroDivisionError), transaction.atomic():
                insert([record(user, "inner")])
                raise ZeroDivisionError
            insert([record(user, "last")])
        assert sorted(RECORDS.values_list("pk", flat=True)) == ["last", "outer"]

    def test_of_a_savepoint_is_judged_by_its_end(self, user: User) -> None:
        insert([record(user, "taken")])
        with write_transaction():
            with suppress(IntegrityError), transaction.atomic():
                insert([record(user, "taken")])
            insert([record(user, "free")])
        assert sorted(RECORDS.values_list("pk", flat=True)) == ["free", "taken"]

    def test_row_is_there_for_the_update_of_the_same_table(self, user: User) -> None:
        with write_transaction():
            row = record(user, "a")
            insert([row])
            row.status_code = 201
            update(row, ["status_code"])
            row.status_code = 202
            update(row, ["status_code"])
        assert RECORDS.get(pk="a").status_code == 202

    @pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no WITH for writes")
    def test_is_one_statement(self, user: User) -> None:
        with CaptureQueriesContext(connection) as captured, write_transaction():
            insert([record(user, "a")])
            insert([record(user, "b")])
            update(user, ["first_name"])
        texts = [query["sql"].split()[0] for query in captured]
        assert texts == ["SAVEPOINT", "WITH", "RELEASE"]


class TestRows:
    @pytest.mark.parametrize("count", [1, 2, 1_500])
    def test_of_any_number_are_stored_as_they_are(self, user: User, count: int) -> None:
        insert(
            [
                record(user, f"{number:04}", fingerprint="f" * (number % 3))
                for number in range(count)
            ]
        )
        stored = RECORDS.order_by("pk").values_list("pk", "fingerprint")
        assert list(stored) == [(f"{number:04}", "f" * (number % 3)) for number in range(count)]
        assert not RECORDS.exclude(session=None, answer=None, status_code=None).exists()

    def test_that_are_there_are_changed_where_it_is_asked_for(self, user: User) -> None:
        insert([record(user, "a", fingerprint="old", status_code=200)])
        rows = [record(user, key, fingerprint="new", status_code=201) for key in ("a", "b")]
        insert(rows, or_update=["status_code"])
        stored = RECORDS.order_by("pk").values_list("pk", "fingerprint", "status_code")
        assert list(stored) == [("a", "old", 201), ("b", "new", 201)]

    def test_may_be_none(self, user: User) -> None:
        insert([])
        assert not RECORDS.exists()
