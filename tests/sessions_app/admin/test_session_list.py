"""The list of sessions: its columns, tabs, filters, search and pages."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission
from django.utils import timezone

from runs_app.services import RunManager
from sessions_app.models import Session
from sessions_app.services import Actor, SessionManager
from tests.admin import read
from tests.factories import (
    add_messages,
    make_lapsed_session,
    make_run,
    make_session,
    make_tool_call,
)
from tests.session_list import LIST, fail, query_of, titles


@pytest.fixture
def support(entered):
    return entered("support")


class TestARow:
    def test_tells_what_a_session_is_at_a_glance(self, support, agent):
        session = make_session(account=agent, title="Refund", agent_id="shop", user_id="u-1")
        fail(agent, session)
        fail(agent, session)
        make_run(session=session)
        add_messages({"role": "user", "content": "x"}, session=session)
        make_tool_call(session=session)
        Session.objects.update(input_tokens=1200, output_tokens=34)
        page = read(support, LIST)
        words = page.words()
        for said in ("Refund", "shop", "u-1", "Active", "3 Running 2 failed", "1,234"):
            assert said in words
        assert "1 1 open call" in words
        (shown,) = [tag for tag in page.of("span") if tag.get("class") == "id"]
        assert shown["title"] == session.pk
        assert f"{session.pk[:17]}…" in words
        assert session.pk not in words

    def test_says_when_it_expires_or_has(self, support, agent):
        make_session(account=agent, idle_timeout_seconds=7200 + 60)
        assert "in 2 hours" in read(support, LIST).words()
        SessionManager(Actor.account(agent)).close(session_id=Session.objects.get().pk)
        assert "in 2 hours" not in read(support, LIST).words()
        make_lapsed_session(account=agent)
        assert "minutes ago" in read(support, LIST, status="EXPIRED").words()

    def test_needs_no_failed_run_to_say_nothing(self, support, agent):
        make_session(account=agent)
        assert "0 failed" not in read(support, LIST).words()


class TestTabs:
    def test_hold_what_they_say(self, support, agent):
        manager = SessionManager(Actor.account(agent))
        make_session(account=agent, title="plain")
        make_session(account=agent, title="soon", idle_timeout_seconds=600)
        make_lapsed_session(account=agent, title="lapsed")
        for title, end in (("closed", manager.close), ("deleted", manager.delete)):
            end(session_id=make_session(account=agent, title=title).pk)
        make_tool_call(session=make_session(account=agent, title="open"))
        page = read(support, LIST)
        tabs = [link for link in page.links() if link.startswith("?")][:7]
        found = [titles(support, **query_of(link)) for link in tabs]
        everything = ["open", "closed", "lapsed", "soon", "plain"]
        active = ["open", "soon", "plain"]
        assert found == [everything, active, ["soon"], ["open"], ["closed"], ["lapsed"], [None]]

    def test_keep_the_other_filters_and_begin_at_the_first_page(self, support, agent):
        session = make_session(account=agent)
        page = read(support, LIST, agent="a&b", older=session.pk, status="CLOSED")
        assert "?agent=a%26b&attention=yes" in page.links()
        (current,) = [
            tag for tag in page.of("a") if tag.get("aria-current") == "page" and "?" in tag["href"]
        ]
        assert current["href"] == "?agent=a%26b&status=CLOSED"


class TestNeedingAttention:
    def find(self, support):
        return titles(support, attention="yes")

    @pytest.mark.parametrize("end", ["fail", "wait"])
    def test_is_a_newest_run_that_failed_or_waits(self, support, agent, end):
        session = make_session(account=agent, title="here")
        run = make_run(session=session)
        more = {"error": {"type": "x"}} if end == "fail" else {"reason": "x"}
        getattr(RunManager(Actor.account(agent)), end)(run_id=run.pk, **more)
        assert self.find(support) == ["here"]
        SessionManager(Actor.account(agent)).close(session_id=session.pk)
        assert self.find(support) == []

    def test_is_a_run_whose_deadline_has_passed(self, support, agent):
        make_run(session=make_session(account=agent, title="here"))
        assert self.find(support) == []
        Session.objects.update(active_run_deadline=timezone.now())
        assert self.find(support) == ["here"]

    def test_is_a_run_without_a_sign_of_life(self, support, agent):
        make_run(session=make_session(account=agent, title="here"), lease_seconds=3600)
        Session.objects.update(active_run_seen_at=timezone.now() - timedelta(minutes=11))
        assert self.find(support) == ["here"]

    def test_is_an_open_call_that_nobody_works_on(self, support, agent):
        session = make_session(account=agent, title="here")
        run = make_run(session=session)
        make_tool_call(session=session, run_id=run.pk)
        assert self.find(support) == []  # its run goes on
        make_tool_call(session=make_session(account=agent, title="alone"))
        assert self.find(support) == ["alone"]

    def test_is_no_run_that_was_followed_by_a_better_one(self, support, agent):
        session = make_session(account=agent)
        fail(agent, session)
        run = make_run(session=session)
        RunManager(Actor.account(agent)).complete(run_id=run.pk)
        assert self.find(support) == []


class TestFilters:
    def test_find_failed_runs(self, support, agent):
        fail(agent, make_session(account=agent, title="bad"))
        make_session(account=agent, title="good")
        assert titles(support, failed="yes") == ["bad"]

    def test_find_metadata(self, support, agent):
        make_session(account=agent, title="a", metadata={"tier": "gold", "n": 5, "x": "1=2"})
        make_session(account=agent, title="b", metadata={"tier": "silver", "n": 5})
        assert titles(support, metadata="tier=gold") == ["a"]
        assert titles(support, metadata="n=5") == ["b", "a"]
        assert titles(support, metadata="x=1=2") == ["a"]
        assert titles(support, metadata="tier=Gold") == []

    @pytest.mark.parametrize(
        "bad", [{"metadata": "tier"}, {"active_from": "soon"}, {"active_to": "2026-13-01T00:00"}]
    )
    def test_say_what_they_do_not_understand(self, support, agent, bad):
        make_session(account=agent)
        page = read(support, LIST, **bad)
        assert "written like" in page.words() or "found by key=value" in page.words()
        assert titles(support, **bad) == []

    def test_find_what_was_active_in_a_range_and_not_only_what_began_in_it(self, support, agent):
        now = timezone.now()

        def at(hours):
            return (now + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S")

        session = make_session(account=agent, title="long")
        Session.objects.filter(pk=session.pk).update(
            created_at=now - timedelta(hours=5), last_activity_at=now - timedelta(hours=1)
        )
        inside = {"active_from": at(-3), "active_to": at(1)}
        assert titles(support, **inside) == ["long"]
        assert titles(support, active_from=at(-0.5)) == []
        # The range ends before it begins to exist.
        assert titles(support, active_to=at(-6)) == []
        assert titles(support, active_from=at(-9), active_to=at(1)) == ["long"]
        assert titles(support, active="24h") == ["long"]
        assert titles(support, active="1h") == []

    @pytest.mark.parametrize(
        "moment", ["0001-01-01T00:00", "9999-12-31T23:59", "2026-01-01T00:00+99:99", "\x00", "1e9"]
    )
    def test_bear_any_time(self, support, agent, moment):
        for name in ("active_from", "active_to"):
            assert support.get(LIST, {name: moment}).status_code == 200

    def test_go_together(self, support, agent):
        fail(agent, make_session(account=agent, title="both", agent_id="x", metadata={"k": "v"}))
        fail(agent, make_session(account=agent, title="one", agent_id="y", metadata={"k": "v"}))
        query = {"failed": "yes", "metadata": "k=v", "agent": "x", "status": "ACTIVE", "q": "bot"}
        assert titles(support, **query) == ["both"]


class TestSearch:
    def test_finds_an_id_by_its_beginning_whatever_its_case(self, support, agent):
        session = make_session(account=agent, title="a")
        assert titles(support, q=session.pk[:17]) == ["a"]
        assert titles(support, q=f" {session.pk.upper()} ") == ["a"]
        assert titles(support, q=session.pk[:-1] + "!") == []

    def test_leaves_nothing_out_beside_the_id(self, support, agent):
        make_session(account=agent, title="about sess_ ids")
        make_session(account=agent, title="b", user_id="Émile")
        make_session(account=agent, title="c", external_id="T-5")
        assert titles(support, q="ABOUT") == ["about sess_ ids"]
        assert titles(support, q="Émi") == ["b"]
        assert titles(support, q="t-5") == ["c"]

    def test_finds_what_was_said(self, support, agent, monkeypatch):
        session = make_session(account=agent, title="a", working_memory={"goal": "Rückgabe"})
        add_messages({"role": "user", "content": "Where is 我的订单?"}, session=session)
        make_session(account=agent, title="b")
        for words in ("where", "订单", "订", "RÜCK", "is ?"):
            assert titles(support, q=words) == ["a"]
        assert titles(support, q="here") == titles(support, q="where rück") == []
        assert titles(support, q="where", status="CLOSED") == []
        monkeypatch.setattr("sessions_app.services.finding.MOST_MATCHES", 0)
        assert "the newest were looked at" in read(support, LIST, q="where").words()

    def test_tells_nobody_who_may_not_read_it(self, support, agent):
        Group.objects.get(name="support").permissions.remove(
            Permission.objects.get(codename="read_content")
        )
        session = make_session(account=agent, title="a")
        add_messages({"role": "user", "content": "secret"}, session=session)
        assert titles(support, q="secret") == []
        assert titles(support, q="a") == ["a"]
