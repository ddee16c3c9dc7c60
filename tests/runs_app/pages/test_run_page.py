"""The page of one run: what it shows to whom, and how it follows a run that goes on."""

from datetime import timedelta

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs_app.services import RunManager
from sessions_app.models import ContentRead
from sessions_app.services import Actor, SessionManager
from tests.admin import Page, make_person, make_whole, read
from tests.domain import calling, result, user
from tests.factories import add_messages, make_run, make_session

HTMX = {"HX-Request": "true"}


@pytest.fixture
def run(agent):
    session = make_session(account=agent, working_memory={"goal": "before", "plan": ["a", "b"]})
    return make_run(session=session, input={"task": "repair"}, agent_id="coder")


@pytest.fixture
def still():
    """The clock stands: a page of a live run changes with it."""
    with time_machine.travel(timezone.now(), tick=False) as clock:
        yield clock


def page_of(run):
    return f"/admin/runs_app/run/{quote(run.pk)}/change/"


def seen(page):
    return [tag["value"] for tag in page.of("input") if tag.get("name") == "seen"]


def refresh(client, run, marks):
    return client.get(page_of(run), {"seen": marks}, headers=HTMX)


def parts_in(response):
    page = Page(response.content.decode())
    return [tag["id"] for tag in page.of("div") if tag.get("hx-swap-oob")]


class TestWhatItShows:
    def test_is_each_call_as_a_bar_that_leads_to_it(self, operator, run):
        add_messages(user(), calling("c1", "c2"), session=run.session, run_id=run.pk)
        add_messages(result("c1"), session=run.session, run_id=run.pk)
        page = read(operator, page_of(run))
        bars = [tag["class"] for tag in page.of("rect") if tag.get("y") == "8"]
        assert sorted(bars) == ["bar bar-pending", "bar bar-succeeded"]
        for call in run.tool_calls.all():
            address = f"/admin/sessions_app/toolcall/{quote(call.pk)}/change/"
            assert page.links().count(address) == 2
        settle = [link for link in page.links() if "/settle/" in link]
        assert settle == [f"/admin/sessions_app/toolcall/settle/?id={run.tool_calls.last().pk}"]

    def test_is_its_child_runs_and_its_parent(self, operator, run):
        child = make_run(session=run.session, parent_run_id=run.pk, agent_id="reviewer")
        assert page_of(child) in read(operator, page_of(run)).links()
        assert page_of(run) in read(operator, page_of(child)).links()

    def test_is_what_it_changed_in_the_working_memory(self, operator, agent, run):
        SessionManager(Actor.account(agent)).patch_memory(
            session_id=run.session_id, patch={"goal": "after", "plan": ["b", "c"]}, run_id=run.pk
        )
        page = read(operator, page_of(run))
        assert "Removed: before" in page.words()
        assert "Added: after" in page.words()
        assert (len(page.of("ins")), len(page.of("del"))) == (2, 2)

    def test_says_when_it_changed_nothing_there(self, operator, run):
        page = read(operator, page_of(run))
        assert "This run has not changed it." in page.words()
        assert page.of("ins") + page.of("del") == []

    def test_is_the_beginning_of_long_messages(self, operator, run):
        long = "First\nline " + "x" * 50_000
        add_messages(user(long), user([{"type": "text", "text": "a part"}]), session=run.session)
        add_messages(user(long), session=run.session, run_id=run.pk)
        page = read(operator, page_of(run))
        assert "First" in page.words()
        assert "x" * 601 not in page.html
        assert "a part" not in page.words()

    def test_is_the_newest_of_many_messages(self, operator, run):
        add_messages(*map(user, map(str, range(60))), session=run.session, run_id=run.pk)
        page = read(operator, page_of(run))
        shown = [tag["id"] for tag in page.of("li") if tag.get("id", "").startswith("run-m")]
        assert (len(shown), shown[-1]) == (50, "run-m60")
        assert "see all" in page.words()

    def test_is_its_attempts(self, operator, agent, run):
        manager = RunManager(Actor.account(agent))
        manager.wait(run_id=run.pk, reason="for approval")
        manager.resume(run_id=run.pk)
        words = read(operator, page_of(run)).words()
        assert "attempt 2" in words
        assert "for approval" in words

    @pytest.mark.parametrize("error", ["a word", ["a", "list"], {"code": 7}, {"type": 3}, ""])
    def test_is_an_error_of_any_shape(self, operator, agent, run, error):
        RunManager(Actor.account(agent)).fail(run_id=run.pk, error=error)
        assert "The whole error" in read(operator, page_of(run)).words()

    def test_costs_the_same_for_little_and_much(self, operator, run):
        counts = []
        for number in (5, 100):
            ids = [f"{number}-{each}" for each in range(number)]
            add_messages(calling(*ids), session=run.session, run_id=run.pk)
            add_messages(*map(result, ids[1:]), session=run.session, run_id=run.pk)
            read(operator, page_of(run))
            with CaptureQueriesContext(
                connection,
            ) as queries:
                read(operator, page_of(run))
            counts.append(len(queries))
        assert counts[0] == counts[1]
        assert counts[0] < 20


