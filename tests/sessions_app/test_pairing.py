"""Which result answers which call: the history alone, without windows (see their own tests)."""

from cProfile import Profile
from typing import Any

import pytest

from sessions_app.errors import InvalidRequest, OrphanToolResult
from tests.domain import assistant, call_row, calling, calls_of, dump, later, result, row, user


def using(*ids, name="ls", given=None):
    """An assistant message of content blocks that uses a tool once for each id."""
    blocks = [{"type": "tool_use", "id": each, "name": name, "input": given or {}} for each in ids]
    return assistant([{"type": "text", "text": "Let me see."}, *blocks])


def used(*ids, **more):
    blocks = [{"type": "tool_result", "tool_use_id": each, "content": "done"} for each in ids]
    return user([{**block, **more} for block in blocks])


def item_call(id, name="ls", arguments="{}"):
    item = {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}
    return {"item": item}


def item_output(id, output="done"):
    return {"item": {"type": "function_call_output", "call_id": id, "output": output}}


FORMS = {
    "chat": (calling, result),
    "blocks": (using, used),
    "items": (item_call, item_output),
}


def links(session_id):
    return [(call.message_sequence, call.result_sequence) for call in calls_of(session_id)]


@pytest.mark.parametrize(("call", "answer"), FORMS.values(), ids=FORMS)
class TestEveryForm:
    def test_makes_a_call_and_answers_it(self, desk, call, answer):
        session_id = desk.open()
        desk.append(session_id, user(), call("c1"), now=later(0))
        (made,) = calls_of(session_id)
        assert (made.tool_call_id, made.name, made.status) == ("c1", "ls", "PENDING")
        assert (made.message_sequence, made.result_sequence, made.result) == (2, None, None)
        desk.append(session_id, answer("c1"), now=later(1.5))
        made = call_row(made)
        assert (made.status, made.result.value) == ("SUCCEEDED", "done")
        assert (made.message_sequence, made.result_sequence) == (2, 3)
        assert (made.started_at, made.finished_at) == (later(0), later(1.5))
        assert made.duration_ms == 1500

    def test_pairs_within_one_batch(self, desk, call, answer):
        session_id = desk.open()
        desk.append(session_id, call("c1"), answer("c1"), call("c1"), answer("c1"))
        assert links(session_id) == [(1, 2), (3, 4)]
        assert row(session_id).open_tool_call_count == 0

    def test_refuses_a_result_without_a_call(self, desk, call, answer):
        session_id = desk.open()
        desk.append(session_id, call("c1"), answer("c1"))
        before = dump()
        for ghost in ("ghost", "c1"):
            with pytest.raises(OrphanToolResult) as caught:
                desk.append(session_id, user(), answer(ghost))
            assert caught.value.data["tool_call_id"] == ghost
            assert caught.value.data["pointer"].startswith("/messages/1/")
            assert dump() == before

    def test_refuses_a_result_before_its_call(self, desk, call, answer):
        session_id = desk.open()
        before = dump()
        with pytest.raises(OrphanToolResult):
            desk.append(session_id, answer("c1"), call("c1"))
        assert dump() == before

    def test_takes_an_empty_id(self, desk, call, answer):
        session_id = desk.open()
        desk.append(session_id, call(""), answer(""))
        assert links(session_id) == [(1, 2)]

    @pytest.mark.parametrize("bad", [None, 5, "x" * 2049, []])
    def test_refuses_an_id_that_is_none(self, desk, call, answer, bad):
        session_id = desk.open()
        before = dump()
        answers_none = answer is item_output and bad is None
        for message in (call(bad), *([] if answers_none else [answer(bad)])):
            with pytest.raises(InvalidRequest):
                desk.append(session_id, message)
        assert dump() == before

    def test_takes_an_output_that_names_no_call(self, desk, call, answer):
        session_id = desk.open()
        desk.append(session_id, call("c1"), item_output(None))
        assert links(session_id) == [(1, None)]

    def test_takes_a_long_id(self, desk, call, answer):
        session_id = desk.open()
        desk.append(session_id, call("ä" * 2048), answer("ä" * 2048))
        assert links(session_id) == [(1, 2)]


