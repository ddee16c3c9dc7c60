import pytest

from sessions_app.errors import HasResult, NotFound, PayloadTooLarge
from sessions_app.models import Message
from sessions_app.services import Outcome
from sessions_app.states import ToolCallStatus
from tests.domain import (
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


def pop(desk, session_id, *, turn=False, now=None):
    popped = desk.sessions.pop_messages(session_id=session_id, turn=turn, now=now)[1]
    return [message.sequence for message in popped]


def remove(desk, session_id, sequence):
    desk.sessions.remove_message(session_id=session_id, sequence=sequence)


def finish(desk, call, status="SUCCEEDED", **more):
    given = {"result": 1, "has_result": True, **more}
    outcome = Outcome(ToolCallStatus(status), **given)
    desk.sessions.finish_tool_call(id=call.id, outcome=outcome)


def live(session_id):
    history = Message.objects.filter(session=session_id).live().order_by("sequence")
    return [message.sequence for message in history]


class TestRemove:
    def test_purges_the_content_and_keeps_the_row_in_its_place(self, desk):
        session_id = desk.open()
        desk.append(session_id, user("one"), user("secret", client_message_id="m"), user("three"))
        desk.sessions.remove_message(session_id=session_id, sequence=2, now=later(5))
        message = Message.objects.get(session=session_id, sequence=2)
        assert (message.body.value, message.text, message.size) == ({}, "", 2)
        assert (message.removed_at, message.session_version) == (later(5), 3)
        assert live(session_id) == [1, 3]
        assert (row(session_id).message_count, row(session_id).last_sequence) == (2, 3)
        assert "secret" not in str(dump())

    def test_says_who_did_it(self, desk):
        session_id = desk.open()
        desk.append(session_id, user())
        remove(desk, session_id, 1)
        assert moves(session_id, "content") == [(None, "REMOVED", "account")]

    def test_again_does_nothing(self, desk):
        session_id = desk.open()
        desk.append(session_id, user())
        remove(desk, session_id, 1)
        before = dump()
        remove(desk, session_id, 1)
        assert dump() == before

    @pytest.mark.parametrize("sequence", [-1, 0, 2, 2**63 - 1, 2**63, 10**30])
    def test_of_no_message_is_not_found(self, desk, sequence):
        session_id = desk.open()
        desk.append(session_id, user())
        desk.append(desk.open(), user(), user())
        before = dump()
        with pytest.raises(NotFound):
            remove(desk, session_id, sequence)
        assert dump() == before

    def test_of_a_call_with_a_result_is_refused(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("a", "b"), result("b"))
        before = dump()
        with pytest.raises(HasResult):
            remove(desk, session_id, 1)
        assert dump() == before
        remove(desk, session_id, 2)
        remove(desk, session_id, 1)
        assert calls_of(session_id) == []

    def test_of_a_call_whose_result_was_recorded_is_refused_too(self, desk):
        """A tool that ran is never forgotten."""
        session_id = desk.open()
        desk.append(session_id, calling("a"))
        finish(desk, calls_of(session_id)[0])
        with pytest.raises(HasResult):
            remove(desk, session_id, 1)

    def test_of_an_unanswered_call_removes_the_call(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("a", "b"), user())
        remove(desk, session_id, 1)
        session = row(session_id)
        assert (session.tool_call_count, session.open_tool_call_count) == (0, 0)

    def test_of_a_result_makes_its_call_unanswered(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("a"), result("a"), user())
        remove(desk, session_id, 2)
        (call,) = calls_of(session_id)
        assert (call.status, call.result, call.result_sequence) == ("PENDING", None, None)
        assert (call.finished_at, call.duration_ms, call.size) == (None, None, len(call.arguments))
        assert row(session_id).open_tool_call_count == 1
        desk.append(session_id, result("a", "again"))
        assert calls_of(session_id)[0].result_sequence == 4


class TestPop:
    def test_removes_the_newest_and_returns_it_as_it_was(self, desk):
        session_id = desk.open()
        desk.append(session_id, user("one"), assistant("two"))
        session, popped = desk.sessions.pop_messages(session_id=session_id)
        assert [message.body.value for message in popped] == [assistant("two")]
        assert (session.message_count, session.last_sequence, session.version) == (1, 2, 3)
        assert pop(desk, session_id) == [1]
        assert live(session_id) == []

    @pytest.mark.parametrize("turn", [True, False])
    def test_of_nothing_is_not_found(self, desk, turn):
        session_id = desk.open()
        desk.append(session_id, user())
        pop(desk, session_id)
        before = dump()
        with pytest.raises(NotFound):
            pop(desk, session_id, turn=turn)
        assert dump() == before

    def test_skips_what_was_removed(self, desk):
        session_id = desk.open()
        desk.append(session_id, user(), user(), user())
        remove(desk, session_id, 3)
        assert pop(desk, session_id) == [2]
        assert row(session_id).message_count == 1

    @pytest.mark.parametrize("is_error", [True, False])
    def test_of_a_result_makes_its_call_unanswered_again(self, desk, is_error):
        session_id = desk.open()
        desk.append(session_id, calling("a"), result("a", is_error=is_error))
        pop(desk, session_id)
        (call,) = calls_of(session_id)
        assert (call.status, call.result) == ("PENDING", None)
        assert row(session_id).open_tool_call_count == 1

    def test_of_a_result_whose_failure_was_explained_takes_that_back_too(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("a"), result("a", is_error=True))
        finish(desk, calls_of(session_id)[0], "FAILED", error={"type": "timeout"})
        pop(desk, session_id)
        (call,) = calls_of(session_id)
        assert (call.status, call.error_type) == ("PENDING", None)
        desk.append(session_id, result("a"))
        assert calls_of(session_id)[0].status == "SUCCEEDED"

    @pytest.mark.parametrize("end", ["cancel", "complete", "settle"])
    def test_of_a_late_result_leaves_the_status_that_it_did_not_give(self, desk, end):
        session_id = desk.open()
        run = desk.run(session_id)
        desk.append(session_id, calling("a"), run_id=run.run_id)
        (call,) = calls_of(session_id)
        if end == "settle":
            desk.sessions.settle_tool_call(id=call.id)
        else:
            getattr(desk.runs, end)(run_id=run.run_id)
        ended = call_row(call)
        desk.append(session_id, result("a"))
        pop(desk, session_id)
        call = call_row(call)
        assert (call.status, call.error_type) == (ended.status, ended.error_type)
        assert (call.result, call.result_sequence) == (None, None)
        assert row(session_id).open_tool_call_count == 0
        desk.append(session_id, result("a"))

    def test_of_a_call_removes_it(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("a", "b"))
        pop(desk, session_id)
        session = row(session_id)
        assert (session.tool_call_count, session.open_tool_call_count) == (0, 0)
        assert calls_of(session_id) == []

    def test_writes_an_event_for_each_message(self, desk):
        session_id = desk.open()
        desk.append(session_id, user(), assistant(), assistant())
        pop(desk, session_id, turn=True)
        assert len(moves(session_id, "content")) == 3
        events = row(session_id).events.order_by("sequence")
        assert [event.sequence for event in events] == [1, 2, 3, 4]


class TestPopATurn:
    def test_goes_down_to_and_including_the_last_user_message(self, desk):
        session_id = desk.open()
        desk.append(session_id, user(), assistant(), user(), calling("a"), result("a"), assistant())
        assert pop(desk, session_id, turn=True) == [3, 4, 5, 6]
        assert (live(session_id), calls_of(session_id)) == ([1, 2], [])
        assert pop(desk, session_id, turn=True) == [1, 2]

    def test_is_refused_when_it_fits_into_no_answer(self, desk, settings):
        """Report BIG-01: one answer of 130 MB, and one record of it."""
        settings.MAX_PAGE_BYTES = 1000
        session_id = desk.open()
        desk.append(session_id, user("x" * 2000), user("x" * 600), assistant("x" * 600))
        before = dump()
        with pytest.raises(PayloadTooLarge) as caught:
            pop(desk, session_id, turn=True)
        assert (caught.value.data["limit"], dump()) == (1000, before)
        assert [pop(desk, session_id) for _ in range(2)] == [[3], [2]]
        assert pop(desk, session_id, turn=True) == [1]

    def test_goes_past_a_user_message_that_only_carries_results(self, desk):
        session_id = desk.open()
        blocks = [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]
        desk.append(session_id, user(), calling("a"), user(blocks), assistant())
        assert pop(desk, session_id, turn=True) == [1, 2, 3, 4]

    def test_stops_at_a_user_message_that_carries_results_and_words(self, desk):
        session_id = desk.open()
        blocks = [
            {"type": "tool_result", "tool_use_id": "a", "content": "x"},
            {"type": "text", "text": "Stop, do this instead."},
        ]
        desk.append(session_id, user(), calling("a"), user(blocks), assistant())
        assert pop(desk, session_id, turn=True) == [3, 4]
        assert calls_of(session_id)[0].status == "PENDING"

    def test_reopens_an_older_call_that_it_answered(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("a"), user(), result("a"))
        assert pop(desk, session_id, turn=True) == [2, 3]
        assert row(session_id).open_tool_call_count == 1

    def test_without_a_user_message_is_not_found(self, desk):
        session_id = desk.open()
        desk.append(session_id, {"role": "system", "content": "s"}, assistant())
        before = dump()
        with pytest.raises(NotFound):
            pop(desk, session_id, turn=True)
        assert dump() == before
