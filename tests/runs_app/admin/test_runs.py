"""Runs in the admin: as they are now, across sessions, and cancelled by an operator."""

from datetime import timedelta

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.utils import timezone

from runs_app.models import Run
from runs_app.services import RunManager
from sessions_app.models import Session, SessionEvent, ToolCall
from sessions_app.services import Actor, SessionManager
from tests.admin import make_person, make_whole, read, told
from tests.factories import make_run, make_session

LIST = "/admin/runs_app/run/"
SESSIONS = "/admin/sessions_app/session/"
HOUR_AGO = timedelta(hours=1)


def badges(page):
    return [
        tag["class"].split("badge-")[1]
        for tag in page.of("span")
        if "badge-" in tag.get("class", "")
    ]


def in_status(agent, status):
    """A session with a run of this status; LAPSED is stored as RUNNING."""
    manager = RunManager(Actor.account(agent))
    now = timezone.now() - HOUR_AGO if status == "LAPSED" else None
    session = make_session(account=agent, now=now, title=status)
    run = make_run(session=session, now=now, start=status != "PENDING")
    end = {
        "WAITING": lambda: manager.wait(run_id=run.pk, reason="for approval"),
        "COMPLETED": lambda: manager.complete(run_id=run.pk),
        "FAILED": lambda: manager.fail(run_id=run.pk, error={"type": "t"}),
        "CANCELLED": lambda: manager.cancel(run_id=run.pk),
    }
    end.get(status, lambda: None)()
    return run


STATUSES = ("PENDING", "RUNNING", "WAITING", "COMPLETED", "FAILED", "CANCELLED")


class TestStatus:
    def test_of_a_lapsed_run_is_interrupted_on_every_page(self, operator, agent):
        run = in_status(agent, "LAPSED")
        assert badges(read(operator, LIST)) == ["interrupted"]
        page = read(operator, f"{LIST}{run.pk}/change/")
        assert set(badges(page)) == {"interrupted", "pending", "running"}
        # It ended at its deadline, whoever settles that later.
        deadline = timezone.localtime(Session.objects.get().active_run_deadline)
        assert page.words().count(deadline.strftime("%Y-%m-%d %H:%M:%S")) == 1
        assert badges(read(operator, SESSIONS)) == ["active", "interrupted"]
        assert badges(read(operator, f"/admin/sessions/{run.session_id}/runs/")) == [
            "active",
            "interrupted",
        ]
        assert Run.objects.get().status == "RUNNING"

    def test_of_a_run_ends_with_its_session(self, operator, agent):
        earlier = timezone.now() - HOUR_AGO
        session = make_session(account=agent, now=earlier, idle_timeout_seconds=400)
        make_run(session=session, now=earlier, start=False)
        assert badges(read(operator, SESSIONS)) == ["expired", "interrupted"]
        assert badges(read(operator, LIST)) == ["interrupted"]

    def test_is_filtered_as_it_is_now(self, operator, agent):
        for status in (*STATUSES, "LAPSED"):
            in_status(agent, status)
        for status in STATUSES:
            assert badges(read(operator, LIST, status=status)) == [status.lower()]
            page = read(operator, SESSIONS, run_status=status)
            assert badges(page) == ["active", status.lower()]
        assert badges(read(operator, LIST, status="INTERRUPTED")) == ["interrupted"]
        assert badges(read(operator, SESSIONS, run_status="INTERRUPTED")) == [
            "active",
            "interrupted",
        ]
        assert len(badges(read(operator, LIST))) == 7


class TestTheList:
    def test_is_searched_by_the_beginning_of_ids(self, operator, agent):
        run = in_status(agent, "RUNNING")
        in_status(agent, "PENDING")
        assert badges(read(operator, LIST, q=run.pk)) == ["running"]
        assert badges(read(operator, LIST, q=run.session_id)) == ["running"]
        assert badges(read(operator, LIST, q=run.pk[4:])) == []
        assert badges(read(operator, LIST, session=run.session_id)) == ["running"]

    def test_has_a_tab_for_runs_that_give_no_sign_of_life(self, operator, agent):
        in_status(agent, "RUNNING")
        in_status(agent, "LAPSED")
        silent = make_run(
            session=make_session(account=agent),
            now=timezone.now() - timedelta(minutes=11),
            lease_seconds=3600,
        )
        page = read(operator, LIST, stuck="yes", agent="")
        assert badges(page) == ["running"]
        assert f"{LIST}{quote(silent.pk)}/change/" in " ".join(page.links())
        current = [tag["href"] for tag in page.of("a") if tag.get("aria-current") == "page"]
        assert "?agent=&stuck=yes" in current

    def test_has_the_error_in_a_line_for_those_who_may_read(self, operator, agent):
        run = in_status(agent, "RUNNING")
        error = {"type": "Timeout", "message": "took too long", "trace": "x" * 100_000}
        RunManager(Actor.account(agent)).fail(run_id=run.pk, error=error)
        assert "Timeout" not in read(operator, LIST, status="RUNNING").words()
        short = in_status(agent, "RUNNING")
        error = {"type": "Refused", "message": "by the server"}
        RunManager(Actor.account(agent)).fail(run_id=short.pk, error=error)
        words = read(operator, LIST, status="FAILED").words()
        assert "Refused by the server" in words
        assert '"message":"took too long"' in words
        group = make_person("operators").groups.get()
        group.permissions.remove(Permission.objects.get(codename="read_content"))
        words = read(operator, LIST, status="FAILED").words()
        assert "Refused" not in words
        assert "took too long" not in words

    def test_has_no_runs_of_deleted_sessions(self, operator, agent):
        run = in_status(agent, "RUNNING")
        SessionManager(Actor.account(agent)).delete(session_id=run.session_id)
        assert badges(read(operator, LIST)) == []
        assert operator.get(f"{LIST}{run.pk}/change/").status_code == 302


