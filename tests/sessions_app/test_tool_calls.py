"""Tools that the agent records by itself, and how they meet the calls that messages make."""

import pytest

from sessions_app.errors import InvalidRequest, InvalidTransition, NotFound
from sessions_app.models import ToolCall
from sessions_app.services import Actor, Outcome
from sessions_app.states import ToolCallStatus
from tests.domain import (
    Desk,
    assistant,
    call_row,
    calling,
    calls_of,
    dump,
    later,
    moves,
    result,
    row,
    user,
)

FINAL = ["SUCCEEDED", "FAILED", "CANCELLED"]


def finish(desk, call, status="SUCCEEDED", *, now=None, **more):
    outcome = Outcome(ToolCallStatus(status), **more)
    return desk.sessions.finish_tool_call(id=call.id, outcome=outcome, now=now)


def call_in(desk, session_id, status):
    """A recorded call in a status; PENDING is what only a message makes."""
    if status == "PENDING":
        desk.append(session_id, calling("c1"))
        return calls_of(session_id)[-1]
    call = desk.call(session_id, tool_call_id="c1")
    return call if status == "RUNNING" else finish(desk, call, status)


class TestStart:
    def test_records_a_running_call(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        call, is_new = desk.sessions.start_tool_call(
            session_id=session_id,
            name="ls",
            arguments={"path": "/", "n": 2**64},
            tool_call_id="c1",
            run_id=run.run_id,
            attempt=1,
            now=later(5),
        )
        call = call_row(call)
        assert is_new
        assert (call.status, call.name, call.tool_call_id) == ("RUNNING", "ls", "c1")
        assert call.arguments.value == {"path": "/", "n": 2**64}
        assert (call.run_id, call.started_at, call.created_at) == (run.run_id, later(5), later(5))
        assert (call.message_sequence, call.result_sequence, call.finished_at) == (None, None, None)
        assert (row(session_id).tool_call_count, row(session_id).open_tool_call_count) == (1, 1)

    def test_needs_no_id_and_is_then_always_new(self, desk):
        session_id = desk.open()
        desk.call(session_id)
        desk.call(session_id)
        assert row(session_id).tool_call_count == 2

    def test_of_a_call_that_a_message_made_enriches_it(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        desk.append(session_id, calling("c1"))
        call, is_new = desk.sessions.start_tool_call(
            session_id=session_id, name="ls", tool_call_id="c1", run_id=run.run_id, now=later(5)
        )
        assert (is_new, call.status, call.started_at) == (False, "RUNNING", later(5))
        assert call_row(call).run_id == run.run_id
        desk.append(session_id, result("c1"), now=later(7))
        assert call_row(call).duration_ms == 2000
        assert row(session_id).tool_call_count == 1

    def test_repeated_keeps_the_first_time(self, desk):
        session_id = desk.open()
        first = desk.call(session_id, tool_call_id="c1", now=later(1))
        again = desk.call(session_id, tool_call_id="c1", now=later(9))
        assert again.id == first.id
        assert call_row(first).started_at == later(1)
        assert row(session_id).open_tool_call_count == 1

    @pytest.mark.parametrize("is_error", [True, False])
    def test_that_comes_late_never_reopens_a_call(self, desk, is_error):
        session_id = desk.open()
        desk.append(session_id, calling("c1"), result("c1", is_error=is_error))
        status = calls_of(session_id)[0].status
        late = desk.call(session_id, tool_call_id="c1", now=later(9))
        assert (late.status, late.finished_at) == (status, later(0))
        assert (row(session_id).tool_call_count, row(session_id).open_tool_call_count) == (1, 0)

    def test_of_an_id_that_was_used_before_takes_the_call_that_is_open(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("x"), calling("x"), result("x"))
        started = desk.call(session_id, tool_call_id="x")
        assert (started.message_sequence, started.status) == (1, "RUNNING")

    def test_is_of_the_newest_messages_call_before_one_that_no_message_made(self, desk):
        """Nulls have no place of their own in an order: each database gives them another."""
        session_id = desk.open()
        desk.append(session_id, calling("x", "x"))
        recorded, announced = calls_of(session_id)
        ToolCall.objects.filter(pk=recorded.id).update(message_sequence=None)
        assert desk.call(session_id, tool_call_id="x").id == announced.id

    def test_under_the_id_of_an_ended_recorded_call_is_a_new_one(self, desk):
        session_id = desk.open()
        first = finish(desk, desk.call(session_id, tool_call_id="x"))
        assert desk.call(session_id, tool_call_id="x").id != first.id

    @pytest.mark.parametrize(
        ("given", "pointer"),
        [
            ({"name": ""}, "/name"),
            ({"name": "x" * 256}, "/name"),
            ({"tool_call_id": "x" * 2049}, "/tool_call_id"),
            ({"tool_call_id": 5}, "/tool_call_id"),
        ],
    )
    def test_refuses_a_name_or_id_out_of_bounds(self, desk, given, pointer):
        session_id = desk.open()
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            desk.call(session_id, **given)
        assert list(caught.value.pointers) == [pointer]
        assert dump() == before

    def test_cleans_what_it_takes_of_nul(self, desk):
        call = desk.call(desk.open(), name="l\x00", tool_call_id="c\x00", arguments=["\x00"])
        call = call_row(call)
        assert (call.name, call.tool_call_id) == ("l\ufffd", "c\ufffd")
        assert call.arguments.value == ["\ufffd"]


class TestRecordedCall:
    def test_is_taken_over_by_the_message_that_makes_it(self, desk):
        session_id = desk.open()
        call = desk.call(session_id, tool_call_id="c1", now=later(1))
        desk.append(session_id, user(), calling("c1", arguments="[1]"), now=later(2))
        call = call_row(call)
        assert (call.message_sequence, call.status) == (2, "RUNNING")
        assert (call.started_at, call.arguments.value) == (later(1), "[1]")
        assert (row(session_id).tool_call_count, row(session_id).open_tool_call_count) == (1, 1)
        desk.append(session_id, result("c1"), now=later(3))
        assert call_row(call).duration_ms == 2000

    def test_taken_over_ends_with_the_messages_run(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        call = desk.call(session_id, tool_call_id="c1")
        desk.append(session_id, calling("c1"), run_id=run.run_id)
        desk.runs.complete(run_id=run.run_id)
        assert call_row(call).error_type == "abandoned"

    def test_taken_over_keeps_its_own_run_and_arguments(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        call = desk.call(session_id, tool_call_id="c1", run_id=run.run_id, arguments={"a": 1})
        desk.append(session_id, calling("c1"))
        call = call_row(call)
        assert (call.run_id, call.arguments.value) == (run.run_id, {"a": 1})

    def test_is_taken_over_once(self, desk):
        session_id = desk.open()
        desk.call(session_id, tool_call_id="x")
        desk.append(session_id, calling("x", "x"))
        assert [call.status for call in calls_of(session_id)] == ["RUNNING", "PENDING"]
        assert row(session_id).open_tool_call_count == 2

    def test_is_not_taken_over_once_it_ended(self, desk):
        session_id = desk.open()
        finish(desk, desk.call(session_id, tool_call_id="x"))
        desk.append(session_id, calling("x"))
        assert [call.message_sequence for call in calls_of(session_id)] == [None, 1]


class TestFinish:
    @pytest.mark.parametrize("status", FINAL)
    @pytest.mark.parametrize("origin", ["PENDING", "RUNNING"])
    def test_ends_an_open_call(self, desk, origin, status):
        session_id = desk.open()
        call = call_in(desk, session_id, origin)
        finish(desk, call, status, result={"n": 2**64}, has_result=True, now=later(3))
        call = call_row(call)
        assert (call.status, call.result.value) == (status, {"n": 2**64})
        assert (call.finished_at, call.duration_ms) == (later(3), 3000)
        assert row(session_id).open_tool_call_count == 0

    @pytest.mark.parametrize("status", FINAL)
    @pytest.mark.parametrize("origin", FINAL)
    def test_of_an_ended_call_keeps_its_status_and_fills_in_what_is_missing(
        self, desk, origin, status
    ):
        session_id = desk.open()
        call = call_in(desk, session_id, origin)
        finish(desk, call, status, result="late", has_result=True, now=later(9))
        call = call_row(call)
        assert (call.status, call.finished_at) == (origin, later(0))
        assert call.result.value == "late"
        finish(desk, call, status, result="later", has_result=True)
        assert call_row(call).result.value == "late"
        assert row(session_id).open_tool_call_count == 0

    @pytest.mark.parametrize("status", ["PENDING", "RUNNING"])
    def test_refuses_a_status_that_is_not_final(self, desk, status):
        call = desk.call(desk.open())
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            finish(desk, call, status)
        assert list(caught.value.pointers) == ["/status"]
        assert dump() == before

    def test_tells_null_from_nothing(self, desk):
        session_id = desk.open()
        nothing = finish(desk, desk.call(session_id))
        null = finish(desk, desk.call(session_id), result=None, has_result=True)
        assert call_row(nothing).result is None
        assert call_row(null).result.text == "null"

    def test_takes_an_explicit_duration(self, desk):
        call = finish(desk, desk.call(desk.open()), duration_ms=0, now=later(9))
        assert call_row(call).duration_ms == 0

    def test_enriches_a_call_that_a_message_answered(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("c1"), result("c1", "no", is_error=True))
        (call,) = calls_of(session_id)
        error = {"type": "timeout", "message": "after 5 s"}
        finish(desk, call, "FAILED", error=error, duration_ms=5000, result="x", has_result=True)
        call = call_row(call)
        assert (call.error_type, call.error_message) == ("timeout", "after 5 s")
        assert (call.status, call.duration_ms, call.result.value) == ("FAILED", 5000, "no")

    def test_keeps_an_error_up_to_its_limits(self, desk):
        error = {"type": "t" * 255, "message": "ä" * 4000}
        call = call_row(finish(desk, desk.call(desk.open()), "FAILED", error=error))
        assert (call.error_type, call.error_message) == (error["type"], error["message"])

    def test_says_no_error_of_a_call_that_succeeded(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("c1"), result("c1"))
        (call,) = calls_of(session_id)
        finish(desk, call, "FAILED", error={"type": "timeout"})
        assert (call_row(call).status, call_row(call).error_type) == ("SUCCEEDED", None)

    def test_before_the_result_message_leaves_the_call_for_that_to_answer(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("c1"))
        (call,) = calls_of(session_id)
        finish(desk, call, "FAILED", result="raw", has_result=True, now=later(1))
        desk.append(session_id, result("c1", "what the model saw"), now=later(9))
        call = call_row(call)
        assert (call.status, call.result_sequence, call.finished_at) == ("FAILED", 2, later(1))
        assert call.result.value == "what the model saw"

    @pytest.mark.parametrize(
        ("given", "pointer"),
        [
            ({"duration_ms": -1}, "/duration_ms"),
            ({"duration_ms": 10**12 + 1}, "/duration_ms"),
            ({"error": {"type": 5}}, "/error/type"),
            ({"error": {"type": "x" * 256}}, "/error/type"),
            ({"error": {"message": []}}, "/error/message"),
            ({"error": {"message": "x" * 4001}}, "/error/message"),
        ],
    )
    def test_refuses_values_out_of_bounds(self, desk, given, pointer):
        call = desk.call(desk.open())
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            finish(desk, call, "FAILED", **given)
        assert list(caught.value.pointers) == [pointer]
        assert dump() == before

    def test_of_a_call_that_vanishes_under_its_hands_is_not_found(self, desk, monkeypatch):
        """Between looking up the call's session and locking it, a pop may take the call."""
        session_id = desk.open()
        desk.append(session_id, calling("c1"))
        (call,) = calls_of(session_id)
        desk.sessions.pop_messages(session_id=session_id)
        monkeypatch.setattr(desk.sessions, "tool_call", lambda **_: call)
        for write in (
            lambda: finish(desk, call),
            lambda: desk.sessions.settle_tool_call(id=call.id),
        ):
            with pytest.raises(NotFound):
                write()


class TestSettle:
    @pytest.mark.parametrize("origin", ["PENDING", "RUNNING"])
    def test_closes_an_open_call_once_and_says_who_did(self, desk, origin):
        session_id = desk.open()
        call = call_in(desk, session_id, origin)
        operator = Desk(actor=Actor.operator(desk.user))
        settled, changed = operator.sessions.settle_tool_call(
            id=call.id, reason="worker gone", now=later(5)
        )
        call = call_row(settled)
        assert changed
        assert (call.status, call.error_type, call.error_message) == (
            "CANCELLED",
            "settled",
            "worker gone",
        )
        assert (call.finished_at, call.result) == (later(5), None)
        assert moves(session_id, "tool_call") == [(origin, "CANCELLED", "operator")]
        assert row(session_id).events.get(subject="tool_call").reason == "worker gone"
        assert row(session_id).open_tool_call_count == 0

    def test_inserts_no_message(self, desk):
        session_id = desk.open()
        call = call_in(desk, session_id, "PENDING")
        desk.sessions.settle_tool_call(id=call.id)
        assert (row(session_id).last_sequence, row(session_id).message_count) == (1, 1)

    def test_again_does_nothing(self, desk):
        session_id = desk.open()
        call = call_in(desk, session_id, "PENDING")
        desk.sessions.settle_tool_call(id=call.id)
        before = dump()
        assert desk.sessions.settle_tool_call(id=call.id, now=later(5))[1] is False
        assert dump() == before

    @pytest.mark.parametrize("status", ["FAILED", "CANCELLED"])
    def test_of_a_call_that_ended_without_a_result_does_nothing(self, desk, status):
        call = call_in(desk, desk.open(), status)
        before = dump()
        assert desk.sessions.settle_tool_call(id=call.id)[1] is False
        assert dump() == before

    def test_of_an_answered_call_is_refused(self, desk):
        session_id = desk.open()
        answered = [
            call_in(desk, session_id, "SUCCEEDED"),
            finish(desk, desk.call(session_id), "FAILED", result=None, has_result=True),
        ]
        before = dump()
        for call in answered:
            with pytest.raises(InvalidTransition) as caught:
                desk.sessions.settle_tool_call(id=call.id)
            assert caught.value.data["current_status"] == call.status
        assert dump() == before

    def test_leaves_room_for_the_late_result(self, desk):
        session_id = desk.open()
        call = call_in(desk, session_id, "PENDING")
        desk.sessions.settle_tool_call(id=call.id)
        desk.append(session_id, result("c1", "it ran after all"))
        call = call_row(call)
        assert (call.status, call.result.value) == ("CANCELLED", "it ran after all")
        assert (call.result_sequence, call.error_type) == (2, "settled")
        assert row(session_id).open_tool_call_count == 0

    def test_lets_the_conversation_go_on(self, desk):
        session_id = desk.open()
        call = call_in(desk, session_id, "PENDING")
        desk.append(session_id, user(), assistant(), user())
        desk.sessions.settle_tool_call(id=call.id)
        assert desk.append(session_id, assistant()).messages[0].sequence == 5


class TestOpenCount:
    def test_is_that_of_the_table_after_whatever_happens(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        steps = [
            lambda: desk.append(session_id, calling("a", "b", "c", "a"), run_id=run.run_id),
            lambda: desk.append(session_id, result("a")),
            lambda: desk.call(session_id, tool_call_id="d"),
            lambda: desk.call(session_id, tool_call_id="b"),
            lambda: desk.append(session_id, calling("d"), result("a", is_error=True)),
            lambda: desk.sessions.pop_messages(session_id=session_id),
            lambda: desk.sessions.pop_messages(session_id=session_id),
            lambda: finish(desk, calls_of(session_id)[1]),
            lambda: desk.sessions.settle_tool_call(id=calls_of(session_id)[2].id),
            lambda: desk.runs.complete(run_id=run.run_id),
            lambda: desk.append(session_id, result("a"), result("b"), result("c")),
            lambda: desk.sessions.pop_messages(session_id=session_id),
            lambda: desk.append(session_id, calling("e")),
            lambda: desk.sessions.close(session_id=session_id),
        ]
        for step in steps:
            step()
            session, calls = row(session_id), ToolCall.objects.filter(session=session_id)
            assert session.tool_call_count == calls.count()
            assert session.open_tool_call_count == calls.open().count()
