"""Closing, expiring, resuming, deleting and settling: what the pages promise and what they do."""

import pytest
from django.db import OperationalError

from runs_app.models import Run
from sessions_app.models import Message, Session, SessionEvent, ToolCall
from sessions_app.services import Actor, SessionManager
from tests.admin import Page, make_whole, read, told
from tests.factories import make_lapsed_session, make_run, make_session, make_tool_call

LIST = "/admin/sessions_app/session/"


def page_of(session):
    return f"{LIST}{session.pk.replace('_', '_5F')}/change/"


def operate(client, operation, *sessions, reason="because", **more):
    data = {"id": [session.pk for session in sessions], "reason": reason, **more}
    return client.post(f"{LIST}{operation}/", data, follow=True)


def choose(client, action, *sessions):
    data = {"action": action, "_selected_action": [session.pk for session in sessions]}
    return Page(client.post(LIST, data).content.decode())


def closed(agent, **fields):
    session = make_session(account=agent, **fields)
    SessionManager(Actor.account(agent)).close(session_id=session.pk)
    return session


def status(session):
    return Session.objects.get(pk=session.pk).status


def newest_event(session):
    event = SessionEvent.objects.filter(session=session).latest("sequence")
    return (event.to_status, event.actor_type, event.actor_id, event.reason)


class TestOneSession:
    @pytest.mark.parametrize(
        ("operation", "become", "message"),
        [
            ("close", "CLOSED", "1 session was closed."),
            ("expire", "EXPIRED", "1 session has expired."),
        ],
    )
    def test_is_left_with_a_reason(self, operator, agent, operation, become, message):
        session = make_session(account=agent)
        response = operate(operator, operation, session, reason="done\r\nwith it")
        assert response.redirect_chain[0] == (page_of(session), 302)
        assert told(response) == [message]
        assert newest_event(session) == (become, "operator", "a-operators", "done\nwith it")

    def test_is_resumed(self, operator, agent):
        session = closed(agent)
        assert told(operate(operator, "resume", session)) == ["1 session was resumed."]
        assert newest_event(session) == ("ACTIVE", "operator", "a-operators", "because")

    def test_that_lapsed_is_resumed(self, operator, agent):
        session = make_lapsed_session(account=agent)
        assert told(operate(operator, "resume", session)) == ["1 session was resumed."]
        assert status(session) == "ACTIVE"

    @pytest.mark.parametrize("reason", ["", "  ", "x" * 1001])
    def test_is_not_touched_without_a_sound_reason(self, operator, agent, reason):
        session = make_session(account=agent)
        response = operate(operator, "close", session, reason=reason)
        assert response.status_code == 200
        assert Page(response.content.decode()).of("textarea")[0]["aria-invalid"] == "true"
        assert status(session) == "ACTIVE"

    def test_is_never_changed_by_get(self, operator, agent):
        session = closed(agent)
        version = Session.objects.get().version
        for operation in ("close", "expire", "resume", "remove"):
            data = {"id": session.pk, "reason": "r", "typed": session.pk}
            assert operator.get(f"{LIST}{operation}/", data).status_code == 200
        operator.get(LIST)
        operator.get(page_of(session))
        assert Session.objects.get().version == version

    def test_is_not_changed_without_the_forms_token(self, operator, agent):
        session = make_session(account=agent)
        operator.handler.enforce_csrf_checks = True
        assert operate(operator, "close", session).status_code == 403
        assert status(session) == "ACTIVE"


