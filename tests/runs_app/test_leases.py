import pytest

from runs_app.models import Run
from runs_app.states import effective_status
from sessions_app.errors import (
    InvalidRequest,
    InvalidTransition,
    RunEnded,
    RunInterrupted,
    SessionClosed,
    SessionExpired,
)
from tests.domain import calling, calls_of, dump, later, moves, result, row, run_row, system, user

SIGNS_OF_LIFE = {
    "heartbeat": lambda desk, run, at: desk.runs.heartbeat(run_id=run.run_id, now=at),
    "append": lambda desk, run, at: desk.append(run.session_id, user(), run_id=run.run_id, now=at),
    "usage": lambda desk, run, at: desk.append(
        run.session_id, user(usage={"input_tokens": 1}), run_id=run.run_id, now=at
    ),
    "memory": lambda desk, run, at: desk.sessions.patch_memory(
        session_id=run.session_id, patch={}, run_id=run.run_id, now=at
    ),
    "tool call": lambda desk, run, at: desk.call(run.session_id, run_id=run.run_id, now=at),
}


def status_at(desk, run, moment):
    """As a read shows it."""
    found = desk.runs.get(run_id=run.run_id)
    status = effective_status(found.status, deadline=found.deadline, now=moment)
    listed = Run.objects.effective().with_status({status}, now=moment).filter(pk=run.run_id)
    assert listed.exists()
    return status