class TestThePage:
    def test_shows_what_went_in_and_came_out(self, operator, agent):
        run = make_run(session=make_session(account=agent), input={"task": "repair it"})
        error = {"type": "timeout", "message": "took too long"}
        RunManager(Actor.account(agent)).fail(run_id=run.pk, error=error)
        page = read(operator, f"{LIST}{run.pk}/change/")
        assert '"task": "repair it"' in page.words()
        assert '"message": "took too long"' in page.words()
        response = operator.get(f"{LIST}{run.pk}/download/error/")
        assert response.content == b'{"type":"timeout","message":"took too long"}'

    def test_leads_to_what_it_did(self, operator, agent):
        whole = make_whole(agent)
        make_whole(agent)
        links = read(operator, whole.page("runs_app_run")).links()
        session = f"/admin/sessions/{whole.session.pk}/"
        assert session in links
        assert f"{session}?at={whole.message.sequence}#m{whole.message.sequence}" in links
        assert f"/admin/sessions_app/toolcall/{quote(whole.call.pk)}/change/" in links
        address = f"/admin/sessions_app/message/?run={whole.run.pk}"
        assert address in links
        assert " 2 " in read(operator, address).words()


class TestCancelling:
    @pytest.mark.parametrize("status", ["PENDING", "RUNNING", "WAITING", "LAPSED"])
    def test_ends_a_run_with_a_reason(self, operator, agent, status):
        run = in_status(agent, status)
        page = read(operator, f"{LIST}{run.pk}/change/")
        assert f"{LIST}cancel/?id={run.pk}" in page.links()
        data = {"id": run.pk, "reason": "stuck"}
        response = operator.post(f"{LIST}cancel/", data, follow=True)
        assert told(response) == ["1 run was cancelled."]
        run.refresh_from_db()
        assert (run.status, run.cancel_reason) == ("CANCELLED", "stuck")
        event = SessionEvent.objects.filter(subject="run").latest("sequence")
        assert (event.to_status, event.actor_id, event.reason) == (
            "CANCELLED",
            "a-operators",
            "stuck",
        )

    def test_says_what_stays(self, operator, agent):
        runs = [in_status(agent, "RUNNING"), in_status(agent, "COMPLETED")]
        done = in_status(agent, "LAPSED")
        SessionManager(Actor.account(agent)).expire(session_id=done.session_id)
        data = {"id": [run.pk for run in (*runs, done)], "reason": "r", "list": "1"}
        response = operator.post(f"{LIST}cancel/", data, follow=True)
        assert told(response) == [
            "1 run was cancelled.",
            "1 stays as it is: ended already.",
            "1 stays as it is: its session has expired.",
        ]

    def test_tells_of_a_run_that_ended_meanwhile(self, operator, agent, monkeypatch):
        run = in_status(agent, "RUNNING")
        cancel = RunManager.cancel

        def too_late(self, *, run_id, **more):
            RunManager(Actor.account(agent)).complete(run_id=run_id)
            return cancel(self, run_id=run_id, **more)

        monkeypatch.setattr(RunManager, "cancel", too_late)
        response = operator.post(f"{LIST}cancel/", {"id": run.pk, "reason": "r"}, follow=True)
        assert told(response) == [f"1 could not be changed: ended already ({run.pk})."]

    def test_takes_its_calls_along(self, operator, agent):
        whole = make_whole(agent)
        operator.post(f"{LIST}cancel/", {"id": whole.run.pk, "reason": "r"})
        assert ToolCall.objects.get().status == "CANCELLED"

    def test_is_never_done_by_get(self, operator, agent):
        run = in_status(agent, "RUNNING")
        operator.get(f"{LIST}cancel/", {"id": run.pk, "reason": "r"})
        assert Run.objects.get().status == "RUNNING"
