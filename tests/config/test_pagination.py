from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries, Settings
from rest_framework.request import Request
from rest_framework.test import APIClient, APIRequestFactory

from config.pagination import KeysetPagination
from sessions_app.ids import new_id
from sessions_app.jsontext import JSONText
from sessions_app.models import Message, Session, SessionEvent
from tests.plumbing import account, api_client, bare_session

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.probe")]

URL = "/api/v1/list"
Page = dict[str, Any]


@pytest.fixture
def user() -> User:
    return account()


@pytest.fixture
def client(user: User) -> APIClient:
    return api_client(user)


def make_sessions(user: User, offsets: list[int]) -> list[str]:
    """Sessions made at these microseconds; equal offsets are equal times."""
    start = timezone.now().replace(microsecond=0)
    times = [start + timedelta(microseconds=offset) for offset in offsets]
    rows = [
        Session(
            session_id=new_id("sess"),
            account=user,
            created_at=time,
            updated_at=time,
            last_activity_at=time,
        )
        for time in times
    ]
    Session.objects.bulk_create(rows)
    return [row.session_id for row in rows]


def get(client: APIClient, url: str = URL, **query: Any) -> Page:
    answer = client.get(url, query)
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def walk(
    client: APIClient, *, link: str = "next_cursor", url: str = URL, **query: Any
) -> tuple[list[list[Any]], Page]:
    """Every page from here, following one kind of link, and the last page itself."""
    page = get(client, url, **query)
    pages = [page["data"]]
    while page[link]:
        assert len(pages) < 1000
        page = get(client, url, **{**query, "cursor": page[link]})
        pages.append(page["data"])
    return pages, page


def flat(pages: list[list[Any]]) -> list[Any]:
    return [row for page in pages for row in page]


def expected(user: User, order: str) -> list[str]:
    sign = order[: order.startswith("-")]
    rows = Session.objects.filter(account=user).order_by(order, f"{sign}session_id")
    return list(rows.values_list("session_id", flat=True))


