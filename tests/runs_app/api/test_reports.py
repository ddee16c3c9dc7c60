"""Reported faults of other servers, over the API: each class is one report."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from time_machine import Traveller

from runs_app.models import Run
from runs_app.services.sweep import sweep
from sessions_app.models import Session
from tests.api_client import APIClient
from tests.domain import assistant, calling, later, user
from tests.factories import add_messages, make_messages, make_run, make_session

LIVE = ["PENDING", "RUNNING", "WAITING"]
ENDINGS: dict[str, Any] = {
    "complete": {},
    "fail": {"error": {"type": "crash", "message": "It broke."}},
    "cancel": {},
}


def run_in(api: APIClient, session: Session, status: str) -> str:
    """A live run with this status."""
    run = make_run(session=session, start=status != "PENDING")
    if status == "WAITING":
        api.post(f"/runs/{run.pk}/wait", {"reason": "approval"})
    return run.pk


def tool_call(api: APIClient, session: Session) -> Any:
    """The session's only tool call."""
    (call,) = api.get(f"/sessions/{session.pk}/tool-calls").json()["data"]
    return call


class TestReportRun01:
    """The reaper fails the run but the thread stays busy for ever."""

    @pytest.mark.parametrize("status", LIVE)
    @pytest.mark.parametrize("swept", [True, False])
    def test_session_takes_a_new_run_at_once(
        self, api: APIClient, session: Session, clock: Traveller, status: str, *, swept: bool
    ) -> None:
        run_in(api, session, status)
        clock.move_to(later(days=8))
        for _ in range(2 * swept):
            sweep()
        assert api.get(f"/sessions/{session.pk}").json()["active_run_id"] is None
        assert api.post(f"/sessions/{session.pk}/runs").status_code == 201
        runs = Run.objects.filter(session=session)
        assert sorted(runs.values_list("status", flat=True)) == ["INTERRUPTED", "RUNNING"]

    def test_second_live_run_keeps_the_session_busy(
        self, api: APIClient, session: Session, clock: Traveller
    ) -> None:
        make_run(session=session)
        clock.move_to(later(301))
        second = make_run(session=session)
        sweep()
        answer = api.post(f"/sessions/{session.pk}/runs")
        assert (answer.status_code, answer.json()["active_run_id"]) == (409, second.pk)


class TestReportRun02:
    """Runs without a lease are invisible to the sweeper."""

    @pytest.mark.parametrize("status", LIVE)
    def test_every_live_run_shows_its_deadline_and_meets_it(
        self, api: APIClient, session: Session, clock: Traveller, status: str
    ) -> None:
        run_id = run_in(api, session, status)
        assert api.get(f"/runs/{run_id}").json()["lease_expires_at"] is not None
        clock.move_to(later(days=8))
        sweep()
        assert Run.objects.get(pk=run_id).status == "INTERRUPTED"


class TestReportRun03:
    """After a hard kill neither resume nor cancel works."""

    @pytest.mark.parametrize("status", LIVE)
    @pytest.mark.parametrize("seconds", [1, 3600])
    def test_cancel_of_a_dead_worker_s_run_ends_it_at_once(
        self, api: APIClient, session: Session, clock: Traveller, *, status: str, seconds: int
    ) -> None:
        run_id = run_in(api, session, status)
        clock.move_to(later(seconds))
        assert api.post(f"/runs/{run_id}/cancel").json()["status"] == "CANCELLED"
        assert api.post(f"/sessions/{session.pk}/runs").status_code == 201

    def test_resume_works_once_the_lease_has_lapsed(
        self, api: APIClient, session: Session, clock: Traveller
    ) -> None:
        run_id = run_in(api, session, "RUNNING")
        clock.move_to(later(300))
        assert api.post(f"/runs/{run_id}/resume").json()["attempt"] == 2


class TestReportRun04:
    """A finish that comes later than the cancel overwrites it."""

    @pytest.mark.parametrize("last", list(ENDINGS))
    @pytest.mark.parametrize("first", list(ENDINGS))
    def test_first_end_is_the_only_one(
        self, api: APIClient, session: Session, clock: Traveller, *, first: str, last: str
    ) -> None:
        run_id = run_in(api, session, "RUNNING")
        ended = api.post(f"/runs/{run_id}/{first}", ENDINGS[first]).json()
        clock.move_to(later(1))
        answer = api.post(f"/runs/{run_id}/{last}", ENDINGS[last])
        assert (answer.status_code, answer.json()["code"]) == (409, "run_ended")
        assert answer.json()["current_status"] == ended["status"]
        assert api.get(f"/runs/{run_id}").json() == ended


class TestReportRun06:
    """Partial output of a cancelled run vanishes from later history."""

    def test_context_keeps_it_and_marks_it(self, api: APIClient, session: Session) -> None:
        run_id = run_in(api, session, "RUNNING")
        partial = assistant("So far", status="incomplete")
        add_messages(user(), partial, session=session, run_id=run_id)
        api.post(f"/runs/{run_id}/cancel", {"reason": "stop"})
        packet = api.get(f"/sessions/{session.pk}/context").json()
        assert [message["status"] for message in packet["messages"]] == ["completed", "incomplete"]
        assert packet["messages"][1]["run_id"] == run_id
        assert packet["runs"][0]["last_sequence"] == 2


