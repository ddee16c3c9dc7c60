"""The pages of the list of sessions: where they lead, how far they look, and by which index."""

import re
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.admin import keyset, seeking
from sessions_app.models import Session
from sessions_app.services import Actor, SessionManager
from tests.admin import read
from tests.factories import make_lapsed_session, make_session, make_tool_call
from tests.session_list import LIST, fail, query_of, titles, titles_on


@pytest.fixture
def support(entered):
    return entered("support")


class TestPages:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        from django.contrib import admin

        monkeypatch.setattr(admin.site.get_model_admin(Session), "list_per_page", 3)

    @pytest.fixture
    def page_at(self, support):
        """The page with this query, read once: none changes while it is walked through."""
        read_once = cache(lambda query: read(support, LIST, **dict(query)))
        return lambda query: read_once(tuple(query.items()))

    def walk(self, page_at, rel, **query):
        """The titles of each page along its links."""
        pages = []
        while True:
            page = page_at(query)
            pages.append(titles_on(page))
            if not (link := self.link(page, rel)):
                return pages, query
            query = query_of(link)

    @pytest.mark.parametrize(
        "query",
        [
            {},
            {"agent": "x"},
            {"user": "u"},
            {"metadata": "k=v"},
            {"status": "EXPIRED"},
            {"attention": "yes"},
        ],
    )
    def test_lead_to_every_row_once_and_back(self, page_at, agent, query):
        fields: dict[str, Any] = {"agent_id": "x", "user_id": "u", "metadata": {"k": "v"}}
        for number in range(8):
            title = str(number)
            if query.get("status"):
                made = make_lapsed_session if number % 2 else make_session
                session = made(account=agent, title=title, **fields)
                if not number % 2:
                    SessionManager(Actor.account(agent)).expire(session_id=session.pk)
            else:
                session = make_session(account=agent, title=title, **fields)
                (fail if number % 2 else _leave_open)(agent, session)
        down, last = self.walk(page_at, "next", **query)
        assert down == [["7", "6", "5"], ["4", "3", "2"], ["1", "0"]]
        up, _ = self.walk(page_at, "prev", **last)
        assert up == [["1", "0"], ["4", "3", "2"], ["7", "6", "5"]]

    @pytest.mark.parametrize("looked_through", [2, 3, 20])
    def test_lose_no_row_beside_an_empty_page(self, page_at, agent, monkeypatch, looked_through):
        monkeypatch.setattr(seeking, "MOST_LOOKED_THROUGH", looked_through)
        for number in range(14):
            agent_id = "x" if number in {0, 1, 2, 8, 12, 13} else "y"
            make_session(account=agent, title=str(number), agent_id=agent_id)
        wanted = ["13", "12", "8", "2", "1", "0"]
        down, at = self.walk(page_at, "next", agent="x")
        assert _joined(down) == wanted
        assert looked_through == 20 or [] in down
        seen: list[str] = []
        while link := self.link(page_at(at), "prev"):
            seen = titles_on(page_at(at)) + seen
            # Down again from here, past all that was shown on the way up.
            assert _joined(self.walk(page_at, "next", **at)[0]) == seen
            at = query_of(link)
        assert _joined(self.walk(page_at, "next", **at)[0]) == wanted

    def link(self, page, rel):
        links = [tag["href"] for tag in page.of("a") if tag.get("rel") == rel]
        return links[0] if links else None

    def test_say_at_an_empty_page_only_what_is_known(self, support, agent, monkeypatch):
        monkeypatch.setattr(seeking, "MOST_LOOKED_THROUGH", 4)
        for number in range(12):
            make_session(account=agent, agent_id="x" if number in {0, 11} else "y")
        so_far, nothing = "Nothing found so far", "Nothing here"
        first = read(support, LIST, agent="y", q="none").words()
        assert so_far in first
        assert "“Older” looks further." in first
        assert nothing not in first
        place = Session.objects.order_by("pk")[1].pk
        words = read(support, LIST, agent="x", newer=place).words()
        assert so_far in words
        assert "“Newer” looks further." in words
        assert "4 sessions were looked through; newer ones may match, too." in words
        assert "older ones may match" not in words
        end = read(support, LIST, agent="x", older=Session.objects.order_by("pk")[0].pk).words()
        assert "No older row matches what is asked for." in end
        monkeypatch.setattr(seeking, "MOST_LOOKED_THROUGH", 20)
        assert nothing in read(support, LIST, agent="none").words()

    def test_say_how_many_there_are_up_to_a_limit(self, support, agent, monkeypatch):
        monkeypatch.setattr(keyset, "MOST_COUNTED", 4)
        for _ in range(4):
            make_session(account=agent)
        assert "4 sessions" in read(support, LIST).words()
        make_session(account=agent)
        assert "4+ sessions" in read(support, LIST).words()

    def test_say_how_far_they_looked_and_go_on_from_there(self, page_at, agent, monkeypatch):
        monkeypatch.setattr(seeking, "MOST_LOOKED_THROUGH", 4)
        for number in range(10):
            make_session(account=agent, title=str(number), agent_id="x" if number < 3 else "y")
        page = page_at({"agent": "x"})
        assert "4 sessions were looked through; older ones may match, too." in page.words()
        down, _ = self.walk(page_at, "next", agent="x")
        assert down == [[], ["2"], ["1", "0"]]

    def test_find_by_index_however_far(self, support, agent, monkeypatch):
        monkeypatch.setattr(seeking, "MOST_LOOKED_THROUGH", 2)
        old = make_session(account=agent, title="old", user_id="u", metadata={"k": "v"})
        fail(agent, old)
        for _ in range(6):
            make_session(account=agent)
        for query in ({"user": "u"}, {"metadata": "k=v"}, {"failed": "yes"}, {"q": old.pk}):
            assert "old" in titles(support, **query)
        assert titles(support, agent="none") == []

    def test_find_who_is_active_now_however_long_ago_it_began(self, support, agent, monkeypatch):
        monkeypatch.setattr(seeking, "MOST_LOOKED_THROUGH", 2)
        make_session(account=agent, title="old", agent_id="x")
        for _ in range(6):
            make_session(account=agent, agent_id="y")
        day_ago = timezone.now() - timedelta(days=1)
        Session.objects.exclude(title="old").update(last_activity_at=day_ago)
        hour_ago = f"{timezone.now() - timedelta(hours=1):%Y-%m-%dT%H:%M}"
        for given in ({"active": "1h"}, {"active_from": hour_ago}):
            for more in ({}, {"agent": "x"}, {"status": "ACTIVE"}, {"account": "agent"}):
                assert titles(support, **given, **more) == ["old"]
        assert titles(support, active="1h", account="another") == []

    @pytest.mark.parametrize(
        "query",
        [
            {"user": "u"},
            {"account": "agent"},
            {"metadata": "k=v"},
            {"status": "EXPIRED"},
            {"active": "24h"},
            {"q": "sess_0"},
        ],
        ids=str,
    )
    def test_look_no_further_for_what_very_many_match(self, page_at, agent, monkeypatch, query):
        """Not even by an index: all that it finds would have to be sorted."""
        monkeypatch.setattr(seeking, "MOST_LOOKED_THROUGH", 2)
        monkeypatch.setattr(seeking, "MOST_SORTED", 2)
        for number in range(6):
            fields: dict[str, Any] = {"user_id": "u", "metadata": {"k": "v"}, "title": str(number)}
            fields["agent_id"] = "here" if number in {0, 5} else "x"
            make = make_lapsed_session if query.get("status") else make_session
            make(account=agent, **fields)
        page = page_at({**query, "agent": "none"})
        assert "2 sessions were looked through; older ones may match, too." in page.words()
        assert self.walk(page_at, "next", **query, agent="here")[0] == [["5"], [], ["0"]]

    @pytest.mark.parametrize("key", ["", "x", "\x00", "sess_" + "z" * 26, "sess_'--", "9" * 500])
    def test_bear_any_key(self, support, agent, key):
        make_session(account=agent)
        for name in ("older", "newer"):
            assert support.get(LIST, {name: key}).status_code == 200