@pytest.mark.usefixtures("remembered_tokens")
class TestAWalk:
    @pytest.mark.parametrize("order", ["created_at", "-created_at"])
    @pytest.mark.parametrize("size", [1, 7, 50])
    @pytest.mark.parametrize("spread", [1, 3, 130])
    def test_meets_each_row_once_in_both_directions(
        self, user: User, client: APIClient, order: str, size: int, spread: int
    ) -> None:
        make_sessions(user, [number % spread for number in range(130)])
        forward, last = walk(client, limit=size, order=order)
        assert flat(forward) == expected(user, order)
        assert [len(page) for page in forward[:-1]] == [size] * (len(forward) - 1)
        backward, first = walk(
            client, link="previous_cursor", limit=size, order=order, cursor=last["previous_cursor"]
        )
        assert flat(backward[::-1]) + last["data"] == flat(forward)
        assert first["previous_cursor"] is None
        again, _ = walk(client, limit=size, order=order, cursor=first["next_cursor"])
        assert first["data"] + flat(again) == flat(forward)

    @given(
        offsets=st.lists(st.integers(0, 3), max_size=12),
        size=st.integers(1, 13),
        order=st.sampled_from(["created_at", "-created_at"]),
    )
    @hypothesis_settings(
        max_examples=30,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    def test_meets_each_row_once_whatever_the_times(
        self, user: User, client: APIClient, offsets: list[int], size: int, order: str
    ) -> None:
        Session.objects.all().delete()
        make_sessions(user, offsets)
        pages, _ = walk(client, limit=size, order=order)
        assert flat(pages) == expected(user, order)

    def test_turns_at_every_page(self, user: User, client: APIClient) -> None:
        make_sessions(user, [0] * 10)
        first = get(client, limit=3)
        second = get(client, limit=3, cursor=first["next_cursor"])
        back = get(client, limit=3, cursor=second["previous_cursor"])
        assert back["data"] == first["data"]
        assert back["previous_cursor"] is None
        assert get(client, limit=3, cursor=back["next_cursor"])["data"] == second["data"]

    @pytest.mark.parametrize("order", ["created_at", "-created_at"])
    def test_is_not_disturbed_by_writes(self, user: User, client: APIClient, order: str) -> None:
        ids = make_sessions(user, [5] * 20)
        seen, cursor = [], None
        for offset in range(8):
            page = get(client, limit=3, order=order, **({"cursor": cursor} if cursor else {}))
            seen += page["data"]
            cursor = page["next_cursor"]
            make_sessions(user, [0, 9])
            if cursor is None:
                break
            if offset == 2:
                Session.objects.filter(pk=page["data"][-1]).delete()
        assert len(seen) == len(set(seen))
        assert set(ids) <= set(seen) | set(walk(client, limit=50, order=order)[0][0])

    def test_goes_over_a_single_unique_key(self, user: User, client: APIClient) -> None:
        session = bare_session(user)
        moment = timezone.now()
        SessionEvent.objects.bulk_create(
            SessionEvent(
                event_id=new_id("evt"),
                session=session,
                sequence=number,
                subject="session",
                subject_id=session.pk,
                actor_type="system",
                actor_id="",
                session_version=1,
                created_at=moment,
                digest="",
            )
            for number in range(1, 11)
        )
        url = f"/api/v1/sessions/{session.pk}/events"
        pages, last = walk(client, url=url, limit=4)
        assert pages == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
        back, _ = walk(
            client, url=url, link="previous_cursor", limit=4, cursor=last["previous_cursor"]
        )
        assert back == [[5, 6, 7, 8], [1, 2, 3, 4]]

    def test_returns_from_a_page_whose_rows_are_gone(self, user: User, client: APIClient) -> None:
        make_sessions(user, [0, 1, 2])
        first = get(client, limit=2)
        Session.objects.exclude(pk__in=first["data"]).delete()
        empty = get(client, limit=2, cursor=first["next_cursor"])
        assert (empty["data"], empty["next_cursor"]) == ([], None)
        assert get(client, limit=2, cursor=empty["previous_cursor"])["data"] == first["data"]

    def test_goes_on_from_a_beginning_that_is_gone(self, user: User, client: APIClient) -> None:
        ids = make_sessions(user, [0, 1, 2])
        first = get(client, limit=2)
        second = get(client, limit=2, cursor=first["next_cursor"])
        Session.objects.filter(pk__in=ids[:2]).delete()
        empty = get(client, limit=2, cursor=second["previous_cursor"])
        assert (empty["data"], empty["previous_cursor"]) == ([], None)
        assert get(client, limit=2, cursor=empty["next_cursor"])["data"] == ids[2:]


class TestAPage:
    def test_without_rows_has_no_links(self, client: APIClient) -> None:
        assert get(client) == {"data": [], "next_cursor": None, "previous_cursor": None}

    def test_holds_fifty_unless_told_otherwise(self, user: User, client: APIClient) -> None:
        make_sessions(user, [0] * 51)
        assert len(get(client)["data"]) == 50

    @pytest.mark.parametrize(("limit", "links"), [(2, False), (1, True)])
    def test_links_on_only_where_there_is_more(
        self, user: User, client: APIClient, limit: int, links: bool
    ) -> None:
        make_sessions(user, [0, 0])
        assert bool(get(client, limit=limit)["next_cursor"]) is links

    def test_costs_one_query(
        self, user: User, client: APIClient, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        make_sessions(user, [0] * 20)
        cursor = get(client, limit=5)["next_cursor"]
        with django_assert_num_queries(3):  # two of them authenticate
            get(client, limit=5, cursor=cursor)

    @pytest.mark.parametrize(
        "limit",
        ["0", "-1", "201", str(10**9), str(10**20), "abc", "1e3", "٣", "", " 5", "5 ", "5.0",
         "+5", "05", "0x5", "1_0", "true", "5\x00"],
    )  # fmt: skip
    def test_refuses_a_limit_that_is_no_number_from_1_to_200(
        self, client: APIClient, limit: str
    ) -> None:
        answer = client.get(URL, {"limit": limit})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        assert answer.json()["errors"][0]["pointer"] == "/limit"

    @pytest.mark.parametrize("limit", ["1", "200"])
    def test_takes_the_least_and_the_greatest_limit(self, client: APIClient, limit: str) -> None:
        assert client.get(URL, {"limit": limit}).status_code == 200


def truncated(cursor: str) -> str:
    return cursor[:-1]


def tampered(cursor: str) -> str:
    return ("A" if cursor[0] != "A" else "B") + cursor[1:]


class TestACursor:
    @pytest.fixture
    def cursor(self, user: User, client: APIClient) -> str:
        make_sessions(user, [0] * 5)
        return str(get(client, limit=2)["next_cursor"])

    def refused(self, client: APIClient, **query: Any) -> None:
        answer = client.get(URL, query)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")
        assert "without a cursor" in answer.json()["detail"]

    @pytest.mark.parametrize(
        "spoil",
        [truncated, tampered, str.lower, lambda _: "", lambda _: "x", lambda _: "a:b",
         lambda _: "\x00", lambda _: "é:é", lambda _: "e30:" + "x" * 5000, lambda c: c + "x",
         lambda c: f".{c}", lambda c: c.replace(":", "")],
    )  # fmt: skip
    def test_that_was_changed_is_refused(
        self, client: APIClient, cursor: str, spoil: Callable[[str], str]
    ) -> None:
        self.refused(client, cursor=spoil(cursor))

    @pytest.mark.parametrize("other", [{"order": "-created_at"}, {"title": "x"}])
    def test_of_other_filters_is_refused(
        self, client: APIClient, cursor: str, other: dict[str, str]
    ) -> None:
        self.refused(client, cursor=cursor, **other)

    def test_of_another_list_is_refused(self, user: User, client: APIClient, cursor: str) -> None:
        session = bare_session(user)
        answer = client.get(f"/api/v1/sessions/{session.pk}/events", {"cursor": cursor})
        assert answer.json()["code"] == "invalid_cursor"

    def test_may_be_used_with_another_limit(self, client: APIClient, cursor: str) -> None:
        assert len(get(client, cursor=cursor, limit=50)["data"]) == 3

    def test_keeps_microseconds(self, user: User, client: APIClient) -> None:
        ids = make_sessions(user, [1, 2, 3])
        assert flat(walk(client, limit=1)[0]) == ids


class TestAPageOfLargeRows:
    @pytest.fixture
    def url(self, user: User, settings: Settings) -> str:
        settings.MAX_PAGE_BYTES = 100
        session = bare_session(user)
        for number, size in enumerate([40, 40, 40, 500, 10, 90, 1], start=1):
            Message.objects.create(
                message_id=new_id("msg"),
                session=session,
                sequence=number,
                body=JSONText("{}"),
                size=size,
                session_version=1,
                created_at=timezone.now(),
            )
        return f"/api/v1/sessions/{session.pk}/messages"

    def test_ends_at_the_byte_budget_but_holds_one_row(self, client: APIClient, url: str) -> None:
        assert walk(client, url=url)[0] == [[7, 6], [5], [4], [3, 2], [1]]

    def test_ends_there_backward_too(self, client: APIClient, url: str) -> None:
        _, last = walk(client, url=url)
        back, _ = walk(client, url=url, link="previous_cursor", cursor=last["previous_cursor"])
        assert back == [[3, 2], [4], [6, 5], [7]]

    def test_still_ends_at_the_limit(self, client: APIClient, url: str) -> None:
        assert walk(client, url=url, limit=1)[0] == [[7], [6], [5], [4], [3], [2], [1]]

    def test_loads_no_row_that_does_not_fit(
        self, client: APIClient, url: str, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        with django_assert_num_queries(5) as queries:
            get(client, url)
        *_, sizes, rows = [query["sql"] for query in queries]
        assert '"body"' not in sizes
        assert rows.count("msg_") == 2


class TestThePaginator:
    @pytest.mark.parametrize(
        "order", [[], ["created_at", "-session_id"], ["created_at", "updated_at", "pk"]]
    )
    def test_refuses_an_order_that_it_cannot_keep(self, order: list[str]) -> None:
        request = Request(APIRequestFactory().get("/"))
        with pytest.raises(ValueError, match="one or two keys in one direction"):
            KeysetPagination().paginate_queryset(Session.objects.order_by(*order), request)

    def test_refuses_what_is_no_queryset(self) -> None:
        with pytest.raises(TypeError):
            KeysetPagination().paginate_queryset([1], Request(APIRequestFactory().get("/")))
