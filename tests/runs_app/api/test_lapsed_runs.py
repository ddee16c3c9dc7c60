"""What everybody sees of a run past its deadline, before and after anybody settles it."""

from typing import Any

import pytest
from time_machine import Traveller

from runs_app.models import Run
from runs_app.services.sweep import sweep
from sessions_app.models import Session
from tests.api_client import APIClient
from tests.domain import later
from tests.factories import make_account, make_run, make_session

# Moves that an interrupted run does not take.
REFUSED: dict[str, Any] = {
    "start": {},
    "heartbeat": {},
    "wait": {"reason": "approval"},
    "complete": {},
}


@pytest.fixture
def lapsed(session: Session, clock: Traveller) -> Run:
    """A run whose lease ended at 12:05; it is 12:06, and nobody has settled it."""
    run = make_run(session=session)
    clock.move_to(later(360))
    return run


class TestALapsedRun:
    def test_is_interrupted_at_its_deadline(self, api: APIClient, lapsed: Run) -> None:
        shown = api.get(f"/runs/{lapsed.pk}").json()
        assert (shown["status"], shown["attempt"]) == ("INTERRUPTED", 1)
        assert shown["ended_at"] == "2026-03-01T12:05:00.000000Z"
        assert shown["duration_ms"] == 300_000
        assert shown["lease_expires_at"] is None
        assert shown["heartbeat_at"] == "2026-03-01T12:00:00.000000Z"

    def test_looks_the_same_once_it_is_settled(self, api: APIClient, lapsed: Run) -> None:
        before = api.get(f"/runs/{lapsed.pk}").json()
        sweep()
        assert Run.objects.get(pk=lapsed.pk).status == "INTERRUPTED"
        after = api.get(f"/runs/{lapsed.pk}").json()
        assert after.pop("session_version") == before.pop("session_version") + 1
        assert after == before

    def test_is_interrupted_on_every_path(self, api: APIClient, lapsed: Run) -> None:
        session = f"/sessions/{lapsed.session_id}"
        packet = api.get(f"{session}/context").json()
        shown = api.get(f"/runs/{lapsed.pk}").json()
        assert api.get(f"{session}/runs").json()["data"] == [shown]
        assert api.get("/runs").json()["data"] == [shown]
        assert packet["runs"] == [shown]
        assert (packet["active_run"], packet["interrupted_run"]) == (None, shown)
        assert packet["session"]["active_run_id"] is None
        assert api.get("/runs", {"status": "RUNNING"}).json()["data"] == []

    @pytest.mark.parametrize("move", list(REFUSED))
    def test_refuses_to_go_on_without_a_resume(
        self, api: APIClient, lapsed: Run, move: str
    ) -> None:
        answer = api.post(f"/runs/{lapsed.pk}/{move}", REFUSED[move] | {"attempt": 1})
        assert (answer.status_code, answer.json()["code"]) == (409, "run_interrupted")
        assert answer.json()["attempt"] == 1
        assert answer.json()["next"] == "resume"

    def test_is_resumed_as_the_next_attempt(self, api: APIClient, lapsed: Run) -> None:
        resumed = api.post(f"/runs/{lapsed.pk}/resume", {"attempt": 1}).json()
        assert (resumed["status"], resumed["attempt"]) == ("RUNNING", 2)
        assert resumed["ended_at"] is None
        assert resumed["started_at"] == "2026-03-01T12:00:00.000000Z"
        assert resumed["lease_expires_at"] == "2026-03-01T12:11:00.000000Z"
        events = api.get(f"/sessions/{lapsed.session_id}/events").json()["data"]
        moves = [(event["from_status"], event["to_status"]) for event in events[2:]]
        assert moves == [
            ("PENDING", "RUNNING"),
            ("RUNNING", "INTERRUPTED"),
            ("INTERRUPTED", "RUNNING"),
        ]
        assert [event["actor"]["type"] for event in events[3:]] == ["system", "account"]

    @pytest.mark.parametrize(("move", "status"), [("cancel", "CANCELLED"), ("fail", "FAILED")])
    def test_may_be_given_up(self, api: APIClient, lapsed: Run, move: str, status: str) -> None:
        body = {"error": {"type": "t", "message": "m"}} if move == "fail" else {}
        ended = api.post(f"/runs/{lapsed.pk}/{move}", body).json()
        assert ended["status"] == status
        assert ended["ended_at"] == "2026-03-01T12:05:00.000000Z"

    def test_is_in_nobodys_way(self, api: APIClient, lapsed: Run) -> None:
        assert api.post(f"/sessions/{lapsed.session_id}/runs").status_code == 201
        answer = api.post(f"/runs/{lapsed.pk}/resume")
        assert (answer.status_code, answer.json()["code"]) == (409, "run_active")


class TestADeadline:
    def test_counts_from_its_very_moment(
        self, api: APIClient, session: Session, clock: Traveller
    ) -> None:
        run = make_run(session=session, lease_seconds=10)
        clock.move_to(later(9.999999))
        assert api.get(f"/runs/{run.pk}").json()["status"] == "RUNNING"
        clock.move_to(later(10))
        assert api.get(f"/runs/{run.pk}").json()["status"] == "INTERRUPTED"

    def test_of_a_queued_run_is_that_of_its_session_if_earlier(
        self, api: APIClient, clock: Traveller
    ) -> None:
        session = make_session(account=make_account("agent"), idle_timeout_seconds=60)
        run = make_run(session=session, start=False)
        for hours in (1, 48):  # before the queue's own deadline, and long after it
            clock.move_to(later(hours=hours))
            shown = api.get(f"/runs/{run.pk}").json()
            assert (shown["status"], shown["ended_at"]) == (
                "INTERRUPTED",
                "2026-03-01T12:01:00.000000Z",
            )
        sweep()
        assert api.get(f"/runs/{run.pk}").json()["ended_at"] == "2026-03-01T12:01:00.000000Z"

    def test_of_a_child_is_that_of_its_parent_if_earlier(
        self, api: APIClient, session: Session, clock: Traveller
    ) -> None:
        parent = make_run(session=session, lease_seconds=60)
        child = make_run(session=session, parent_run_id=parent.pk, lease_seconds=3600)
        assert api.get(f"/runs/{child.pk}").json()["lease_expires_at"].startswith("2026-03-01T13")
        clock.move_to(later(61))
        before = api.get(f"/runs/{child.pk}").json()
        assert (before["status"], before["ended_at"]) == (
            "INTERRUPTED",
            "2026-03-01T12:01:00.000000Z",
        )
        sweep()
        after = api.get(f"/runs/{child.pk}").json()
        assert {**after, "session_version": 0} == {**before, "session_version": 0}

    def test_of_a_grandchild_is_that_of_the_top_if_earlier(
        self, api: APIClient, session: Session, clock: Traveller
    ) -> None:
        run = make_run(session=session, lease_seconds=60)
        for _ in range(2):
            run = make_run(session=session, parent_run_id=run.pk, lease_seconds=3600)
        clock.move_to(later(61))
        shown = api.get(f"/runs/{run.pk}").json()
        assert (shown["status"], shown["ended_at"]) == (
            "INTERRUPTED",
            "2026-03-01T12:01:00.000000Z",
        )
        assert api.get("/runs", {"status": "RUNNING"}).json()["data"] == []
        assert len(api.get("/runs", {"status": "INTERRUPTED"}).json()["data"]) == 3
        answer = api.post(f"/runs/{run.pk}/complete")
        assert (answer.status_code, answer.json()["code"]) == (409, "run_interrupted")