class TestOneForm:
    @pytest.mark.parametrize("call", [form[0] for form in FORMS.values()], ids=FORMS)
    @pytest.mark.parametrize("answer", [form[1] for form in FORMS.values()], ids=FORMS)
    def test_may_answer_another(self, desk, call, answer):
        session_id = desk.open()
        desk.append(session_id, call("c1"), answer("c1"))
        assert links(session_id) == [(1, 2)]


class TestReusedId:
    def test_is_answered_in_the_newest_message_that_has_it_open(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("x"), user(), calling("x"))
        desk.append(session_id, result("x", "newer"))
        desk.append(session_id, result("x", "older"))
        assert links(session_id) == [(1, 5), (3, 4)]
        assert [call.result.value for call in calls_of(session_id)] == ["older", "newer"]

    def test_in_one_message_is_answered_from_the_first(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("x", "x", "y"))
        desk.append(session_id, result("x", "1"), result("y", "2"), result("x", "3"))
        assert [call.result.value for call in calls_of(session_id)] == ["1", "3", "2"]

    def test_in_one_message_is_answered_from_the_first_in_one_batch(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("x", "x"), result("x", "1"), result("x", "2"))
        assert [call.result.value for call in calls_of(session_id)] == ["1", "2"]

    def test_in_rounds_makes_a_pair_each(self, desk):
        session_id = desk.open()
        for _ in range(4):
            desk.append(session_id, calling("search:1"))
            desk.append(session_id, result("search:1"))
        assert links(session_id) == [(1, 2), (3, 4), (5, 6), (7, 8)]

    def test_in_two_sessions_is_two(self, desk):
        one, other = desk.open(), desk.open()
        desk.append(one, calling("x"))
        with pytest.raises(OrphanToolResult):
            desk.append(other, result("x"))
        desk.append(other, calling("x"), result("x"))
        assert (links(one), links(other)) == ([(1, None)], [(1, 2)])

    def test_mixes_what_the_database_and_the_batch_know(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("x"))
        desk.append(session_id, calling("x"), result("x"), result("x"))
        assert links(session_id) == [(1, 4), (2, 3)]


class TestResult:
    @pytest.mark.parametrize(
        ("is_error", "status"), [(True, "FAILED"), (False, "SUCCEEDED"), (None, "SUCCEEDED")]
    )
    def test_fails_the_call_only_when_it_says_so(self, desk, is_error, status):
        session_id = desk.open()
        desk.append(session_id, calling("c1"), result("c1", is_error=is_error), using("c2"))
        desk.append(session_id, used("c2", is_error=is_error))
        assert [call.status for call in calls_of(session_id)] == [status, status]

    @pytest.mark.parametrize("content", [None, "", [], [{"type": "text", "text": "x"}], "\\u0000"])
    def test_is_kept_as_it_came(self, desk, content):
        session_id = desk.open()
        desk.append(session_id, calling("c1"), result("c1", content))
        assert calls_of(session_id)[0].result.value == content
        assert calls_of(session_id)[0].status == "SUCCEEDED"

    def test_of_two_in_one_message_answers_two(self, desk):
        session_id = desk.open()
        desk.append(session_id, using("a", "b"), used("b", "a"))
        assert links(session_id) == [(1, 2), (1, 2)]

    def test_of_an_unanswered_call_may_come_after_other_messages(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("c1"), user(), assistant(), user())
        assert row(session_id).open_tool_call_count == 1
        desk.append(session_id, result("c1"))
        assert links(session_id) == [(1, 5)]

    def test_takes_no_time_when_the_clock_goes_back(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("c1"), now=later(5))
        desk.append(session_id, result("c1"), now=later(1))
        assert calls_of(session_id)[0].duration_ms == 0


