"""Finding sessions over the API: filters, orders, pages, and what a page costs."""

from datetime import timedelta
from itertools import chain
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.models import Session
from tests.api_client import APIClient
from tests.factories import (
    make_account,
    make_lapsed_session,
    make_messages,
    make_run,
    make_session,
    make_tool_call,
)

# The token with its account, and the account's permissions.
AUTHENTICATION = 2


def found(api: APIClient, **query: Any) -> set[str]:
    answer = api.get("/sessions", query)
    assert answer.status_code == 200, answer.json()
    return {session["session_id"] for session in answer.json()["data"]}


def walk(api: APIClient, direction: str, start: Any = None, **query: Any) -> list[list[str]]:
    """The pages from there on, as lists of ids."""
    pages, cursor = [], start
    while True:
        asked = {**query, **({"cursor": cursor} if cursor else {})}
        page = api.get("/sessions", asked).json()
        pages.append([session["session_id"] for session in page["data"]])
        cursor = page[f"{direction}_cursor"]
        if cursor is None:
            return pages


class TestTheListOfSessions:
    def test_has_the_newest_activity_first(self, api: APIClient, agent: User) -> None:
        first, second, third = (make_session(account=agent) for _ in range(3))
        make_messages(session=first)
        data = api.get("/sessions").json()["data"]
        assert [session["session_id"] for session in data] == [
            first.session_id,
            third.session_id,
            second.session_id,
        ]

    def test_leaves_out_what_may_be_large(self, api: APIClient, agent: User) -> None:
        make_session(account=agent, working_memory={"goal": "G"})
        (session,) = api.get("/sessions").json()["data"]
        assert {"working_memory", "open_tool_calls"}.isdisjoint(session)
        assert session["working_memory_version"] == 1

    @pytest.mark.parametrize("count", [1, 20])
    def test_costs_one_query_and_never_reads_content(
        self, api: APIClient, agent: User, count: int
    ) -> None:
        """Report BIG-01."""
        for _ in range(count):
            make_messages(session=make_session(account=agent, metadata={"a": "b"}), count=2)
        with CaptureQueriesContext(connection) as queries:
            api.get("/sessions", {"q": "", "metadata.a": "b", "run_status": "RUNNING"})
            api.get("/sessions")
        assert len(queries) == 2 * (AUTHENTICATION + 1)
        spoken = " ".join(query["sql"] for query in queries)
        assert "sessions_app_message" not in spoken
        assert "sessions_app_workingmemoryrevision" not in spoken
        selected = spoken.split("FROM")[0:]
        assert all("search_text" not in part.rpartition("SELECT")[2] for part in selected)

    @pytest.mark.parametrize("order", ["created_at", "-created_at", "-last_activity_at"])
    @pytest.mark.parametrize("limit", [1, 7, 50])
    def test_is_walked_both_ways_past_equal_times(
        self, api: APIClient, agent: User, order: str, limit: int
    ) -> None:
        """Report PAG-01."""
        now = timezone.now()
        ids = [make_session(account=agent, now=now).session_id for _ in range(15)]
        expected = ids if order == "created_at" else ids[::-1]
        forth = walk(api, "next", order=order, limit=limit)
        assert list(chain(*forth)) == expected
        page = api.get("/sessions", {"order": order, "limit": limit}).json()
        last = None
        while page["next_cursor"]:
            last = page["next_cursor"]
            page = api.get(
                "/sessions", {"order": order, "limit": limit, "cursor": page["next_cursor"]}
            ).json()
        back = walk(api, "previous", last, order=order, limit=limit)
        assert list(chain(*back[::-1])) == expected

    def test_refuses_a_cursor_of_another_list(self, api: APIClient, agent: User) -> None:
        for _ in range(3):
            make_session(account=agent)
        cursor = api.get("/sessions", {"limit": 1}).json()["next_cursor"]
        others = [{"order": "created_at"}, {"agent_id": "a"}, {"status": "ACTIVE"}]
        tampered = [{"cursor": cursor[:-2]}, {"cursor": "x"}, {"cursor": ""}]
        for query in [*others, *tampered]:
            answer = api.get("/sessions", {"limit": 1, "cursor": cursor, **query})
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")