class TestDeletion:
    def test_asks_for_the_id(self, operator, agent):
        session = make_session(account=agent, title="Gone soon")
        page = read(operator, f"{LIST}remove/", id=session.pk)
        assert "Type the id to go on" in page.words()
        assert "This cannot be undone" in page.words()
        assert "Closing ends a session too, keeps everything, and can be undone." in page.words()

    @pytest.mark.parametrize("typed", ["", "sess_", "1", "SESS"])
    def test_wants_it_exactly(self, operator, agent, typed):
        session = make_session(account=agent)
        response = operate(operator, "remove", session, typed=typed)
        assert "That is not what is asked for" in response.content.decode()
        assert status(session) == "ACTIVE"

    def test_leaves_a_tombstone(self, operator, agent, django_capture_on_commit_callbacks):
        whole = make_whole(agent, title="A secret", user_id="A secret user")
        with django_capture_on_commit_callbacks(execute=True):
            response = operate(operator, "remove", whole.session, typed=whole.session.pk)
        assert told(response) == ["1 session was deleted."]
        assert status(whole.session) == "DELETED"
        assert not Message.objects.exists()
        page = Page(response.content.decode())
        # What the agent wrote is gone; what happened can still be read.
        assert "A secret" not in page.text
        own = f"/admin/sessions/{whole.session.pk}/"
        assert [link for link in page.links() if link.startswith(own)] == [f"{own}events/"]
        assert not any("/?id=" in link for link in page.links())

    def test_of_many_asks_for_the_count(self, operator, agent):
        sessions = [make_session(account=agent) for _ in range(3)]
        SessionManager(Actor.account(agent)).delete(session_id=sessions[0].pk)
        page = Page(operate(operator, "remove", *sessions, reason="").content.decode())
        assert "2 sessions will be deleted for good." in page.words()
        assert "1 stays as it is: deleted already." in page.words()
        assert "Type how many will be deleted" in page.words()
        refused = operate(operator, "remove", *sessions, typed="3", list="1")
        assert refused.redirect_chain == []
        assert [status(session) for session in sessions[1:]] == ["ACTIVE", "ACTIVE"]
        done = operate(operator, "remove", *sessions, typed="2", list="1")
        assert told(done) == ["2 sessions were deleted.", "1 stays as it is: deleted already."]

    def test_says_what_goes(self, operator, agent):
        whole = make_whole(agent)
        words = read(operator, f"{LIST}remove/", id=whole.session.pk).words()
        assert "1 unfinished run will be cancelled. 1 open tool call will be cancelled." in words
        assert "2 messages will be removed. 1 tool call will be removed." in words
        assert "1 run will be removed. 1 working memory revision will be removed." in words


class TestManySessions:
    def test_are_told_apart_before_and_after(self, operator, agent):
        active, done = make_session(account=agent), closed(agent)
        lapsed = make_lapsed_session(account=agent)
        page = choose(operator, "close", active, done, lapsed)
        assert "1 session will be closed." in page.words()
        assert "1 stays as it is: closed already." in page.words()
        assert "1 stays as it is: expired; it can only be resumed or deleted." in page.words()
        response = operate(operator, "close", active, done, lapsed, list="1")
        assert told(response) == [
            "1 session was closed.",
            "1 stays as it is: closed already.",
            "1 stays as it is: expired; it can only be resumed or deleted.",
        ]
        assert status(active) == "CLOSED"

    def test_name_the_runs_and_calls_that_end_with_them(self, operator, agent):
        first, second = make_whole(agent), make_whole(agent)
        make_run(session=second.session, if_active="queue")
        page = choose(operator, "close", first.session, second.session)
        assert "3 unfinished runs will be cancelled." in page.words()
        assert "2 open tool calls will be cancelled." in page.words()
        page = choose(operator, "expire", first.session, second.session)
        assert "3 unfinished runs will be interrupted." in page.words()
        assert "2 open tool calls stay open." in page.words()
        operate(operator, "close", first.session, second.session, list="1")
        assert set(Run.objects.values_list("status", flat=True)) == {"CANCELLED"}
        assert set(ToolCall.objects.values_list("status", flat=True)) == {"CANCELLED"}

    def test_do_not_count_runs_that_have_lapsed(self, operator, agent, monkeypatch):
        whole = make_whole(agent)
        Session.objects.update(active_run_deadline=whole.session.created_at)
        page = choose(operator, "close", whole.session)
        assert "unfinished run" not in page.words()

    @pytest.mark.parametrize("levels", [1, 2])
    def test_do_not_count_runs_below_one_that_has_lapsed(self, operator, agent, levels):
        """Their own leases go on; what is above them ended them."""
        whole = make_whole(agent)
        run = Run.objects.get()
        for _ in range(levels):
            run = make_run(session=whole.session, parent_run_id=run.pk, lease_seconds=3600)
        words = choose(operator, "close", whole.session).words()
        assert f"{levels + 1} unfinished runs will be cancelled." in words
        Session.objects.update(active_run_deadline=whole.session.created_at)
        assert "unfinished run" not in choose(operator, "close", whole.session).words()

    def test_go_on_past_a_failure_and_tell_it(self, operator, agent, monkeypatch):
        first, second = make_session(account=agent), make_session(account=agent)
        close = SessionManager.close

        def busy_once(self, *, session_id, **more):
            if session_id == first.pk:
                raise OperationalError("database is locked")
            return close(self, session_id=session_id, **more)

        monkeypatch.setattr(SessionManager, "close", busy_once)
        response = operate(operator, "close", first, second, list="1")
        assert told(response) == [
            "1 session was closed.",
            f"1 could not be changed: the database is busy; try again ({first.pk}).",
        ]
        assert (status(first), status(second)) == ("ACTIVE", "CLOSED")

    def test_lead_back_to_the_filtered_list(self, operator, agent):
        session = make_session(account=agent, agent_id="x&y")
        data = {"action": "close", "_selected_action": session.pk}
        page = Page(operator.post(f"{LIST}?agent=x%26y&status=ACTIVE", data).content.decode())
        (filters,) = [tag for tag in page.of("input") if tag.get("name") == "_changelist_filters"]
        response = operate(
            operator, "close", session, list="1", _changelist_filters=filters["value"]
        )
        assert response.redirect_chain == [(f"{LIST}?agent=x%26y&status=ACTIVE", 302)]

    def test_never_lead_elsewhere(self, operator, agent):
        session = make_session(account=agent)
        evil = "next=1\r\nSet-Cookie: a=b#//evil.example"
        response = operate(operator, "close", session, list="1", _changelist_filters=evil)
        address = response.redirect_chain[0][0]
        assert address.startswith(f"{LIST}?")
        assert "\n" not in address

    def test_are_at_most_a_hundred(self, operator, agent):
        sessions = [make_session(account=agent) for _ in range(101)]
        response = operator.post(
            LIST,
            {
                "action": "close",
                "_selected_action": [session.pk for session in sessions],
            },
            follow=True,
        )
        assert told(response) == ["At most 100 at once."]
        assert Session.objects.filter(status="ACTIVE").count() == 101

    @pytest.mark.parametrize("chosen", [[], ["sess_unknown"], ["\x00"], ["x" * 500], ["sess_'--"]])
    def test_that_are_not_there_are_said_so(self, operator, agent, chosen):
        data = {"id": chosen, "reason": "r"}
        response = operator.post(f"{LIST}close/", data, follow=True)
        assert told(response) == ["Nothing to do: none of what was chosen is there."]


