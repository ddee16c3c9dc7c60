"""A session in which a run goes on: what its page asks for, and what it gets."""

import json
from datetime import timedelta

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs_app.services import RunManager
from sessions_app.models import ToolCall
from sessions_app.services import Actor, SessionManager
from sessions_app.services.transcript import PAGE_MESSAGES
from tests.admin import Page, make_person, read
from tests.domain import assistant, calling, result, user
from tests.factories import add_messages, make_run, make_session

HTMX = {"HX-Request": "true"}


@pytest.fixture
def session(agent):
    return make_session(account=agent, title="Followed")


@pytest.fixture
def run(session):
    return make_run(session=session)


@pytest.fixture(autouse=True)
def still():
    with time_machine.travel(timezone.now(), tick=False) as clock:
        yield clock


def at(session, tab=""):
    return f"/admin/sessions/{session.pk}/{tab}"


def turns(page):
    return [tag["id"] for tag in page.of("article") if "hx-swap-oob" not in tag]


def changed(page):
    return [tag["id"] for tag in page.of("article") if "hx-swap-oob" in tag]


def question(page):
    """What the page will ask next; None, if nothing."""
    (asks,) = [tag["hx-vals"] for tag in page.of("div") if "data-live" in tag] or [None]
    return asks and json.loads(asks)


def news(client, session, asks):
    response = client.get(at(session, "news/"), asks, headers=HTMX)
    return response.status_code, Page(response.content.decode())


def parts(client, session, asks):
    """All that the page gets until nothing is new, or it asks no more."""
    while asks:
        status, page = news(client, session, asks)
        if status == 204:
            break
        yield page
        asks = question(page)


class TestAPage:
    def test_follows_only_while_a_run_goes_on(self, operator, agent, session):
        assert question(read(operator, at(session))) is None
        run = make_run(session=session)
        assert question(read(operator, at(session)))["last"] == 0
        RunManager(Actor.account(agent)).complete(run_id=run.pk)
        assert question(read(operator, at(session))) is None

    def test_follows_only_from_the_newest_message(self, operator, session, run):
        add_messages(*(user(str(n)) for n in range(90)), session=session, run_id=run.pk)
        assert question(read(operator, at(session)))["last"] == 90
        page = read(operator, at(session), at=20)
        assert question(page) is None
        (later,) = [link for link in page.links() if "after=" in link]
        parts = [Page(operator.get(link, headers=HTMX).content.decode()) for link in (later,)]
        assert question(parts[0]) is None
        last = Page(operator.get(at(session), {"after": 80}, headers=HTMX).content.decode())
        assert question(last)["first"] == 81

    def test_does_not_follow_what_has_lapsed(self, operator, session, run, still):
        still.shift(timedelta(hours=2))
        assert question(read(operator, at(session))) is None


