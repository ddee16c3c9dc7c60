import pytest

from sessions_app.errors import (
    InvalidRequest,
    NotFound,
    RunActive,
    RunEnded,
    RunInterrupted,
    RunSuperseded,
)
from sessions_app.usage import Usage
from tests.domain import Desk, dump, later, row, run_row, system, user

# Every write that may name a run and an attempt.
WRITES = {
    "append": lambda desk, run, **more: desk.append(
        run.session_id, user(), run_id=run.run_id, **more
    ),
    "append with usage": lambda desk, run, **more: desk.append(
        run.session_id, user(usage={"input_tokens": 1}), run_id=run.run_id, **more
    ),
    "replace_memory": lambda desk, run, **more: desk.sessions.replace_memory(
        session_id=run.session_id, document={}, run_id=run.run_id, **more
    ),
    "patch_memory": lambda desk, run, **more: desk.sessions.patch_memory(
        session_id=run.session_id, patch={}, run_id=run.run_id, **more
    ),
    "start_tool_call": lambda desk, run, **more: desk.call(
        run.session_id, run_id=run.run_id, **more
    ),
}
CALLS = {
    name: lambda desk, run, name=name, given=given, **more: getattr(desk.runs, name)(
        run_id=run.run_id, **given, **more
    )
    for name, given in {
        "heartbeat": {},
        "wait": {"reason": "w"},
        "complete": {},
        "fail": {"error": {}},
        "cancel": {},
    }.items()
}
EVERYTHING = WRITES | CALLS
every_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
everything = pytest.mark.parametrize("act", EVERYTHING.values(), ids=EVERYTHING)


def second_attempt(desk, *, child=False):
    session_id = desk.open()
    run = desk.run(session_id)
    if child:
        run = desk.run(session_id, parent_run_id=run.run_id)
    desk.runs.wait(run_id=run.run_id, reason="w")
    return desk.runs.resume(run_id=run.run_id)


class TestAttempt:
    def test_rises_by_one_at_each_start_and_resume(self, desk):
        session_id = desk.open()
        run = desk.run(session_id, start=False, lease_seconds=10)
        attempts = [run.attempt, desk.runs.start(run_id=run.run_id).attempt]
        desk.runs.wait(run_id=run.run_id, reason="w")
        attempts.append(desk.runs.resume(run_id=run.run_id).attempt)
        system().settle(session_id=session_id, now=later(10))
        attempts.append(desk.runs.resume(run_id=run.run_id, now=later(11)).attempt)
        assert attempts == [0, 1, 2, 3]
        assert row(session_id).active_run_attempt == 3

    @pytest.mark.parametrize("child", [False, True])
    @everything
    def test_that_is_older_is_superseded_and_stores_nothing(self, desk, act, child):
        run = second_attempt(desk, child=child)
        before = dump()
        with pytest.raises(RunSuperseded) as caught:
            act(desk, run, attempt=1)
        assert caught.value.data == {"run_id": run.run_id, "attempt": 2}
        assert dump() == before

    @pytest.mark.parametrize("child", [False, True])
    @everything
    def test_that_is_current_or_left_out_is_let_through(self, desk, act, child):
        act(desk, second_attempt(desk, child=child), attempt=2)
        act(desk, second_attempt(desk, child=child))

    @everything
    @pytest.mark.parametrize("attempt", [3, 10**20])
    def test_that_was_never_given_out_is_refused(self, desk, act, attempt):
        run = second_attempt(desk)
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            act(desk, run, attempt=attempt)
        assert list(caught.value.pointers) == ["/attempt"]
        assert dump() == before

    @pytest.mark.parametrize("name", ["resume", "start"])
    def test_is_checked_at_a_resume_and_a_start_too(self, desk, name):
        run = second_attempt(desk)
        before = dump()
        with pytest.raises(RunSuperseded):
            getattr(desk.runs, name)(run_id=run.run_id, attempt=1)
        assert dump() == before


