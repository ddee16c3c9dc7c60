"""Searching over the API: what a hit tells, pages, and what a page costs."""

from itertools import chain
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import ContentRead, Message
from tests.api_client import APIClient
from tests.domain import calling, user
from tests.factories import add_messages, make_messages, make_session, make_tool_call

# The token with its account, and the account's permissions.
AUTHENTICATION = 2


def hits(api: APIClient, words: str, **query: Any) -> list[dict[str, Any]]:
    answer = api.get("/search", {"q": words, **query})
    assert answer.status_code == 200, answer.json()
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


class TestWhoSearches:
    def test_in_what_is_another_s_has_read_it(
        self, api: APIClient, auditor: APIClient, agent: User
    ) -> None:
        session, other = (make_session(account=agent, title=title) for title in "TU")
        add_messages(user("needle"), user("needle"), session=session)
        add_messages(user("hay"), session=other)
        assert len(hits(api, "needle")) == 2
        assert not ContentRead.objects.exists()
        assert len(hits(auditor, "needle")) == 2
        noted = ContentRead.objects.values_list("session_id", "reader", "page")
        assert list(noted) == [(session.session_id, "auditor", "api")]


class TestAHit:
    def test_of_a_message_leads_to_it_and_marks_the_words(
        self, api: APIClient, agent: User
    ) -> None:
        session = make_session(account=agent, title="T")
        _, message = add_messages(user("hay"), user("A <b>Refund</b>, 订单"), session=session)
        (hit,) = hits(api, "refund 订单")
        snippet = [
            {"text": "A <b>", "marked": False},
            {"text": "Refund", "marked": True},
            {"text": "</b>, ", "marked": False},
            {"text": "订单", "marked": True},
        ]
        created_at = hit.pop("created_at")
        assert hit == {
            "object": "search_hit",
            "kind": "message",
            "session_id": session.session_id,
            "title": "T",
            "message_id": message.message_id,
            "sequence": 2,
            "role": "user",
            "tool_call_id": None,
            "snippet": snippet,
        }
        read = api.get(f"/sessions/{session.session_id}/messages/2").json()
        assert read["created_at"] == created_at

    def test_of_another_text_names_its_kind(self, api: APIClient, agent: User) -> None:
        session = make_session(account=agent, title="needle", working_memory={"plan": ["a needle"]})
        call = make_tool_call(session=session, name="find", arguments={"what": "needle"})
        add_messages(calling("c", name="needle"), session=session)
        found = hits(api, "needle")
        assert [(hit["kind"], hit["tool_call_id"]) for hit in found] == [
            ("message", None),
            ("tool_call", call.id),
            ("session", None),
            ("working_memory", None),
        ]
        assert all({"text": "needle", "marked": True} in hit["snippet"] for hit in found)

    def test_of_a_large_message_needs_not_all_of_it(self, api: APIClient, agent: User) -> None:
        image = {"type": "image", "data": "i" * 200_000}
        text = {"type": "text", "text": "A Needle…"}
        add_messages(user([image, text]), session=make_session(account=agent))
        (hit,) = hits(api, "needle")
        assert {"text": "needle", "marked": True} in hit["snippet"]
        assert len(str(hit)) < 1_000


class TestAPage:
    def test_is_walked_both_ways(self, api: APIClient, agent: User) -> None:
        make_messages(session=make_session(account=agent), count=7)
        pages: list[list[int]] = []
        page: dict[str, Any] = {}
        cursor = None
        while cursor is not None or not pages:
            query = {"q": "message", "limit": 3} | ({"cursor": cursor} if cursor else {})
            page = api.get("/search", query).json()
            pages.append([hit["sequence"] for hit in page["data"]])
            cursor = page["next_cursor"]
        assert pages == [[7, 6, 5], [4, 3, 2], [1]]
        asked = {"q": "message", "limit": 3, "cursor": page["previous_cursor"]}
        back = api.get("/search", asked)
        assert [hit["sequence"] for hit in back.json()["data"]] == [4, 3, 2]
        assert list(chain(*pages)) == [7, 6, 5, 4, 3, 2, 1]

    @pytest.mark.parametrize("count", [1, 30])
    def test_costs_the_same_for_few_and_many(self, api: APIClient, agent: User, count: int) -> None:
        for _ in range(count):
            session = make_session(account=agent, title="needle", working_memory={"goal": "needle"})
            make_tool_call(session=session, name="needle")
            add_messages(user("needle"), session=session)
        with CaptureQueriesContext(connection) as queries:
            assert len(hits(api, "needle", limit=200)) == 4 * count
        # The texts (on PostgreSQL the newest, then all), sessions, and each other kind.
        most = 6 if connection.vendor == "postgresql" else 5
        assert len(queries) == AUTHENTICATION + most

    def test_of_a_session_list_by_words_costs_one_more(self, api: APIClient, agent: User) -> None:
        make_session(account=agent, title="needle")
        with CaptureQueriesContext(connection) as queries:
            assert len(api.get("/sessions", {"q": "needle"}).json()["data"]) == 1
        assert len(queries) == AUTHENTICATION + 2


class TestARequest:
    @pytest.mark.parametrize("words", ["", " ", "\u200b", "x" * 256])
    def test_with_nothing_to_look_for_is_refused(self, api: APIClient, words: str) -> None:
        answer = api.get("/search", {"q": words})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/q")

    def test_without_words_is_refused(self, api: APIClient) -> None:
        assert api.get("/search").json()["errors"][0]["pointer"] == "/q"

    @pytest.mark.parametrize(
        "words", ["\x00", "'", '"', "a & !b", "* OR *", ":*", "NEAR(", "\\", "%_" * 100, "字" * 255]
    )
    def test_may_hold_any_sign(self, api: APIClient, agent: User, words: str) -> None:
        add_messages(user(words or "-"), session=make_session(account=agent))
        assert len(hits(api, words)) == 1
        assert len(api.get("/sessions", {"q": words}).json()["data"]) == 1

    def test_finds_what_other_accounts_have_for_who_may_read_it(
        self, api: APIClient, stranger: APIClient, auditor: APIClient, agent: User
    ) -> None:
        add_messages(user("needle"), session=make_session(account=agent))
        assert [len(hits(client, "needle")) for client in (api, stranger, auditor)] == [1, 0, 1]

    def test_shows_nothing_that_was_taken_away_meanwhile(
        self, api: APIClient, agent: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever marks a message and forgets the index shows less, not more."""
        (message,) = add_messages(user("needle"), session=make_session(account=agent))
        Message.objects.filter(pk=message.pk).update(superseded_at=message.created_at)
        assert hits(api, "needle") == []
