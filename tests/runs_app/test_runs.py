from typing import Any

import pytest
from django.db import IntegrityError, transaction

from runs_app.models import Run
from runs_app.services import NewRun
from runs_app.states import FINAL, RunStatus
from sessions_app.errors import (
    InvalidRequest,
    InvalidTransition,
    NotFound,
    RunActive,
    RunEnded,
    RunInterrupted,
    SessionClosed,
    SessionDeleted,
    SessionExpired,
    VersionMismatch,
)
from tests.domain import (
    NOON,
    call_row,
    calling,
    calls_of,
    dump,
    later,
    moves,
    result,
    row,
    run_row,
    session_in,
    system,
    user,
)

MOVES: dict[str, Any] = {
    "start": {},
    "resume": {},
    "wait": {"reason": "w"},
    "complete": {"output": {"n": 2**64}},
    "fail": {"error": {"type": "boom"}},
    "cancel": {"reason": "no"},
}
# What each move makes of a run in each status; what is missing is refused.
OUTCOMES: dict[Any, Any] = {
    ("start", "PENDING"): "RUNNING",
    ("resume", "WAITING"): "RUNNING",
    ("resume", "INTERRUPTED"): "RUNNING",
    ("wait", "RUNNING"): "WAITING",
    **{("complete", status): "COMPLETED" for status in ("PENDING", "RUNNING", "WAITING")},
    **{("fail", s): "FAILED" for s in ("PENDING", "RUNNING", "WAITING", "INTERRUPTED")},
    **{("cancel", s): "CANCELLED" for s in ("PENDING", "RUNNING", "WAITING", "INTERRUPTED")},
}
REFUSALS: dict[Any, Any] = {
    **{(name, status): RunEnded for name in MOVES for status in sorted(FINAL)},
    **{(name, "INTERRUPTED"): RunInterrupted for name in ("start", "wait", "complete")},
    ("start", "RUNNING"): InvalidTransition,
    ("start", "WAITING"): InvalidTransition,
    ("resume", "PENDING"): InvalidTransition,
    ("resume", "RUNNING"): InvalidTransition,
    ("wait", "PENDING"): InvalidTransition,
    ("wait", "WAITING"): InvalidTransition,
}
ATTEMPT = {"PENDING": 0}


def run_in(desk, session_id, status):
    """A run led into a status by its manager."""
    run = desk.run(session_id, start=status != "PENDING", lease_seconds=10)
    lead = {"WAITING": "wait", "COMPLETED": "complete", "FAILED": "fail", "CANCELLED": "cancel"}
    if status in lead:
        move(desk, lead[status], run)
    if status == "INTERRUPTED":
        system().settle(session_id=session_id, now=later(10))
    assert run_row(run).status == status
    return run_row(run)


def move(desk, name, run, **more):
    return getattr(desk.runs, name)(run_id=run.run_id, **{**MOVES.get(name, {}), **more})