def _joined(pages):
    return [title for page in pages for title in page]


def _leave_open(agent, session):
    make_tool_call(session=session)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads a plan of SQLite")
@pytest.mark.parametrize(
    ("query", "indexes"),
    [
        ({"expires": "1h"}, ["session_by_expiry"]),
        (
            {"attention": "yes"},
            ["session_in_trouble", "session_unanswered", "session_by_run_deadline"],
        ),
        ({"status": "CLOSED"}, ["session_ended_by_status"]),
        ({"status": "EXPIRED"}, ["session_ended_by_status", "session_by_expiry"]),
        ({"status": "DELETED"}, ["session_purged", "session_awaiting_purge"]),
        ({"failed": "yes"}, ["session_with_failed_run"]),
        ({"open_calls": "yes"}, ["session_unanswered"]),
        ({"user": "u"}, ["session_by_user_and_agent"]),
        ({"active": "1h"}, ["session_by_activity"]),
        ({"metadata": "k=v"}, ["metadata_term_by_digest"]),
    ],
    ids="-".join,
)
def test_each_seeking_filter_finds_by_its_index(support, query, indexes):
    with CaptureQueriesContext(connection) as captured:
        assert support.get(LIST, query).status_code == 200
    (sql,) = [each["sql"] for each in captured if each["sql"].startswith("SELECT pk FROM")]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        plan = " ".join(str(row) for row in cursor.fetchall())
    assert set(indexes) <= set(re.findall(r"INDEX (\w+)", plan)), plan
