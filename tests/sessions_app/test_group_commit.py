import errno
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper

from sessions_app import group_commit, turns
from sessions_app.group_commit import commit
from sessions_app.turns import in_line
from tests.handing_over import threads

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has many writers"),
]

Work = Callable[[CursorWrapper], Any]
Submit = Callable[..., list[Future[Any]]]


def adding(name: str) -> Work:
    """Of a group, whose name may be there once."""

    def work(cursor: CursorWrapper) -> str:
        cursor.execute("INSERT INTO auth_group (name) VALUES (%s)", [name])
        return name

    return work


def stored() -> set[str]:
    return set(Group.objects.values_list("name", flat=True))


def soon(seconds: float = 5) -> float:
    return time.monotonic() + seconds


@pytest.fixture(autouse=True)
def _nothing_before() -> Iterator[None]:
    Group.objects.all().delete()
    yield
    assert not group_commit._waiting


@pytest.fixture
def submit() -> Iterator[Submit]:
    """Hand writes over in this order."""
    with threads() as hand_over:
        yield lambda *works: hand_over(*(partial(commit, work) for work in works))


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many writes each transaction was begun for."""
    sizes: list[int] = []
    done_together = group_commit._done_together

    def counted(works: Sequence[Work]) -> list[Any]:
        sizes.append(len(works))
        return done_together(works)

    monkeypatch.setattr(group_commit, "_done_together", counted)
    return sizes


class TestAGroup:
    def test_is_what_waits_and_one_transaction(
        self, submit: Submit, transactions: list[int]
    ) -> None:
        with in_line(soon()):
            writes = submit(adding("a"), adding("b"), adding("c"))
            assert not stored()
        assert [write.result() for write in writes] == ["a", "b", "c"]
        assert stored() == {"a", "b", "c"}
        assert transactions == [3]

    def test_is_not_answered_before_it_is_committed(self, submit: Submit) -> None:
        reached, go_on = threading.Event(), threading.Event()

        def held_up(cursor: CursorWrapper) -> None:
            reached.set()
            assert go_on.wait(10)

        with in_line(soon()):
            writes = submit(adding("a"), held_up, adding("b"))
            outcomes = [write.outcome for write in group_commit._waiting]
        assert reached.wait(10)
        assert not any(outcome.done() for outcome in outcomes)
        assert not stored()
        go_on.set()
        assert [write.result() for write in writes] == ["a", None, "b"]

    def test_does_not_pay_for_an_error_of_one(
        self, submit: Submit, transactions: list[int]
    ) -> None:
        with in_line(soon()):
            good, twice, bad = submit(adding("a"), adding("b"), adding("b"))
        assert (good.result(), twice.result()) == ("a", "b")
        with pytest.raises(IntegrityError, match="name"):
            bad.result()
        assert stored() == {"a", "b"}
        assert transactions == [3, 1, 1, 1]

    def test_does_not_pay_for_what_is_wrong_at_the_commit(self, submit: Submit) -> None:
        def belongs_to_nobody(cursor: CursorWrapper) -> None:
            cursor.execute("INSERT INTO auth_user_groups (user_id, group_id) VALUES (0, 0)")

        with in_line(soon()):
            good, bad = submit(adding("a"), belongs_to_nobody)
        assert good.result() == "a"
        with pytest.raises(IntegrityError, match="FOREIGN KEY"):
            bad.result()
        assert stored() == {"a"}

    def test_does_not_pay_for_what_the_database_cannot_do(self, submit: Submit) -> None:
        """SQLite calls that an OperationalError, as it does a full disk."""

        def is_no_sql(cursor: CursorWrapper) -> None:
            cursor.execute("SELEKT 1")

        with in_line(soon()):
            good, bad = submit(adding("a"), is_no_sql)
        assert good.result() == "a"
        with pytest.raises(OperationalError, match="syntax"):
            bad.result()

    def test_is_not_done_one_by_one_for_longer_than_anybody_waits(
        self, submit: Submit, transactions: list[int], settings: Any
    ) -> None:
        def waits_in_vain(cursor: CursorWrapper) -> None:
            time.sleep(1.1)
            raise OperationalError("database is locked")

        settings.DB_LOCK_TIMEOUT = 1
        with in_line(soon()):
            writes = submit(waits_in_vain, adding("a"), adding("b"))
        for write in writes:
            with pytest.raises(OperationalError, match="locked"):
                write.result()
        assert transactions == [3]
        assert not stored()

    def test_is_not_left_waiting_by_a_thread_that_is_ended(self, submit: Submit) -> None:
        def ends_its_thread(cursor: CursorWrapper) -> None:
            raise SystemExit

        with in_line(soon()):
            first, *others = submit(ends_its_thread, adding("a"), adding("b"))
        ended = [write for write in (first, *others) if isinstance(write.exception(), SystemExit)]
        told = [write for write in (first, *others) if write not in ended]
        assert len(ended) == 1
        assert [str(write.exception()) for write in told] == ["interrupted"] * 2
        assert not stored()


class TestWhoseTurnDoesNotCome:
    def test_has_written_nothing_and_will_not_by_another_fault(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def too_many_files(database: str, process: int) -> int:
            raise OSError(errno.EMFILE, "Too many open files")

        with monkeypatch.context() as patch:
            patch.setattr(turns, "_lock_file", too_many_files)
            with pytest.raises(OSError, match="Too many"):
                commit(adding("refused"))
        assert commit(adding("next")) == "next"
        assert stored() == {"next"}

    def test_has_written_nothing_and_will_not(self, submit: Submit, settings: Any) -> None:
        with in_line(soon()):
            settings.DB_LOCK_TIMEOUT = 0.05
            (late,) = submit(adding("late"))
            with pytest.raises(OperationalError, match="locked"):
                late.result()
        settings.DB_LOCK_TIMEOUT = 5
        assert commit(adding("next")) == "next"
        assert stored() == {"next"}

    def test_waits_for_what_is_being_done_for_it(self, submit: Submit, settings: Any) -> None:
        reached = threading.Event()

        def takes_long(cursor: CursorWrapper) -> None:
            reached.set()
            time.sleep(1.3)

        settings.DB_LOCK_TIMEOUT = 1
        with in_line(soon()):
            writes = submit(takes_long, adding("a"))
        assert reached.wait(10)
        assert [write.result() for write in writes] == [None, "a"]
        assert stored() == {"a"}


def test_in_a_transaction_it_is_part_of_that() -> None:
    with transaction.atomic():
        assert commit(adding("a")) == "a"
        assert stored() == {"a"}
        transaction.set_rollback(True)
    assert not stored()