class TestWrite:
    @pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
    @every_write
    def test_for_a_run_that_ended_stores_nothing(self, desk, write, end):
        run = desk.run(desk.open())
        status = CALLS[end](desk, run).status
        before = dump()
        for attempt in ({}, {"attempt": 1}):
            with pytest.raises(RunEnded) as caught:
                write(desk, run, **attempt)
            assert caught.value.data["current_status"] == status
        assert dump() == before

    @pytest.mark.parametrize("settled", [True, False])
    @every_write
    def test_for_an_interrupted_run_says_how_to_go_on(self, desk, write, settled):
        run = desk.run(desk.open(), lease_seconds=10)
        if settled:
            system().settle(session_id=run.session_id, now=later(10))
        before = dump()
        with pytest.raises(RunInterrupted) as caught:
            write(desk, run, attempt=1, now=later(11))
        data = caught.value.data
        assert (data["attempt"], data["next"], data["current_status"]) == (
            1,
            "resume",
            "INTERRUPTED",
        )
        assert dump() == before

    @every_write
    def test_for_a_run_of_another_session_or_account_is_not_found(self, desk, write):
        session_id, stranger = desk.open(), Desk()
        for other in (desk.run(desk.open()), stranger.run(stranger.open())):
            other.session_id = session_id
            before = dump()
            with pytest.raises(NotFound):
                write(desk, other)
            assert dump() == before

    @every_write
    def test_without_a_run_asks_nothing(self, desk, write):
        run = second_attempt(desk)
        run.run_id = None
        write(desk, run)

    @every_write
    def test_with_an_attempt_and_no_run_is_refused(self, desk, write):
        run = desk.run(desk.open())
        run.run_id = None
        with pytest.raises(InvalidRequest):
            write(desk, run, attempt=1)

    @every_write
    def test_for_a_queued_run_is_let_through(self, desk, write):
        run = desk.run(desk.open(), start=False)
        write(desk, run, attempt=0)

    def test_of_usage_reaches_the_run_whatever_it_is(self, desk):
        session_id = desk.open()
        active = desk.run(session_id)
        child = desk.run(session_id, parent_run_id=active.run_id)
        queued = desk.run(session_id, start=False)
        for run in (active, child, queued):
            WRITES["append with usage"](desk, run)
            assert Usage.of(run_row(run)) == Usage(input_tokens=1)
        assert row(session_id).input_tokens == 3

    def test_of_two_workers_is_told_apart(self, desk):
        """A worker whose run was taken over wrote on, and both were mixed for good."""
        session_id = desk.open()
        run = desk.run(session_id, lease_seconds=10)
        desk.append(session_id, user("A"), run_id=run.run_id, attempt=1)
        desk.runs.resume(run_id=run.run_id, now=later(20))
        with pytest.raises(RunSuperseded):
            desk.append(session_id, user("A"), run_id=run.run_id, attempt=1, now=later(21))
        desk.append(session_id, user("B"), run_id=run.run_id, attempt=2, now=later(21))
        history = desk.sessions.read_page(session_id=session_id, limit=100).messages
        assert [message.body.value["content"] for message in history] == ["A", "B"]


class TestResume:
    def test_while_another_run_is_active_is_refused(self, desk):
        session_id = desk.open()
        first = desk.run(session_id, lease_seconds=10)
        second = desk.run(session_id, now=later(20))
        before = dump()
        with pytest.raises(RunActive) as caught:
            desk.runs.resume(run_id=first.run_id, now=later(21))
        assert caught.value.data["active_run_id"] == second.run_id
        assert dump() == before

    def test_from_waiting_clears_the_reason_and_fences_the_waiter(self, desk):
        run = desk.run(desk.open(), lease_seconds=50)
        desk.runs.wait(run_id=run.run_id, reason="approval", attempt=1)
        assert run_row(run).wait_reason == "approval"
        desk.runs.resume(run_id=run.run_id, attempt=1, now=later(5))
        assert (run_row(run).wait_reason, run_row(run).attempt) == (None, 2)
        assert desk.runs.get(run_id=run.run_id).deadline == later(55)