class TestCall:
    def test_keeps_arguments_that_are_no_json(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("c1", arguments='{"a": '))
        assert calls_of(session_id)[0].arguments.value == '{"a": '

    def test_keeps_arguments_of_blocks_as_they_were(self, desk):
        session_id = desk.open()
        given = {"z": 1, "a": [2**70, 1.0, None, ""]}
        desk.append(session_id, using("c1", given=given))
        stored = calls_of(session_id)[0].arguments.value
        assert repr(stored) == repr(given)

    def test_of_another_kind_carries_its_input(self, desk):
        session_id = desk.open()
        custom = {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}
        desk.append(session_id, assistant(None, tool_calls=[custom]))
        assert calls_of(session_id)[0].arguments.value == "ls -l"

    def test_comes_with_text(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("c1") | {"content": "Let me see."})
        assert len(calls_of(session_id)) == 1

    def test_is_none_in_what_a_user_says(self, desk):
        session_id = desk.open()
        block = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
        desk.append(session_id, user([block]))
        assert calls_of(session_id) == []

    @pytest.mark.parametrize(
        ("calls", "pointer"),
        [
            ({}, ""),
            ("x", ""),
            (["x"], "/0"),
            ([{}], "/0/function"),
            ([{"id": "c", "function": []}], "/0/function"),
            ([{"id": "c", "type": [], "function": {}}], "/0/function"),
            ([{"id": "c", "function": {"name": "n"}}], "/0/function/arguments"),
            ([{"id": "c", "function": {"name": "n", "arguments": {}}}], "/0/function/arguments"),
            ([{"id": "c", "function": {"name": 5, "arguments": ""}}], "/0/name"),
            ([{"id": "c", "function": {"name": "n" * 256, "arguments": ""}}], "/0/name"),
            ([{"function": {"name": "n", "arguments": ""}}], "/0/id"),
        ],
    )
    def test_of_another_shape_is_refused_by_its_pointer(self, desk, calls, pointer):
        session_id = desk.open()
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            desk.append(session_id, assistant(None, tool_calls=calls))
        assert list(caught.value.pointers) == [f"/messages/0/tool_calls{pointer}"]
        assert dump() == before

    @pytest.mark.parametrize("role", ["user", "system", "tool"])
    def test_is_made_by_assistants_only(self, desk, role):
        with pytest.raises(InvalidRequest) as caught:
            desk.append(desk.open(), calling("c1", role=role, tool_call_id="c0"))
        assert list(caught.value.pointers) == ["/messages/0/tool_calls"]

    def test_cleans_names_and_ids_of_nul(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("c\x00", name="l\x00", arguments="\x00"), result("c\x00"))
        (call,) = calls_of(session_id)
        assert (call.tool_call_id, call.name) == ("c\ufffd", "l\ufffd")
        assert call.arguments.value == "\ufffd"


def work_of(desk: Any, count: int, *, separately: bool) -> int:
    """How many Python calls it takes to pair so many: time, but the same on every machine."""
    session_id = desk.open()
    ids = [f"c{number}" for number in range(count)]
    batch = [using(*ids), used(*reversed(ids))]
    profile = Profile()
    with profile:
        for part in [[message] for message in batch] if separately else [batch]:
            desk.append(session_id, *part)
    session = row(session_id)
    assert (session.tool_call_count, session.open_tool_call_count) == (count, 0)
    return sum(entry.callcount for entry in profile.getstats())


class TestManyCalls:
    @pytest.mark.parametrize("separately", [True, False])
    def test_cost_what_they_are_and_not_their_square(self, desk, separately):
        """A thousand calls an answer at a time would hold the lock for minutes."""
        one = work_of(desk, 500, separately=separately)
        four = work_of(desk, 2_000, separately=separately)
        assert four < 6 * one