class TestMove:
    def test_has_an_outcome_in_every_status(self):
        assert {*OUTCOMES, *REFUSALS} == {(name, status) for name in MOVES for status in RunStatus}
        assert not {*OUTCOMES} & {*REFUSALS}

    @pytest.mark.parametrize(("name", "status"), OUTCOMES)
    def test_changes_the_run_and_writes_one_event(self, desk, name, status):
        session_id = desk.open()
        run = run_in(desk, session_id, status)
        version, before = row(session_id).version, moves(session_id)
        moved = move(desk, name, run, now=later(11 if status == "INTERRUPTED" else 5))
        to = OUTCOMES[name, status]
        assert run_row(run).status == moved.status == to
        assert moves(session_id) == [*before, (status, to, "account")]
        assert row(session_id).version == version + 1 == run_row(run).session_version

    @pytest.mark.parametrize(("name", "status"), REFUSALS)
    def test_is_refused_with_the_runs_state_and_stores_nothing(self, desk, name, status):
        session_id = desk.open()
        run = run_in(desk, session_id, status)
        before = dump()
        with pytest.raises(REFUSALS[name, status]) as caught:
            move(desk, name, run, now=later(11 if status == "INTERRUPTED" else 5))
        data = caught.value.data
        assert (data["run_id"], data["current_status"]) == (run.run_id, status)
        assert data["attempt"] == run.attempt
        assert dump() == before

    @pytest.mark.parametrize("name", MOVES)
    @pytest.mark.parametrize(
        ("state", "error"), [("CLOSED", SessionClosed), ("EXPIRED", SessionExpired)]
    )
    def test_is_refused_in_a_session_that_is_not_active(self, desk, name, state, error):
        session_id = desk.open()
        run = run_in(desk, session_id, "RUNNING")
        close = desk.sessions.close if state == "CLOSED" else desk.sessions.expire
        close(session_id=session_id)
        before = dump()
        with pytest.raises(error):
            move(desk, name, run)
        assert dump() == before

    @pytest.mark.parametrize("name", MOVES)
    def test_of_an_unknown_run_is_not_found(self, desk, name):
        with pytest.raises(NotFound):
            move(desk, name, Run(run_id="run_unknown"))

    @pytest.mark.parametrize("name", MOVES)
    def test_compares_the_version_first(self, desk, name):
        session_id = desk.open()
        run = run_in(desk, session_id, "RUNNING")
        before = dump()
        with pytest.raises(VersionMismatch):
            move(desk, name, run, if_match=1)
        assert dump() == before

    @pytest.mark.parametrize(
        ("name", "more"),
        [("wait", {"reason": "x" * 1001}), ("cancel", {"reason": "x" * 1001})],
    )
    def test_refuses_a_reason_that_is_too_long(self, desk, name, more):
        run = desk.run(desk.open())
        with pytest.raises(InvalidRequest):
            move(desk, name, run, **more)

    def test_keeps_what_came_with_it(self, desk):
        session_id = desk.open()
        completed, failed, cancelled = (
            move(desk, name, desk.run(session_id)) for name in ("complete", "fail", "cancel")
        )
        assert run_row(completed).output.value == {"n": 2**64}
        assert run_row(failed).error.value == {"type": "boom"}
        assert run_row(cancelled).cancel_reason == "no"


class TestEnd:
    @pytest.mark.parametrize("name", ["complete", "fail", "cancel"])
    def test_happens_once(self, desk, name):
        session_id = desk.open()
        run = desk.run(session_id)
        move(desk, name, run, now=later(5))
        for other in ("complete", "fail", "cancel"):
            with pytest.raises(RunEnded) as caught:
                move(desk, other, run, now=later(6))
            assert caught.value.data["ended_at"] == later(5)
        assert run_row(run).ended_at == later(5)

    def test_is_counted_where_it_failed(self, desk):
        session_id = desk.open()
        parent = desk.run(session_id)
        child = desk.run(session_id, parent_run_id=parent.run_id)
        move(desk, "fail", child)
        assert row(session_id).failed_run_count == 1
        move(desk, "complete", parent)
        assert row(session_id).failed_run_count == 1
        for status in ("FAILED", "CANCELLED", "COMPLETED"):
            run_in(desk, session_id, status)
        assert (row(session_id).failed_run_count, row(session_id).run_count) == (2, 5)

    def test_keeps_the_time_of_the_interruption(self, desk):
        run = run_in(desk, desk.open(), "INTERRUPTED")
        move(desk, "cancel", run, now=later(99))
        assert run_row(run).ended_at == later(10)

    @pytest.mark.parametrize(
        ("name", "status", "error_type"),
        [
            ("complete", "FAILED", "abandoned"),
            ("fail", "FAILED", "abandoned"),
            ("cancel", "CANCELLED", "run_cancelled"),
        ],
    )
    @pytest.mark.parametrize("origin", ["RUNNING", "WAITING"])
    def test_closes_the_runs_open_calls_and_no_others(self, desk, name, status, error_type, origin):
        session_id = desk.open()
        run = desk.run(session_id)
        desk.append(session_id, calling("mine", "done"), result("done"), run_id=run.run_id)
        desk.append(session_id, calling("nobodys"))
        recorded = desk.call(session_id, run_id=run.run_id)
        if origin == "WAITING":
            move(desk, "wait", run)
        move(desk, name, run, now=later(5))
        mine, done, nobodys, _ = calls_of(session_id)
        for closed in (mine, call_row(recorded)):
            assert (closed.status, closed.error_type) == (status, error_type)
            assert (closed.finished_at, closed.result) == (later(5), None)
            assert closed.session_version == row(session_id).version
        assert (done.status, nobodys.status) == ("SUCCEEDED", "PENDING")
        assert row(session_id).open_tool_call_count == 1

    def test_of_an_interrupted_run_closes_its_calls(self, desk):
        session_id = desk.open()
        run = desk.run(session_id, lease_seconds=10)
        desk.append(session_id, calling("c1"), run_id=run.run_id)
        system().settle(session_id=session_id, now=later(10))
        assert calls_of(session_id)[0].status == "PENDING"
        move(desk, "cancel", run, now=later(11))
        assert calls_of(session_id)[0].status == "CANCELLED"

    @pytest.mark.parametrize("name", ["complete", "fail", "cancel"])
    def test_leaves_room_for_late_results(self, desk, name):
        session_id = desk.open()
        run = desk.run(session_id)
        desk.append(session_id, calling("c1"), run_id=run.run_id)
        move(desk, name, run)
        (ended,) = calls_of(session_id)
        desk.append(session_id, result("c1", "it ran"))
        call = call_row(ended)
        assert (call.status, call.error_type) == (ended.status, ended.error_type)
        assert (call.result.value, call.result_sequence) == ("it ran", 2)

    @pytest.mark.parametrize("name", ["complete", "fail", "cancel"])
    def test_leaves_the_runs_messages_in_the_history(self, desk, name):
        session_id = desk.open()
        run = desk.run(session_id)
        partial = {"role": "assistant", "content": "Half", "status": "incomplete"}
        desk.append(session_id, user(), partial, run_id=run.run_id)
        move(desk, name, run)
        history = desk.sessions.read_page(session_id=session_id, limit=100).messages
        assert [message.body.value for message in history] == [user(), partial]

    @pytest.mark.parametrize("name", ["complete", "fail", "cancel"])
    def test_frees_the_session_for_the_next_run(self, desk, name):
        session_id = desk.open()
        move(desk, name, desk.run(session_id))
        session = row(session_id)
        assert {
            session.active_run_id,
            session.active_run_attempt,
            session.active_run_lease_seconds,
            session.active_run_deadline,
            session.active_run_seen_at,
        } == {None}
        assert desk.run(session_id).status == "RUNNING"