class TestTheFilterOfSessions:
    def test_by_status_is_by_the_effective_one(self, api: APIClient, agent: User) -> None:
        """Report TTL-03."""
        alive = make_session(account=agent, idle_timeout_seconds=3600).session_id
        closed = make_session(account=agent).session_id
        lapsed = make_lapsed_session(account=agent).session_id
        gone = make_session(account=agent).session_id
        api.post(f"/sessions/{closed}/close")
        api.delete(f"/sessions/{gone}")
        assert found(api) == {alive, closed, lapsed}
        assert found(api, status="ACTIVE") == {alive}
        assert found(api, status="EXPIRED") == {lapsed}
        assert found(api, status="CLOSED,DELETED") == {closed, gone}
        assert found(api, status="ACTIVE,CLOSED,EXPIRED,DELETED") == {alive, closed, lapsed, gone}
        assert Session.objects.get(pk=lapsed).status == "ACTIVE"

    @pytest.mark.parametrize("name", ["agent_id", "user_id", "external_id"])
    def test_by_a_name_is_literal(self, api: APIClient, agent: User, name: str) -> None:
        named: list[dict[str, Any]] = [{name: text} for text in ("a_b", "aXb", "A_B")]
        wanted, *_ = [make_session(account=agent, **fields).session_id for fields in named]
        assert found(api, **{name: "a_b"}) == {wanted}
        assert found(api, **{name: "%"}) == set()

    def test_by_times_excludes_the_bound(self, api: APIClient, agent: User) -> None:
        now = timezone.now()
        old = make_session(account=agent, now=now - timedelta(hours=2)).session_id
        bound = make_session(account=agent, now=now - timedelta(hours=1))
        new = make_session(account=agent, now=now).session_id
        moment = bound.created_at.isoformat()
        for kind in ("created", "active"):
            assert found(api, **{f"{kind}_after": moment}) == {new}
            assert found(api, **{f"{kind}_before": moment}) == {old}

    def test_by_expiry_finds_what_has_a_deadline(self, api: APIClient, agent: User) -> None:
        make_session(account=agent)
        soon = make_session(account=agent, idle_timeout_seconds=60)
        make_session(account=agent, idle_timeout_seconds=9000)
        moment = (timezone.now() + timedelta(hours=1)).isoformat()
        assert found(api, expires_before=moment) == {soon.session_id}

    def test_by_run_status_is_by_the_newest_run_at_this_moment(
        self, api: APIClient, agent: User
    ) -> None:
        hour_ago = timezone.now() - timedelta(hours=1)
        day_ago = timezone.now() - timedelta(days=2)
        idle, running, lost, unseen, lapsed = (
            make_session(account=agent, now=day_ago) for _ in range(5)
        )
        make_run(session=running)
        make_run(session=lost, now=hour_ago, lease_seconds=60)
        make_run(session=unseen, now=day_ago, start=False)
        expired = make_lapsed_session(account=agent)
        make_run(session=expired, now=expired.created_at, start=False)
        make_run(session=lapsed, now=hour_ago, lease_seconds=60)
        queued = make_run(session=running, start=False)
        assert queued.status == "PENDING"
        interrupted = {each.session_id for each in (lost, unseen, lapsed, expired)}
        assert found(api, run_status="PENDING") == {running.session_id}
        assert found(api, run_status="RUNNING") == set()
        assert found(api, run_status="INTERRUPTED") == interrupted
        assert found(api, run_status="INTERRUPTED,PENDING") == {*interrupted, running.session_id}
        assert idle.session_id not in found(api, run_status="COMPLETED,FAILED,CANCELLED,WAITING")

    def test_by_open_tool_calls(self, api: APIClient, agent: User) -> None:
        none, some = make_session(account=agent), make_session(account=agent)
        make_tool_call(session=some)
        assert found(api, has_open_tool_calls="true") == {some.session_id}
        assert found(api, has_open_tool_calls="false") == {none.session_id}

    def test_by_parent(self, api: APIClient, agent: User) -> None:
        parent = make_session(account=agent).session_id
        child = make_session(account=agent, parent_session_id=parent).session_id
        assert found(api, parent_session_id=parent) == {child}

    @pytest.mark.parametrize(
        ("key", "value", "asked"),
        [
            ("a", "text", "text"),
            ("a", 5, "5"),
            ("a", 10**30, str(10**30)),
            ("a", 1.5, "1.5"),
            ("a", True, "true"),
            ("a", None, "null"),
            ("a", "", ""),
            ("a.b", "x", "x"),
            ("%", "_", "_"),
            ("ключ", "значение", "значение"),
            ("a", "x" * 2000, "x" * 2000),
        ],
    )
    def test_by_metadata_compares_scalars_as_json(
        self, api: APIClient, agent: User, key: str, value: Any, asked: str
    ) -> None:
        wanted = make_session(account=agent, metadata={key: value, "other": 1}).session_id
        make_session(account=agent, metadata={key: "something else", "other": 1})
        assert found(api, **{f"metadata.{key}": asked}) == {wanted}
        assert found(api, **{f"metadata.{key}": asked, "metadata.other": "1"}) == {wanted}
        assert found(api, **{f"metadata.{key}": asked, "metadata.other": "2"}) == set()

    def test_by_ten_keys_of_the_metadata_at_most(self, api: APIClient, agent: User) -> None:
        """Each is a join: SQLite takes 64, and PostgreSQL plans a hundred for half a minute."""
        metadata = {f"k{number}": number for number in range(11)}
        wanted = make_session(account=agent, metadata=metadata).session_id
        asked = {f"metadata.{key}": str(value) for key, value in metadata.items()}
        refused = api.get("/sessions", asked)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/metadata.")
        del asked["metadata.k10"]
        assert found(api, **asked) == {wanted}

    def test_by_words_looks_into_title_and_external_id(self, api: APIClient, agent: User) -> None:
        """Report SRCH-01: what is no ASCII was not found, and "%" found everything."""
        titles = ["Straße 100%", "问题 🙂", "a_b\\c", 'Say "hi"', "e\u0301tude"]
        ids = [make_session(account=agent, title=title).session_id for title in titles]
        named = make_session(account=agent, external_id="Ticket-7").session_id
        assert found(api, q="STRASSE") == {ids[0]}
        assert found(api, q="%") == {ids[0]}
        assert found(api, q="题") == {ids[1]}
        assert found(api, q="🙂") == {ids[1]}
        assert found(api, q="_") == {ids[2]}
        assert found(api, q="b\\c") == {ids[2]}
        assert found(api, q='"HI"') == {ids[3]}
        assert found(api, q="\u00e9tude") == {ids[4]}
        assert found(api, q="ticket") == {named}
        assert found(api, q=ids[4]) == {ids[4]}
        assert found(api, q="sess_") == {*ids, named}
        assert found(api, q="nothing") == set()

    def test_finds_nothing_by_a_strangers_id(
        self, api: APIClient, stranger: APIClient, agent: User
    ) -> None:
        parent = make_session(account=agent, external_id="e").session_id
        make_session(account=agent, parent_session_id=parent)
        assert found(stranger, parent_session_id=parent) == set()
        assert found(stranger, external_id="e") == set()
        assert found(stranger, q=parent) == set()

    def test_combines(self, api: APIClient, agent: User) -> None:
        wanted = make_session(account=agent, agent_id="a", user_id="u", title="T").session_id
        make_session(account=agent, agent_id="a", user_id="v", title="T")
        query = {"agent_id": "a", "user_id": "u", "q": "t", "status": "ACTIVE"}
        assert found(api, **query) == {wanted}


class TestAnAccountThatReadsAll:
    def test_lists_every_accounts_sessions(self, auditor: APIClient, agent: User) -> None:
        mine = make_session(account=agent).session_id
        theirs = make_session(account=make_account("other")).session_id
        assert found(auditor) == {mine, theirs}