class TestNews:
    def test_are_none_while_nothing_happens(self, operator, session, run):
        add_messages(user(), session=session, run_id=run.pk)
        asks = question(read(operator, at(session)))
        assert news(operator, session, asks)[0] == 204

    def test_are_new_messages_once(self, operator, session, run):
        add_messages(user("one"), session=session, run_id=run.pk)
        asks = question(read(operator, at(session)))
        add_messages(assistant("two"), user("three"), session=session, run_id=run.pk)
        status, page = news(operator, session, asks)
        assert (status, turns(page), changed(page)) == (200, ["m2", "m3"], [])
        assert "mark-run" not in page.html
        assert "mark-day" not in page.html
        assert news(operator, session, question(page))[0] == 204

    def test_are_results_in_the_cards_of_their_calls(self, operator, session, run):
        add_messages(user(), calling("a"), session=session, run_id=run.pk)
        asks = question(read(operator, at(session)))
        add_messages(result("a", "all is well"), assistant(), session=session, run_id=run.pk)
        _status, page = news(operator, session, asks)
        assert (turns(page), changed(page)) == (["m4"], ["m2"])
        assert page.words().count("all is well") == 1
        assert [tag["id"] for tag in page.of("details") if "id" in tag] == ["m3"]

    def test_are_what_became_of_older_messages(self, operator, agent, session, run):
        add_messages(user("a secret"), calling("a"), session=session, run_id=run.pk)
        asks = question(read(operator, at(session)))
        manager = SessionManager(Actor.account(agent))
        manager.remove_message(session_id=session.pk, sequence=1)
        manager.settle_tool_call(id=ToolCall.objects.get().pk, reason="x")
        _status, page = news(operator, session, asks)
        assert (turns(page), changed(page)) == ([], ["m1", "m2"])
        assert "Removed" in page.words()
        assert "Cancelled" in page.words()

    def test_are_of_the_chosen_role(self, operator, session, run):
        add_messages(user("one"), assistant("two"), session=session, run_id=run.pk)
        asks = question(read(operator, at(session), role="user"))
        add_messages(assistant("three"), session=session, run_id=run.pk)
        _status, page = news(operator, session, asks)
        assert (turns(page), changed(page)) == ([], [])
        add_messages(user("four"), session=session, run_id=run.pk)
        asks = question(page)
        _status, page = news(operator, session, asks)
        assert turns(page) == ["m4"]
        assert "mark-day" not in page.html

    def test_are_not_what_became_of_others_than_of_the_chosen_role(self, operator, session, run):
        add_messages(user(), calling("a"), session=session, run_id=run.pk)
        asks = question(read(operator, at(session), role="user"))
        add_messages(result("a"), session=session, run_id=run.pk)
        _status, page = news(operator, session, asks)
        assert (turns(page), changed(page)) == ([], [])

    def test_come_in_parts_where_they_are_many(self, operator, session, run):
        asks = question(read(operator, at(session)))
        count = PAGE_MESSAGES * 2 + 3
        add_messages(*(user(str(n)) for n in range(count)), session=session, run_id=run.pk)
        seen = [each for page in parts(operator, session, asks) for each in turns(page)]
        assert seen == [f"m{number}" for number in range(1, count + 1)]

    @pytest.mark.parametrize("at_once", [1, 45])
    def test_are_all_results_however_many(self, operator, agent, session, run, at_once):
        count = PAGE_MESSAGES + 15
        ids = [f"c{n}" for n in range(count)]
        add_messages(*map(calling, ids), session=session, run_id=run.pk)
        asks = question(read(operator, at(session))) | {"first": 1}
        for begin in range(0, count, at_once):
            results = map(result, ids[begin : begin + at_once])
            add_messages(*results, session=session, run_id=run.pk)
        RunManager(Actor.account(agent)).complete(run_id=run.pk)
        brought = list(parts(operator, session, asks))
        seen = [each for page in brought for each in changed(page)]
        assert seen == [f"m{number}" for number in range(1, count + 1)]
        assert not any("No result yet" in page.words() for page in brought)
        said = ["this page is complete" in page.words() for page in brought]
        assert said == [False] * (len(brought) - 1) + [True]

    def test_bring_again_what_changes_between_two_parts(self, operator, session, run):
        count = PAGE_MESSAGES + 1
        ids = [f"c{n}" for n in range(count)]
        add_messages(calling("first", "second"), session=session, run_id=run.pk)
        add_messages(*map(calling, ids), session=session, run_id=run.pk)
        asks = question(read(operator, at(session))) | {"first": 1}
        add_messages(result("first"), *map(result, ids), session=session, run_id=run.pk)
        asks = question(news(operator, session, asks)[1])
        add_messages(result("second"), session=session, run_id=run.pk)
        seen = [each for page in parts(operator, session, asks) for each in changed(page)]
        assert seen == ["m1", f"m{count}", f"m{count + 1}"]

    def test_end_with_the_run(self, operator, agent, session, run):
        add_messages(user(), session=session, run_id=run.pk)
        asks = question(read(operator, at(session)))
        RunManager(Actor.account(agent)).complete(run_id=run.pk)
        status, page = news(operator, session, asks)
        assert (status, question(page)) == (200, None)
        assert "The run has ended; this page is complete." in page.words()
        (mark,) = [tag for tag in page.of("span") if "innerHTML" in tag.get("hx-swap-oob", "")]
        assert run.pk in mark["hx-swap-oob"]
        assert "Completed" in page.words()

    def test_end_with_the_lease_and_with_the_session(self, operator, agent, session, run, still):
        asks = question(read(operator, at(session)))
        still.shift(timedelta(hours=2))
        assert question(news(operator, session, asks)[1]) is None
        SessionManager(Actor.account(agent)).delete(session_id=session.pk)
        status, page = news(operator, session, asks)
        assert (status, question(page)) == (200, None)
        assert "This session was deleted." in page.words()

    @pytest.mark.parametrize("name", ["first", "last", "since", "run", "role"])
    @pytest.mark.parametrize("value", ["", "x", "-1", "9" * 18, "9" * 40, "\x00", "<b>"])
    def test_bear_whatever_is_asked(self, operator, session, run, name, value):
        add_messages(user(), session=session, run_id=run.pk)
        asks = question(read(operator, at(session))) | {"since": 1, name: value}
        assert news(operator, session, asks)[0] in {200, 204}

    def test_cost_the_same_for_few_and_many(self, operator, agent):
        counts = []
        for number in (5, 100):
            session = make_session(account=agent)
            run = make_run(session=session)
            ids = [f"c{n}" for n in range(number)]
            add_messages(user(), calling(*ids), session=session, run_id=run.pk)
            asks = question(read(operator, at(session)))
            add_messages(*map(result, ids), session=session, run_id=run.pk)
            news(operator, session, asks)
            with CaptureQueriesContext(connection) as asked:
                news(operator, session, asks)
            counts.append(len(asked))
        assert counts[0] == counts[1]

    def test_are_for_who_may_read(self, entered, session, run):
        person = make_person("operators")
        person.groups.get().permissions.remove(Permission.objects.get(codename="read_content"))
        assert news(entered("operators"), session, {"last": 0, "since": 1})[0] == 403
        assert news(entered("administrators"), session, {"last": 0, "since": 1})[0] == 403


