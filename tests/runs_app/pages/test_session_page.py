"""A session's page: who sees what of it, what each tab shows, and that it costs the same always."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs_app.services import RunManager
from sessions_app.models import ContentRead, Message
from sessions_app.services import Actor, NewFork, SessionManager
from tests.admin import Page, make_person, make_whole, read
from tests.domain import assistant, calling, result, user
from tests.factories import add_messages, make_messages, make_run, make_session

HTMX = {"HX-Request": "true"}
TABS = ("", "memory/", "runs/", "tools/", "events/", "raw/")
CONTENT = {"": "transcript", "memory/": "memory", "tools/": "tools", "raw/": "raw"}


def at(session, tab=""):
    return f"/admin/sessions/{session.pk}/{tab}"


def turns(page):
    return [attrs["id"] for attrs in page.of("article")]


@pytest.fixture
def operator(entered):
    return entered("superuser")


@pytest.fixture
def whole(agent):
    return make_whole(agent, text="a secret of the customer", title="A title")


def without(codename, *, role="operators"):
    person = make_person(role)
    person.groups.get().permissions.remove(Permission.objects.get(codename=codename))


class TestRoles:
    @pytest.mark.parametrize("tab", TABS)
    @pytest.mark.parametrize(
        ("role", "status"),
        {
            "superuser": 200,
            "operators": 200,
            "support": 200,
            "administrators": 403,
            "staff": 403,
        }.items(),
    )
    def test_see_the_page_or_not(self, entered, whole, tab, role, status):
        assert entered(role).get(at(whole.session, tab)).status_code == status

    @pytest.mark.parametrize("tab", CONTENT)
    def test_without_the_right_to_read_are_told_so(self, entered, whole, tab):
        without("read_content")
        page = read(entered("operators"), at(whole.session, tab))
        assert "may not read what sessions contain" in page.words()
        assert "A title" in page.words()
        assert page.of("article") == []
        assert '"secret' not in page.text
        assert not ContentRead.objects.exists()

    @pytest.mark.parametrize(
        "tab", ["messages/1/0/", "calls/{call}/arguments/", "raw/session/", "raw/messages/"]
    )
    def test_without_the_right_to_read_get_no_part(self, entered, whole, tab):
        address = at(whole.session, tab.format(call=whole.call.pk))
        assert entered("operators").get(address).status_code == 200
        without("read_content")
        known = ContentRead.objects.count()
        assert entered("operators").get(address).status_code == 403
        assert entered("operators").get(at(whole.session), headers=HTMX).status_code == 403
        assert ContentRead.objects.count() == known

    @pytest.mark.parametrize(
        ("tab", "codename"),
        {
            "memory/": "view_workingmemoryrevision",
            "runs/": "view_run",
            "tools/": "view_toolcall",
            "events/": "view_sessionevent",
            "raw/": "view_message",
        }.items(),
    )
    def test_without_the_right_to_see_have_no_tab(self, entered, whole, tab, codename):
        without(codename)
        client = entered("operators")
        assert client.get(at(whole.session, tab)).status_code == 403
        assert at(whole.session, tab) not in read(client, at(whole.session)).links()

    @pytest.mark.parametrize(("tab", "page"), CONTENT.items())
    def test_that_read_are_written_down(self, entered, whole, tab, page):
        read(entered("support"), at(whole.session, tab))
        noted = ContentRead.objects.get()
        assert (noted.reader, noted.page) == ("a-support", page)


class TestTheAddress:
    def test_of_the_record_leads_here(self, operator, whole):
        response = operator.get(f"{whole.page('sessions_app_session')}?at=2")
        assert response.url == f"{at(whole.session)}?at=2"

    @pytest.mark.parametrize("pk", ["sess_unknown", "x%00y", "%F0%9F%98%80", "'"])
    def test_of_no_session_is_404(self, operator, pk):
        for tab in TABS:
            assert operator.get(f"/admin/sessions/{pk}/{tab}").status_code == 404

    @pytest.mark.parametrize("pk", ["_2F_2Fevil.example", "_2Fx", "_0Ax", "_00", "sess_%E4%BC%9A"])
    def test_of_no_record_leads_nowhere(self, operator, pk):
        assert operator.get(f"/admin/sessions_app/session/{pk}/change/").status_code == 404

    def test_of_a_history_is_that_of_the_events(self, operator):
        for given, asked in (("sess_5Fa", "sess_a"), ("a&b=1%23c", "a%26b%3D1%23c")):
            response = operator.get(f"/admin/sessions_app/session/{given}/history/")
            assert response.url == f"/admin/sessions_app/sessionevent/?session={asked}"

    @pytest.mark.parametrize("query", ["at", "before", "after"])
    @pytest.mark.parametrize("value", ["", "x", "-1", "9" * 40, "²", "\x00"])
    def test_with_a_number_that_is_none_shows_the_newest(self, operator, whole, query, value):
        assert turns(read(operator, at(whole.session), **{query: value})) == ["m1", "m2"]


class TestADeletedSession:
    def test_has_its_events_and_nothing_else(self, operator, agent, whole):
        SessionManager(Actor.account(agent)).delete(session_id=whole.session.pk)
        for tab in CONTENT:
            page = read(operator, at(whole.session, tab))
            assert "This session was deleted." in page.words()
        assert "Deleted" in read(operator, at(whole.session, "events/")).words()
        assert operator.get(at(whole.session, "raw/messages/")).status_code == 403


class TestTheHead:
    def test_shows_facts_and_leads_to_the_actions(self, operator, whole):
        page = read(operator, at(whole.session))
        assert "A title" in page.words()
        for operation in ("close", "expire", "remove"):
            assert f"/admin/sessions_app/session/{operation}/?id={whole.session.pk}" in page.links()

    def test_leads_to_parent_and_forks(self, operator, agent, whole):
        manager = SessionManager(Actor.account(agent))
        fork = manager.fork(session_id=whole.session.pk, new=NewFork(at_sequence=1))
        child = make_session(account=agent, parent_session_id=whole.session.pk)
        assert {at(fork), at(child)} <= set(read(operator, at(whole.session)).links())
        assert at(fork) in read(operator, at(whole.session, "events/")).links()
        page = read(operator, at(fork))
        assert f"{at(whole.session)}?at=1#m1" in page.links()
        assert "Forked from" in page.words()
        assert "Parent session" in read(operator, at(child)).words()


class TestTheTranscript:
    def test_begins_with_the_newest_and_has_the_earlier_ones_on_demand(self, operator, agent):
        session = make_session(account=agent)
        make_messages(session=session, count=120)
        page = read(operator, at(session))
        assert turns(page) == [f"m{number}" for number in range(91, 121)]
        (earlier,) = [link for link in page.links() if "before=" in link]
        part = Page(operator.get(earlier, headers=HTMX).content.decode())
        assert turns(part) == [f"m{number}" for number in range(61, 91)]
        assert not part.of("main")
        assert not [link for link in part.links() if "after=" in link]

    def test_opens_at_a_message(self, operator, agent):
        session = make_session(account=agent)
        make_messages(session=session, count=120)
        page = read(operator, at(session), at=60)
        assert "m60" in turns(page)
        (later,) = [link for link in page.links() if "after=" in link]
        part = Page(operator.get(later, headers=HTMX).content.decode())
        assert turns(part)[0] == "m75"

    def test_is_narrowed_to_a_role(self, operator, agent):
        session = make_session(account=agent)
        add_messages(user("one"), assistant("two"), user("three"), session=session)
        assert turns(read(operator, at(session), role="user")) == ["m1", "m3"]
        assert len(turns(read(operator, at(session), role="evil"))) == 3

    def test_shows_a_call_and_its_result_as_one(self, operator, agent):
        session = make_session(account=agent)
        add_messages(calling("a", "b"), session=session)
        add_messages(result("a", "fine"), result("b", "broken", is_error=True), session=session)
        page = read(operator, at(session))
        assert turns(page) == ["m1"]
        cards = page.of("details")
        open_ones = [card["id"] for card in cards if "open" in card and "id" in card]
        assert open_ones == ["m3"]
        assert "2 calls at once" in page.words()
        assert "fine" in page.words()

    def test_names_the_call_of_a_result_that_stands_alone(self, operator, agent):
        session = make_session(account=agent)
        add_messages(calling("a"), session=session)
        make_messages(session=session, count=60)
        add_messages(result("a", "fine"), session=session)
        page = read(operator, at(session))
        assert turns(page)[-1] == "m62"
        assert f"{at(session)}?at=1#m1" in page.links()

    def test_marks_a_result_of_other_hands_that_answers_no_call(self, operator, agent):
        """Report PAIR-04; the API refuses one."""
        session = make_session(account=agent)
        add_messages(calling("a"), result("a", "an orphan's words"), session=session)
        session.tool_calls.all().delete()
        page = read(operator, at(session))
        assert "Answers no call" in page.words()
        assert "an orphan's words" in page.words()

    def test_marks_what_a_cancelled_run_left_incomplete(self, operator, agent):
        """Report RUN-06: it vanished."""
        session = make_session(account=agent)
        run = make_run(session=session)
        add_messages(user("go"), session=session, run_id=run.pk)
        partial = assistant("half a sen", status="incomplete")
        add_messages(partial, session=session, run_id=run.pk)
        RunManager(Actor.account(agent)).cancel(run_id=run.pk)
        words = read(operator, at(session)).words()
        assert all(word in words for word in ("half a sen", "Incomplete", "Cancelled"))

    def test_marks_what_was_superseded_and_removed(self, operator, agent):
        session = make_session(account=agent)
        add_messages(user("one"), user("a word to remove"), user("past"), session=session)
        manager = SessionManager(Actor.account(agent))
        manager.remove_message(session_id=session.pk, sequence=2)
        manager.rewind(session_id=session.pk, to_sequence=2)
        page = read(operator, at(session))
        assert {"Removed", "Superseded", "past"} <= set(page.words().split())
        assert "a word to remove" not in page.words()

    def test_says_what_a_summary_stands_for(self, operator, agent):
        session = make_session(account=agent)
        add_messages(user("one"), user("two"), session=session)
        manager = SessionManager(Actor.account(agent))
        manager.compact(session_id=session.pk, through_sequence=1, summary="in short")
        page = read(operator, at(session))
        assert turns(page) == ["m1", "m2", "m3"]
        assert "Summary up to #1" in page.words()

    def test_marks_where_a_run_begins(self, operator, agent):
        session = make_session(account=agent)
        run = make_run(session=session)
        add_messages(user("one"), user("two"), session=session, run_id=run.pk)
        RunManager(Actor.account(agent)).complete(run_id=run.pk)
        add_messages(user("three"), session=session)
        page = read(operator, at(session))
        assert page.html.count("mark-run") == 1
        assert "Outside of runs" in page.words()

    def test_folds_a_long_text_and_gives_the_whole(self, operator, agent):
        session = make_session(account=agent)
        text = "word " * 2_000 + "the end"
        (message,) = add_messages(user(text), session=session)
        page = read(operator, at(session))
        assert "the end" not in page.words()
        whole = operator.get(at(session, "messages/1/0/")).content.decode()
        assert "the end" in whole
        assert any(
            f"{message.pk.replace('_', '_5F')}/download" in link or f"{message.pk}/download" in link
            for link in page.links()
        )

    @pytest.mark.parametrize("address", ["messages/1/9/", "messages/9/0/", "calls/x/result/"])
    def test_has_no_part_that_is_not_there(self, operator, whole, address):
        assert operator.get(at(whole.session, address)).status_code == 404

    def test_has_pictures_from_what_is_stored_only(self, operator, agent):
        session = make_session(account=agent)
        pictures = [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            {"type": "image_url", "image_url": {"url": "https://evil.example/x.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PHN2Zz4="}},
            {"type": "text", "text": "![a](https://evil.example/y.png)"},
        ]
        add_messages(user(pictures), session=session)
        shown = [attrs["src"] for attrs in read(operator, at(session)).of("img")]
        assert shown == ["data:image/png;base64,iVBORw0KGgo="]


class TestRecordedShapes:
    def test_are_all_shown(self, operator, agent):
        session = make_session(account=agent)
        folder = Path(__file__).parents[2] / "real" / "sessions"
        told = json.loads((folder / "odd_shapes.json").read_text())
        for message in told["messages"]:
            add_messages(message, session=session)
        odd: list[dict[str, Any]] = [
            {"item": {"type": "message", "role": [], "content": [1, None, [], {}]}},
            {"item": {"type": "reasoning"}},
        ]
        add_messages(*odd, session=session)
        for tab in TABS:
            assert read(operator, at(session, tab)).text


class TestTheOtherTabs:
    def test_show_the_memory_and_what_changed(self, operator, agent):
        session = make_session(account=agent, working_memory={"goal": "first", "plan": ["a"]})
        manager = SessionManager(Actor.account(agent))
        manager.replace_memory(
            session_id=session.pk, document={"goal": "second", "plan": ["a", "b"]}
        )
        page = read(operator, at(session, "memory/"))
        words = page.words()
        assert len(page.of("del")) == 1
        assert len(page.of("ins")) == 4
        assert "Version 2" in words

    def test_page_by_their_keys(self, operator, agent):
        session = make_session(account=agent)
        add_messages(*(calling(f"c{n}") for n in range(60)), session=session)
        page = read(operator, at(session, "tools/"))
        (older,) = [link for link in page.links() if "before=" in link]
        rows = len(page.of("tr")) + len(read(operator, older).of("tr"))
        assert rows == 60 + 2

    def test_give_the_session_and_its_messages_as_files(self, operator, whole):
        session = json.loads(operator.get(at(whole.session, "raw/session/")).content)
        assert session["session_id"] == whole.session.pk
        response = operator.get(at(whole.session, "raw/messages/"))
        lines = b"".join(response.streaming_content).splitlines()
        assert [json.loads(line)["sequence"] for line in lines] == [1, 2]
        assert json.dumps(json.loads(lines[0])["message"]) == json.dumps(
            Message.objects.get(sequence=1).body.value
        )
        assert operator.get(at(whole.session, "raw/evil/")).status_code == 404


class TestCost:
    @pytest.mark.parametrize("tab", TABS)
    def test_is_the_same_for_few_and_many(self, operator, agent, tab):
        counts = []
        for number in (5, 100):
            session = make_session(account=agent)
            run = make_run(session=session)
            batch = [
                each
                for n in range(number)
                for each in (user("x"), calling(f"c{n}"), result(f"c{n}"), assistant("y"))
            ]
            add_messages(*batch, session=session, run_id=run.pk)
            operator.get(at(session, tab))
            with CaptureQueriesContext(
                connection,
            ) as asked:
                operator.get(at(session, tab))
            counts.append(len(asked))
        assert counts[0] == counts[1]