class TestWhoMaySeeIt:
    @pytest.mark.parametrize(
        ("role", "status"),
        [("support", 200), ("operators", 200), ("administrators", 403), ("staff", 403)],
    )
    def test_is_who_may_see_runs(self, entered, run, role, status):
        assert entered(role).get(page_of(run)).status_code == status
        assert entered(role).get(page_of(run), headers=HTMX).status_code == status

    def test_do_nothing_unless_they_may(self, entered, run):
        add_messages(calling("c1"), session=run.session, run_id=run.pk)
        offered = [
            [link for link in read(entered(role), page_of(run)).links() if "?id=" in link]
            for role in ("support", "operators")
        ]
        assert [len(links) for links in offered] == [0, 2]

    def test_read_nothing_without_the_right_to(self, entered, agent):
        whole = make_whole(agent, text="a secret of the customer", title="T", agent_id="A")
        person = make_person("operators")
        person.groups.get().permissions.remove(Permission.objects.get(codename="read_content"))
        person.groups.get().permissions.remove(Permission.objects.get(codename="view_toolcall"))
        RunManager(Actor.account(agent)).fail(run_id=whole.run.pk, error={"message": "Geheim"})
        for headers in ({}, HTMX):
            html = entered("operators").get(page_of(whole.run), headers=headers).content.decode()
            assert "Geheim" not in html
            assert "Hello" not in html
            assert "/download/" not in html
        assert not ContentRead.objects.exists()

    def test_are_led_back_to_the_list_if_there_is_none(self, operator, db):
        for name in ("run_01", "x%00y"):
            response = operator.get(f"/admin/runs_app/run/{name}/change/")
            assert response["Location"] == "/admin/runs_app/run/"


class TestFollowing:
    def test_brings_nothing_where_nothing_changed(self, operator, run, still):
        page = read(operator, page_of(run))
        assert [tag["hx-get"] for tag in page.of("div") if "hx-get" in tag] == [page_of(run)]
        response = refresh(operator, run, seen(page))
        assert (response.status_code, response.content) == (204, b"")

    def test_brings_only_what_has_changed(self, operator, run, still):
        add_messages(user("First"), session=run.session, run_id=run.pk)
        page = read(operator, page_of(run))
        add_messages(user("Second"), session=run.session, run_id=run.pk)
        response = refresh(operator, run, seen(page))
        assert response.status_code == 200
        assert parts_in(response) == ["run-timeline", "run-messages"]
        words = Page(response.content.decode()).words()
        assert (words.count("First"), words.count("Second")) == (1, 1)

    def test_ends_with_the_run(self, operator, agent, run, still):
        page = read(operator, page_of(run))
        RunManager(Actor.account(agent)).complete(run_id=run.pk, output="All good")
        response = refresh(operator, run, seen(page))
        assert response.status_code == 286
        assert b"All good" in response.content
        assert b"hx-trigger" not in response.content
        assert "run-live" in parts_in(response)
        assert not [tag for tag in read(operator, page_of(run)).of("div") if "hx-get" in tag]

    def test_ends_when_the_lease_has_passed(self, operator, run, still):
        marks = seen(read(operator, page_of(run)))
        still.shift(timedelta(hours=2))
        response = refresh(operator, run, marks)
        assert response.status_code == 286
        assert "Interrupted" in Page(response.content.decode()).words()

    def test_is_one_visit(self, entered, run, still):
        client = entered("support")
        for _ in range(3):
            refresh(client, run, [])
        assert ContentRead.objects.count() == 1
