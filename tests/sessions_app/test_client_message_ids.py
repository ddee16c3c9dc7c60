import pytest

from sessions_app.errors import (
    ClientMessageIdReused,
    RunSuperseded,
    SequenceMismatch,
    SessionClosed,
)
from tests.domain import Desk, assistant, calling, dump, result, row, user


def named(name, content="Hello", **more):
    return user(content, client_message_id=name, **more)


class TestKnownId:
    @pytest.mark.parametrize("name", ["a", "", " ", "0"])
    def test_answers_the_stored_message_and_stores_nothing(self, desk, name):
        session_id = desk.open()
        first = desk.append(session_id, named(name))
        before = dump()
        again = desk.append(session_id, named(name))
        assert (again.created_count, again.messages) == (0, first.messages)
        assert dump() == before

    def test_stands_in_its_place_and_only_new_ones_get_numbers(self, desk):
        session_id = desk.open()
        desk.append(session_id, named("a"), named("b"))
        answer = desk.append(session_id, named("c"), named("a"), user("new"), named("b"))
        assert [message.sequence for message in answer.messages] == [3, 1, 4, 2]
        assert (answer.created_count, row(session_id).last_sequence) == (2, 4)

    def test_twice_in_one_batch_is_one_message(self, desk):
        session_id = desk.open()
        answer = desk.append(session_id, named("a"), user("x"), named("a"))
        assert [message.sequence for message in answer.messages] == [1, 2, 1]
        assert (answer.created_count, row(session_id).message_count) == (2, 2)

    @pytest.mark.parametrize(
        "other",
        [
            named("a", "Bye"),
            named("a", None),
            named("a", extra=None),
            named("a", usage={"input_tokens": 1}),
            assistant("Hello", client_message_id="a"),
            named("a", n=1),
        ],
    )
    def test_with_other_content_is_refused(self, desk, other):
        session_id = desk.open()
        desk.append(session_id, named("a"))
        before = dump()
        with pytest.raises(ClientMessageIdReused) as caught:
            desk.append(session_id, user("new"), other)
        assert caught.value.data == {"client_message_id": "a"}
        assert dump() == before

    def test_with_other_content_in_the_same_batch_is_refused(self, desk):
        session_id = desk.open()
        before = dump()
        with pytest.raises(ClientMessageIdReused):
            desk.append(session_id, named("a"), named("a", "Bye"))
        assert dump() == before

    @pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (1, 1.0), (2**53, 2.0**53)])
    def test_tells_values_apart_that_python_calls_equal(self, desk, one, other):
        session_id = desk.open()
        desk.append(session_id, named("a", thing=[one]))
        with pytest.raises(ClientMessageIdReused):
            desk.append(session_id, named("a", thing=[other]))

    def test_may_come_with_its_keys_in_another_order(self, desk):
        session_id = desk.open()
        desk.append(session_id, named("a"))
        turned = dict(reversed(named("a").items()))
        assert desk.append(session_id, turned).created_count == 0

    def test_is_checked_before_the_expected_sequence(self, desk):
        """A client whose first answer was lost sends the same expectation again."""
        session_id = desk.open()
        desk.append(session_id, named("a"), expected_last_sequence=0)
        assert desk.append(session_id, named("a"), expected_last_sequence=0).created_count == 0
        with pytest.raises(SequenceMismatch):
            desk.append(session_id, named("a"), named("b"), expected_last_sequence=0)

    def test_is_answered_though_the_run_was_taken_over(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        sent = {"run_id": run.run_id, "attempt": 1}
        desk.append(session_id, named("a"), **sent)
        desk.runs.wait(run_id=run.run_id, reason="w")
        desk.runs.resume(run_id=run.run_id)
        assert desk.append(session_id, named("a"), **sent).created_count == 0
        with pytest.raises(RunSuperseded):
            desk.append(session_id, named("b"), **sent)

    def test_is_no_way_into_a_closed_session(self, desk):
        session_id = desk.open()
        desk.append(session_id, named("a"))
        desk.sessions.close(session_id=session_id)
        with pytest.raises(SessionClosed):
            desk.append(session_id, named("a"))

    def test_of_another_session_is_another(self, desk):
        for owner in (desk, desk, Desk()):
            assert owner.append(owner.open(), named("a")).created_count == 1

    def test_of_a_removed_message_answers_its_row_and_never_brings_it_back(self, desk):
        session_id = desk.open()
        desk.append(session_id, named("a"))
        desk.sessions.pop_messages(session_id=session_id)
        before = dump()
        answer = desk.append(session_id, named("a"))
        assert (answer.created_count, answer.messages[0].body.value) == (0, {})
        assert answer.messages[0].removed_at is not None
        assert dump() == before

    def test_of_a_call_answers_it_without_a_second_call(self, desk):
        session_id = desk.open()
        turn = [calling("c1", client_message_id="a"), result("c1", client_message_id="b")]
        desk.append(session_id, *turn)
        assert desk.append(session_id, *turn).created_count == 0
        assert row(session_id).tool_call_count == 1

    def test_of_a_call_lets_the_missing_result_follow(self, desk):
        """The write of a result failed; the retry of the whole turn completes the pair."""
        session_id = desk.open()
        turn = [calling("c1", client_message_id="a"), result("c1", client_message_id="b")]
        desk.append(session_id, turn[0])
        answer = desk.append(session_id, *turn)
        assert (answer.created_count, row(session_id).open_tool_call_count) == (1, 0)


class TestWithoutAnId:
    def test_equal_content_is_two_messages(self, desk):
        session_id = desk.open()
        assert desk.append(session_id, user(), user()).created_count == 2

    def test_null_names_nothing(self, desk):
        session_id = desk.open()
        assert desk.append(session_id, named(None), named(None)).created_count == 2

    def test_an_empty_one_is_a_name(self, desk):
        session_id = desk.open()
        assert desk.append(session_id, named(""), named("")).created_count == 1