class TestTheOtherTabs:
    @pytest.mark.parametrize("tab", ["memory/", "runs/", "tools/", "events/"])
    def test_are_brought_anew_only_when_something_happened(self, operator, session, run, tab):
        asks = question(read(operator, at(session, tab)))
        assert operator.get(at(session, tab), asks, headers=HTMX).status_code == 204
        add_messages(calling("a"), session=session, run_id=run.pk)
        page = Page(operator.get(at(session, tab), asks, headers=HTMX).content.decode())
        assert question(page)["since"] > asks["since"]
        parts = {tag.get("id") for _name, tag in page.tags}
        assert {"session-live", "session-part", "session-lead", "session-facts", "tabs"} <= parts

    def test_follow_on_their_first_page_only(self, operator, session, run):
        add_messages(*(calling(f"c{n}") for n in range(60)), session=session, run_id=run.pk)
        page = read(operator, at(session, "tools/"))
        (older,) = [link for link in page.links() if "before=" in link]
        assert question(page)
        assert question(read(operator, older)) is None


class TestRecords:
    def test_lead_to_their_places_in_the_session(self, operator, session, run):
        message, _answer = add_messages(calling("a"), result("a"), session=session, run_id=run.pk)
        call = ToolCall.objects.get()
        links = read(operator, f"/admin/sessions_app/toolcall/{quote(call.pk)}/change/").links()
        assert f"{at(session)}?at=1#m1" in links
        assert f"{at(session)}?at=2#m2" in links
        links = read(operator, f"/admin/sessions_app/message/{quote(message.pk)}/change/").links()
        assert f"{at(session)}?at=1#m1" in links
        links = read(operator, at(session)).links()
        assert f"/admin/runs_app/run/{run.pk}/change/" in links
        assert f"/admin/sessions_app/toolcall/{call.pk}/change/" in links