class TestReportRun08:
    """A restart resets sequence numbers and leaves the prompt without any terminal mark."""

    def test_sequence_goes_on_and_the_run_is_marked(
        self, api: APIClient, session: Session, clock: Traveller
    ) -> None:
        run_id = run_in(api, session, "RUNNING")
        make_messages(session=session, count=5, run_id=run_id)
        api.post(f"/sessions/{session.pk}/messages/pop")
        clock.move_to(later(301))
        packet = api.post(f"/sessions/{session.pk}/resume").json()
        assert packet["interrupted_run"]["run_id"] == run_id
        said = api.post(f"/sessions/{session.pk}/messages", user()).json()
        assert said["messages"][0]["sequence"] == 6
        newer = api.get(f"/sessions/{session.pk}/messages", {"after": 5}).json()
        assert [message["sequence"] for message in newer["data"]] == [6]


class TestReportRun09:
    """Cancelling a run does not clear its pending tool approval."""

    @pytest.mark.parametrize(
        ("ending", "status"),
        [("complete", "FAILED"), ("fail", "FAILED"), ("cancel", "CANCELLED")],
    )
    def test_end_closes_the_open_calls(
        self, api: APIClient, session: Session, ending: str, status: str
    ) -> None:
        run_id = run_in(api, session, "RUNNING")
        add_messages(user(), calling("c1"), session=session, run_id=run_id)
        api.post(f"/runs/{run_id}/wait", {"reason": "approval"})
        api.post(f"/runs/{run_id}/{ending}", ENDINGS[ending])
        assert tool_call(api, session)["status"] == status
        assert api.get(f"/sessions/{session.pk}/context").json()["open_tool_calls"] == []
        assert api.post(f"/sessions/{session.pk}/messages", user()).status_code == 201

    def test_deadline_ends_the_wait_and_the_next_attempt_may_answer(
        self, api: APIClient, session: Session, clock: Traveller
    ) -> None:
        run_id = run_in(api, session, "RUNNING")
        add_messages(user(), calling("c1"), session=session, run_id=run_id)
        api.post(f"/runs/{run_id}/wait", {"reason": "approval"})
        clock.move_to(later(days=7))
        assert api.get(f"/runs/{run_id}").json()["status"] == "INTERRUPTED"
        assert tool_call(api, session)["status"] == "PENDING"
        attempt = api.post(f"/runs/{run_id}/resume").json()["attempt"]
        answer = {"role": "tool", "tool_call_id": "c1", "content": "yes"}
        envelope = {"messages": [answer], "run_id": run_id, "attempt": attempt}
        assert api.post(f"/sessions/{session.pk}/messages", envelope).status_code == 201
        assert tool_call(api, session)["status"] == "SUCCEEDED"


class TestReportCon06:
    """A stale writer is silently reloaded instead of refused."""

    def test_superseded_worker_writes_nothing(
        self, api: APIClient, session: Session, clock: Traveller
    ) -> None:
        run_id = run_in(api, session, "RUNNING")
        clock.move_to(later(301))
        api.post(f"/runs/{run_id}/resume")
        version = api.get(f"/sessions/{session.pk}").headers["ETag"]
        stale: dict[str, Any] = {"run_id": run_id, "attempt": 1}
        path = f"/sessions/{session.pk}"
        answers = [
            api.post(f"{path}/messages", {"messages": [user()], **stale}),
            api.post(f"{path}/tool-calls", {"name": "ls", **stale}),
            api.patch(f"{path}/working-memory", {"goal": "G"}, stale),
            api.post(f"/runs/{run_id}/heartbeat", {"attempt": 1}),
            api.post(f"/runs/{run_id}/complete", {"attempt": 1}),
        ]
        for answer in answers:
            assert (answer.status_code, answer.json()["code"]) == (409, "run_superseded")
            assert answer.json()["attempt"] == 2
        assert api.get(path).headers["ETag"] == version


class TestReportTtl01:
    """The expiry job kills a session in the middle of a long tool call."""

    def test_heartbeats_keep_the_session(
        self, api: APIClient, agent: User, clock: Traveller
    ) -> None:
        session = make_session(account=agent, idle_timeout_seconds=60)
        run_id = make_run(session=session, lease_seconds=60).pk
        for seconds in range(50, 301, 50):
            clock.move_to(later(seconds))
            sweep()
            assert api.post(f"/runs/{run_id}/heartbeat").json()["status"] == "RUNNING"
        assert api.get(f"/sessions/{session.pk}").json()["status"] == "ACTIVE"
        clock.move_to(later(361))
        sweep()
        packet = api.get(f"/sessions/{session.pk}/context").json()
        assert packet["session"]["status"] == "EXPIRED"
        assert packet["interrupted_run"]["ended_at"] == "2026-03-01T12:06:00.000000Z"

    def test_lease_that_is_longer_than_the_timeout_keeps_it_too(
        self, api: APIClient, agent: User, clock: Traveller
    ) -> None:
        session = make_session(account=agent, idle_timeout_seconds=60)
        make_run(session=session, lease_seconds=600)
        clock.move_to(later(599))
        sweep()
        assert api.get(f"/sessions/{session.pk}").json()["status"] == "ACTIVE"
        assert api.get(f"/sessions/{session.pk}/context").json()["active_run"] is not None


class TestReportBig02:
    """The cost of each write grows with the length of the session."""

    @pytest.mark.parametrize("move", ["heartbeat", "wait", "complete"])
    def test_move_costs_the_same_in_a_long_session(
        self, api: APIClient, agent: User, move: str
    ) -> None:
        costs = []
        for count in (10, 1000):
            session = make_session(account=agent)
            run_id = run_in(api, session, "RUNNING")
            make_messages(session=session, count=count, run_id=run_id)
            with CaptureQueriesContext(connection) as captured:
                body = {"reason": "approval"} if move == "wait" else {}
                assert api.post(f"/runs/{run_id}/{move}", body).status_code == 200
            costs.append(len(captured))
        assert costs[0] == costs[1] < 20