class TestCreate:
    def test_starts_the_run(self, desk):
        session_id = desk.open(agent_id="agent")
        run = desk.run(session_id, input={"z": 2**64}, model="m", metadata={"a": 1})
        run = run_row(run)
        assert (run.status, run.attempt, run.agent_id, run.model) == ("RUNNING", 1, "agent", "m")
        assert (run.input.value, run.metadata.value) == ({"z": 2**64}, {"a": 1})
        assert (run.created_at, run.started_at, run.ended_at) == (NOON, NOON, None)
        assert moves(session_id, "run") == [
            (None, "PENDING", "account"),
            ("PENDING", "RUNNING", "account"),
        ]
        session = row(session_id)
        assert (session.active_run_id, session.active_run_attempt) == (run.run_id, 1)
        assert (session.version, session.run_count) == (2, 1)
        assert (session.newest_run_id, session.newest_run_status) == (run.run_id, "RUNNING")

    def test_may_leave_it_pending(self, desk):
        session_id = desk.open()
        desk.run(session_id)
        run = run_row(desk.run(session_id, start=False))
        assert (run.status, run.attempt, run.started_at) == ("PENDING", 0, None)
        assert moves(session_id, "run")[-1] == (None, "PENDING", "account")

    def test_while_another_is_active_is_refused(self, desk):
        session_id = desk.open()
        active = desk.run(session_id)
        before = dump()
        with pytest.raises(RunActive) as caught:
            desk.run(session_id)
        assert caught.value.data == {"active_run_id": active.run_id, "session_id": session_id}
        assert dump() == before

    @pytest.mark.parametrize("status", ["RUNNING", "WAITING"])
    def test_may_cancel_the_active_one(self, desk, status):
        session_id = desk.open()
        old = run_in(desk, session_id, status)
        desk.append(session_id, calling("c1"), run_id=old.run_id)
        version = row(session_id).version
        new = desk.run(session_id, if_active="cancel")
        assert (run_row(old).status, run_row(new).status) == ("CANCELLED", "RUNNING")
        assert run_row(old).cancel_reason
        assert calls_of(session_id)[0].status == "CANCELLED"
        assert row(session_id).active_run_id == new.run_id
        assert row(session_id).version == version + 1

    def test_may_queue_behind_the_active_one(self, desk):
        session_id = desk.open()
        active = desk.run(session_id)
        queued = desk.run(session_id, if_active="queue")
        assert (queued.status, row(session_id).active_run_id) == ("PENDING", active.run_id)
        with pytest.raises(RunActive):
            move(desk, "start", queued)
        move(desk, "complete", active)
        assert move(desk, "start", queued).status == "RUNNING"

    @pytest.mark.parametrize("if_active", ["reject", "cancel", "queue"])
    def test_starts_at_once_where_none_is_active(self, desk, if_active):
        assert desk.run(desk.open(), if_active=if_active).status == "RUNNING"

    @pytest.mark.parametrize("if_active", ["reject", "cancel", "queue"])
    def test_that_is_not_to_start_leaves_the_active_one_alone(self, desk, if_active):
        session_id = desk.open()
        active = desk.run(session_id)
        assert desk.run(session_id, start=False, if_active=if_active).status == "PENDING"
        assert run_row(active).status == "RUNNING"

    def test_first_settles_a_lapsed_run(self, desk):
        session_id = desk.open()
        dead = desk.run(session_id, lease_seconds=10)
        new = desk.run(session_id, now=later(10))
        assert (run_row(dead).status, run_row(dead).ended_at) == ("INTERRUPTED", later(10))
        assert row(session_id).active_run_id == new.run_id

    @pytest.mark.parametrize(
        ("state", "error"),
        [
            ("CLOSED", SessionClosed),
            ("EXPIRED", SessionExpired),
            ("LAPSED", SessionExpired),
            ("DELETED", SessionDeleted),
        ],
    )
    def test_needs_an_active_session(self, desk, state, error):
        session_id = session_in(desk, state)
        before = dump()
        with pytest.raises(error):
            desk.run(session_id, now=later(61))
        assert dump() == before

    @pytest.mark.parametrize(
        ("given", "pointer"),
        [
            ({"lease_seconds": 9}, "/lease_seconds"),
            ({"lease_seconds": 86_401}, "/lease_seconds"),
            ({"model": "x" * 256}, "/model"),
            ({"agent_id": "x" * 256}, "/agent_id"),
            ({"metadata": []}, "/metadata"),
            ({"input": {"a": {1}}}, "/input/a"),
        ],
    )
    def test_refuses_values_out_of_bounds(self, desk, given, pointer):
        session_id = desk.open()
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            desk.run(session_id, **given)
        assert list(caught.value.pointers) == [pointer]
        assert dump() == before

    def test_compares_the_version_first(self, desk):
        session_id = desk.open()
        with pytest.raises(VersionMismatch):
            desk.runs.create(session_id=session_id, new=NewRun(), if_match=9)
        desk.runs.create(session_id=session_id, new=NewRun(), if_match=1)

    def test_may_retry_a_run_of_the_same_session(self, desk):
        session_id = desk.open()
        first = desk.run(session_id)
        move(desk, "fail", first)
        assert run_row(desk.run(session_id, retry_of=first.run_id)).retry_of_id == first.run_id
        elsewhere = desk.open()
        for unknown in (first.run_id, "run_unknown"):
            with pytest.raises(NotFound):
                desk.run(elsewhere, retry_of=unknown)


class TestTheDatabase:
    def test_refuses_a_second_started_run(self, desk):
        session_id = desk.open()
        desk.run(session_id)
        queued = desk.run(session_id, start=False)
        with pytest.raises(IntegrityError), transaction.atomic():
            Run.objects.filter(pk=queued.run_id).update(status="RUNNING", started_at=NOON)


class TestNewestRun:
    def test_is_told_by_the_session(self, desk):
        session_id = desk.open()
        first = desk.run(session_id)
        queued = desk.run(session_id, start=False)
        session = row(session_id)
        assert (session.newest_run_id, session.newest_run_status) == (queued.run_id, "PENDING")
        assert session.newest_run_deadline == later(hours=24)
        move(desk, "complete", first)
        assert row(session_id).newest_run_status == "PENDING"
        move(desk, "start", queued)
        session = row(session_id)
        assert (session.newest_run_status, session.newest_run_deadline) == ("RUNNING", None)

    def test_is_no_child(self, desk):
        session_id = desk.open()
        parent = desk.run(session_id)
        child = desk.run(session_id, parent_run_id=parent.run_id)
        move(desk, "complete", child)
        session = row(session_id)
        assert (session.newest_run_id, session.newest_run_status) == (parent.run_id, "RUNNING")