class TestDeadline:
    @pytest.mark.parametrize(("given", "seconds"), [(None, 300), (10, 10), (86_400, 86_400)])
    def test_of_a_running_run_is_its_lease(self, desk, given, seconds):
        run = desk.run(desk.open(), lease_seconds=given)
        assert desk.runs.get(run_id=run.run_id).deadline == later(seconds)

    def test_of_a_queued_run_is_a_day(self, desk):
        run = desk.run(desk.open(), start=False)
        assert desk.runs.get(run_id=run.run_id).deadline == later(hours=24)
        assert row(run.session_id).other_run_deadline == later(hours=24)

    @pytest.mark.parametrize("given", [None, 1, 315_360_000])
    def test_of_a_waiting_run_is_a_week_or_its_timeout(self, desk, given):
        run = desk.run(desk.open())
        desk.runs.wait(run_id=run.run_id, reason="w", timeout_seconds=given)
        expected = later(days=7) if given is None else later(given)
        assert desk.runs.get(run_id=run.run_id).deadline == expected

    @pytest.mark.parametrize("given", [0, -1, 315_360_001])
    def test_of_a_waiting_run_has_bounds(self, desk, given):
        run = desk.run(desk.open())
        before = dump()
        with pytest.raises(InvalidRequest):
            desk.runs.wait(run_id=run.run_id, reason="w", timeout_seconds=given)
        assert dump() == before

    @pytest.mark.parametrize("kind", ["queued", "running", "waiting", "child"])
    @pytest.mark.parametrize(("seconds", "lapsed"), [(-0.000001, False), (0, True), (1, True)])
    def test_interrupts_on_every_path_at_once(self, desk, kind, seconds, lapsed):
        session_id = desk.open()
        run = desk.run(session_id, start=kind != "queued", lease_seconds=100)
        if kind == "waiting":
            desk.runs.wait(run_id=run.run_id, reason="w", timeout_seconds=50)
        if kind == "child":
            run = desk.run(session_id, parent_run_id=run.run_id, lease_seconds=20)
        deadline = {
            "queued": later(hours=24),
            "running": later(100),
            "waiting": later(50),
            "child": later(20),
        }[kind]
        moment = deadline + (later(seconds) - later())
        stored = run_row(run).status
        assert status_at(desk, run, moment) == ("INTERRUPTED" if lapsed else stored)
        system().settle(session_id=session_id, now=moment)
        assert run_row(run).status == ("INTERRUPTED" if lapsed else stored)
        assert run_row(run).ended_at == (deadline if lapsed else None)
        if lapsed:
            assert moves(session_id, "run")[-1] == (stored, "INTERRUPTED", "system")

    def test_comes_no_later_than_the_sessions_own(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        run = desk.run(session_id, start=False)
        assert desk.runs.get(run_id=run.run_id).deadline == later(60)
        assert status_at(desk, run, later(60)) == "INTERRUPTED"


class TestRenewal:
    @pytest.mark.parametrize("live", SIGNS_OF_LIFE.values(), ids=SIGNS_OF_LIFE)
    def test_moves_the_deadline_of_a_running_run(self, desk, live):
        run = desk.run(desk.open(), lease_seconds=100)
        live(desk, run, later(99))
        found = desk.runs.get(run_id=run.run_id)
        assert (found.deadline, found.seen_at) == (later(199), later(99))
        assert status_at(desk, run, later(198)) == "RUNNING"
        assert status_at(desk, run, later(199)) == "INTERRUPTED"

    @pytest.mark.parametrize("live", SIGNS_OF_LIFE.values(), ids=SIGNS_OF_LIFE)
    def test_leaves_the_deadline_of_a_waiting_run(self, desk, live):
        run = desk.run(desk.open())
        desk.runs.wait(run_id=run.run_id, reason="w", timeout_seconds=50)
        live(desk, run, later(40))
        found = desk.runs.get(run_id=run.run_id)
        assert (found.deadline, found.seen_at) == (later(50), later(40))

    @pytest.mark.parametrize("live", SIGNS_OF_LIFE.values(), ids=SIGNS_OF_LIFE)
    def test_moves_the_deadline_of_a_child(self, desk, live):
        session_id = desk.open()
        parent = desk.run(session_id, lease_seconds=1000)
        child = desk.run(session_id, parent_run_id=parent.run_id, lease_seconds=100)
        live(desk, child, later(99))
        found = desk.runs.get(run_id=child.run_id)
        assert (found.deadline, found.seen_at) == (later(199), later(99))
        assert row(session_id).other_run_deadline == later(199)

    @pytest.mark.parametrize("live", SIGNS_OF_LIFE.values(), ids=SIGNS_OF_LIFE)
    def test_comes_too_late_at_the_deadline(self, desk, live):
        run = desk.run(desk.open(), lease_seconds=100)
        before = dump()
        with pytest.raises(RunInterrupted) as caught:
            live(desk, run, later(100))
        assert caught.value.data["attempt"] == 1
        assert caught.value.data["next"] == "resume"
        assert dump() == before

    def test_is_none_in_a_write_that_names_no_run(self, desk):
        run = desk.run(desk.open(), lease_seconds=100)
        desk.append(run.session_id, user(), now=later(99))
        assert desk.runs.get(run_id=run.run_id).deadline == later(100)

    def test_of_a_queued_run_is_none(self, desk):
        session_id = desk.open()
        run = desk.run(session_id, start=False)
        desk.append(session_id, user(), run_id=run.run_id, now=later(50))
        assert desk.runs.get(run_id=run.run_id).deadline == later(hours=24)


class TestHeartbeat:
    def test_raises_no_version_and_writes_no_event(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        run = desk.run(session_id, lease_seconds=100)
        before = row(session_id)
        desk.runs.heartbeat(run_id=run.run_id, attempt=1, now=later(50))
        after = row(session_id)
        assert (after.version, after.updated_at) == (before.version, before.updated_at)
        assert after.event_count == before.event_count
        assert (after.last_activity_at, after.expires_at) == (later(50), later(150))

    def test_keeps_a_session_alive_through_a_long_tool_call(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        run = desk.run(session_id, lease_seconds=30)
        for second in range(0, 301, 20):
            desk.runs.heartbeat(run_id=run.run_id, now=later(second))
            assert system().settle(session_id=session_id, now=later(second + 19)) == "ACTIVE"
        assert system().settle(session_id=session_id, now=later(360)) == "EXPIRED"
        assert (run_row(run).ended_at, row(session_id).expired_at) == (later(330), later(360))

    def test_of_a_cancelled_run_tells_the_worker_and_renews_nothing(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        desk.runs.cancel(run_id=run.run_id)
        before = dump()
        told = desk.runs.heartbeat(run_id=run.run_id, attempt=1, now=later(5))
        assert told.status == "CANCELLED"
        assert dump() == before

    @pytest.mark.parametrize("name", ["close"])
    def test_of_a_run_that_a_close_cancelled_tells_it_too(self, desk, name):
        session_id = desk.open()
        run = desk.run(session_id)
        getattr(desk.sessions, name)(session_id=session_id)
        assert desk.runs.heartbeat(run_id=run.run_id).status == "CANCELLED"

    @pytest.mark.parametrize(
        ("name", "more", "error"),
        [("complete", {}, RunEnded), ("fail", {"error": {}}, RunEnded)],
    )
    def test_of_an_ended_run_is_refused(self, desk, name, more, error):
        run = desk.run(desk.open())
        getattr(desk.runs, name)(run_id=run.run_id, **more)
        before = dump()
        with pytest.raises(error):
            desk.runs.heartbeat(run_id=run.run_id)
        assert dump() == before

    def test_of_a_queued_run_is_refused(self, desk):
        run = desk.run(desk.open(), start=False)
        with pytest.raises(InvalidTransition):
            desk.runs.heartbeat(run_id=run.run_id)

    @pytest.mark.parametrize(("name", "error"), [("expire", SessionExpired)])
    def test_in_an_expired_session_is_refused(self, desk, name, error):
        session_id = desk.open()
        run = desk.run(session_id)
        getattr(desk.sessions, name)(session_id=session_id)
        with pytest.raises(error):
            desk.runs.heartbeat(run_id=run.run_id)

    def test_of_a_completed_run_in_a_closed_session_is_refused(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        desk.runs.complete(run_id=run.run_id)
        desk.sessions.close(session_id=session_id)
        with pytest.raises(SessionClosed):
            desk.runs.heartbeat(run_id=run.run_id)


class TestDeadWorker:
    def dead(self, desk):
        session_id = desk.open()
        run = desk.run(session_id, lease_seconds=10)
        desk.append(session_id, calling("c1"), run_id=run.run_id, attempt=1)
        return session_id, run

    def test_leaves_a_run_that_can_be_cancelled_at_once(self, desk):
        session_id, run = self.dead(desk)
        desk.runs.cancel(run_id=run.run_id, now=later(100))
        assert (run_row(run).status, run_row(run).ended_at) == ("CANCELLED", later(10))
        assert moves(session_id, "run")[-2:] == [
            ("RUNNING", "INTERRUPTED", "system"),
            ("INTERRUPTED", "CANCELLED", "account"),
        ]
        assert calls_of(session_id)[0].status == "CANCELLED"
        assert desk.run(session_id, now=later(101)).status == "RUNNING"

    def test_leaves_a_run_that_can_be_failed(self, desk):
        _, run = self.dead(desk)
        desk.runs.fail(run_id=run.run_id, error={"type": "oom"}, now=later(100))
        assert run_row(run).status == "FAILED"

    def test_leaves_a_run_that_can_be_resumed_with_its_calls_open(self, desk):
        session_id, run = self.dead(desk)
        resumed = desk.runs.resume(run_id=run.run_id, now=later(100))
        assert (resumed.status, resumed.attempt, resumed.ended_at) == ("RUNNING", 2, None)
        assert run_row(run).started_at == later(0)
        assert desk.runs.get(run_id=run.run_id).deadline == later(110)
        assert calls_of(session_id)[0].status == "PENDING"
        desk.append(session_id, result("c1"), run_id=run.run_id, attempt=2, now=later(101))
        assert calls_of(session_id)[0].status == "SUCCEEDED"

    def test_leaves_no_run_that_can_be_completed(self, desk):
        _, run = self.dead(desk)
        before = dump()
        with pytest.raises(RunInterrupted):
            desk.runs.complete(run_id=run.run_id, now=later(100))
        assert dump() == before

    def test_and_its_session_come_back_together(self, desk):
        session_id = desk.open(idle_timeout_seconds=10)
        run = desk.run(session_id, lease_seconds=10)
        with pytest.raises(SessionExpired):
            desk.runs.resume(run_id=run.run_id, now=later(100))
        desk.sessions.resume(session_id=session_id, now=later(100))
        assert desk.runs.resume(run_id=run.run_id, now=later(100)).attempt == 2