class TestTheConfirmPage:
    def test_that_has_nothing_to_do_has_no_form(self, operator, agent):
        page = read(operator, f"{LIST}close/", id=closed(agent).pk)
        assert "Nothing will change." in page.words()
        assert not page.of("textarea")

    def test_labels_its_fields(self, operator, agent):
        page = read(operator, f"{LIST}remove/", id=make_session(account=agent).pk)
        labelled = {label.get("for") for label in page.of("label")}
        fields = [tag for tag in page.of("input") if tag.get("type") == "text"]
        for tag in [*page.of("textarea"), *fields]:
            assert tag["id"] in labelled
        assert len(page.of("h1")) == 1
        assert {"id": "plan-heading"} in page.of("h2")


class TestSettlingACall:
    LIST = "/admin/sessions_app/toolcall/"

    def test_cancels_it_with_a_reason(self, operator, agent):
        whole = make_whole(agent)
        page = read(operator, whole.page("sessions_app_toolcall"))
        assert f"{self.LIST}settle/?id={whole.call.pk}" in page.links()
        data = {"id": whole.call.pk, "reason": "its worker is gone"}
        response = operator.post(f"{self.LIST}settle/", data, follow=True)
        assert told(response) == ["1 tool call was settled."]
        call = ToolCall.objects.get()
        assert (call.status, call.error_type, call.error_message) == (
            "CANCELLED",
            "settled",
            "its worker is gone",
        )
        assert newest_event(whole.session)[1:] == ("operator", "a-operators", "its worker is gone")

    def test_does_nothing_twice(self, operator, agent):
        whole = make_whole(agent)
        manager = SessionManager(Actor.account(agent))
        manager.settle_tool_call(id=whole.call.pk)
        data = {"id": whole.call.pk, "reason": "again"}
        response = operator.post(f"{self.LIST}settle/", data, follow=True)
        assert told(response) == ["1 stays as it is: ended already."]
        assert ToolCall.objects.get().error_message == ""

    def test_is_not_for_a_session_that_has_ended(self, operator, agent):
        session = make_session(account=agent)
        call = make_tool_call(session=session)
        SessionManager(Actor.account(agent)).expire(session_id=session.pk)
        page = read(operator, f"{self.LIST}settle/", id=call.pk)
        assert "1 stays as it is: its session has expired." in page.words()
