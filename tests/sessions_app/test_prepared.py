"""What a statement that is compiled once answers, beside the queryset that it is made of."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F, QuerySet
from django.test.utils import CaptureQueriesContext

from sessions_app import prepared as module
from sessions_app.models import Message, Session
from sessions_app.prepared import GIVEN_LIMIT, Given, GivenList, Prepared
from tests.domain import NOON, Desk, later, user


@pytest.fixture
def session_id(desk: Desk) -> str:
    """A session of five messages."""
    session_id = desk.open(title="T")
    desk.append(session_id, *[user(str(number)) for number in range(5)])
    return session_id


def numbered(given: type[Given]) -> QuerySet[Any, Any]:
    mine = Message.objects.filter(session=given("session_id"), sequence__in=[GivenList("numbers")])
    return mine.order_by("sequence").values_list("sequence")


def from_on(given: type[Given], descending: bool = False) -> QuerySet[Any, Any]:
    mine = Message.objects.filter(session=given("session_id"), sequence__gte=given("first"))
    return mine.order_by("-sequence" if descending else "sequence")[:GIVEN_LIMIT]


class TestAPreparedQuery:
    def test_is_built_once_for_each_shape(self, session_id: str) -> None:
        built = []

        def build(given: type[Given], descending: bool) -> QuerySet[Any, Any]:
            built.append(descending)
            return from_on(given, descending)

        query = Prepared(build)
        for descending in (False, True, False, True):
            query.all(descending, session_id=session_id, first=1, limit=9)
        assert built == [False, True]

    def test_forgets_shapes_before_there_are_too_many(
        self, session_id: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_MOST_SHAPES", 2)
        query = Prepared(lambda given, shape: from_on(given))
        for shape in range(5):
            assert query.all(shape, session_id=session_id, first=5, limit=9)
            assert len(query._statements) <= 2

    def test_takes_its_values_and_its_limit_at_each_execution(self, session_id: str) -> None:
        query = Prepared(from_on)
        for first, limit, expected in ((1, 2, [1, 2]), (4, 9, [4, 5]), (2, 0, []), (9, 9, [])):
            found = query.all(session_id=session_id, first=first, limit=limit)
            assert [message.sequence for message in found] == expected

    def test_takes_its_limit_as_an_offset_too(self, session_id: str) -> None:
        query = Prepared(
            lambda given: Message.objects.order_by("sequence")[GIVEN_LIMIT : GIVEN_LIMIT + 1]
        )
        found = [query.first(limit=limit) for limit in (0, 3, 5)]
        assert [message and message.sequence for message in found] == [1, 4, None]

    def test_compares_times(self, session_id: str) -> None:
        query = Prepared(lambda given: Session.objects.filter(created_at__lt=given("moment")))
        assert query.first(moment=NOON) is None
        assert query.first(moment=NOON + timedelta(microseconds=1)) is not None
        assert query.first(moment=later(60)) is not None

    def test_gives_instances_as_the_queryset_does(self, session_id: str) -> None:
        rows = Message.objects.order_by("sequence").annotate(next=F("sequence") + 1).defer("text")
        prepared: list[Any] = Prepared(lambda given: rows).all()
        for one, other in zip(prepared, rows, strict=True):
            assert one.__dict__.keys() == other.__dict__.keys()
            assert (one.body.text, one.created_at, one.next) == (
                other.body.text,
                other.created_at,
                other.next,
            )
            assert (one._state.adding, one._state.db) == (False, "default")

    def test_says_the_constants_of_its_queryset_in_its_text(self, session_id: str) -> None:
        query = Prepared(lambda given: Session.objects.filter(status="ACTIVE", title=given("t")))
        with CaptureQueriesContext(connection) as captured:
            assert query.first(t="T") is not None
        (statement,) = query._statements.values()
        assert "'ACTIVE'" in statement.sql
        assert [parameter.name for parameter in statement.parameters] == ["t"]
        assert len(captured) == 1

    @pytest.mark.parametrize("constant", ["it's", "100%s", "a b", "%(t)s", "2147483629", "ü"])
    def test_finds_by_any_constant_what_the_queryset_finds(self, desk: Desk, constant: str) -> None:
        session_id = desk.open(title=constant)
        desk.open(title="other")
        query = Prepared(lambda given: Session.objects.filter(title=constant))
        assert [session.session_id for session in query.all()] == [session_id]

    @pytest.mark.parametrize(
        "rows",
        [
            Session.objects.select_related("account"),
            Session.objects.values("title"),
            Session.objects.values_list("title", flat=True),
        ],
        ids=["related rows", "dicts", "flat values"],
    )
    @pytest.mark.django_db
    def test_refuses_what_it_would_not_load_as_the_queryset_does(self, rows: Any) -> None:
        with pytest.raises(NotImplementedError):
            Prepared(lambda given: rows).all()


class TestAListOfValues:
    @pytest.mark.parametrize("count", range(1, 6))
    def test_finds_each_of_them_once(self, session_id: str, count: int) -> None:
        numbers = range(1, count + 1)
        found = Prepared(numbered).all(session_id=session_id, numbers=numbers)
        assert found == [(number,) for number in numbers]

    def test_has_few_lengths(self, session_id: str) -> None:
        query = Prepared(numbered)
        with CaptureQueriesContext(connection) as captured:
            for count in range(1, 65):
                query.all(session_id="none", numbers=range(7, 7 + count))
        lengths = {each["sql"].partition(" IN (")[2].count(", ") + 1 for each in captured}
        assert lengths == {1, 2, 4, 8, 16, 32, 64}
