"""Report CMP-01: compaction that lost the history, or put nothing in its place."""

import json

import pytest

from sessions_app.errors import InvalidRequest, SessionClosed
from sessions_app.models import Message
from sessions_app.services import NewFork
from sessions_app.services.formats import conversation
from sessions_app.services.window import read_window
from tests.domain import assistant, calling, calls_of, dump, result, row, session_in, user
from tests.providers import PROVIDERS, check, synthetic

SYSTEM = {"role": "system", "content": "s"}


def compact(desk, session_id, through, summary="What was said."):
    return desk.sessions.compact(session_id=session_id, through_sequence=through, summary=summary)


def window(session_id, last_n=50, **more):
    return read_window(row(session_id), last_n=last_n, **more)


def sequences(session_id, last_n=50):
    return [message.sequence for message in window(session_id, last_n).messages]


@pytest.fixture
def talk(desk):
    """Sequences: 1 opens; 2, 3; 4 calls, 5 answers; 6, 7."""
    session_id = desk.open()
    desk.append(session_id, SYSTEM, user(), assistant(), calling("a"), result("a"))
    desk.append(session_id, user(), assistant())
    return session_id


class TestCompact:
    def test_adds_a_message_with_which_the_context_begins(self, desk, talk):
        message = compact(desk, talk, 5, "Sum\x00mary")
        assert (message.sequence, message.type, message.role) == (8, "compaction", "user")
        assert message.body.value == {
            "role": "user",
            "content": "Sum\ufffdmary",
            "through_sequence": 5,
        }
        assert (message.text, message.through_sequence) == ("sum\ufffdmary", 5)
        desk.append(talk, user())
        found = window(talk)
        assert [each.sequence for each in found.messages] == [1, 8, 6, 7, 9]
        assert (found.first_sequence, found.last_sequence, found.omitted_before) == (6, 9, 4)

    def test_leaves_the_history_as_it_is(self, desk, talk):
        before = dump()["sessions_app.Message"]
        compact(desk, talk, 5)
        after = dump()["sessions_app.Message"]
        assert after[:-1] == before
        page = desk.sessions.read_page(session_id=talk, limit=50)
        assert [message.sequence for message in page.messages] == [1, 2, 3, 4, 5, 6, 7, 8]
        assert (row(talk).message_count, row(talk).last_sequence) == (8, 8)

    @pytest.mark.parametrize(("through", "cut"), [(2, 2), (3, 3), (4, 3), (5, 5), (7, 7)])
    def test_parts_no_call_from_its_result(self, desk, talk, through, cut):
        assert compact(desk, talk, through).through_sequence == cut

    def test_covers_no_open_call(self, desk, talk):
        desk.append(talk, calling("b"), user())
        assert compact(desk, talk, 9).through_sequence == 7
        desk.append(talk, result("b"))
        assert sequences(talk) == [1, 10, 8, 9, 11]
        assert compact(desk, talk, 10).through_sequence == 7
        assert compact(desk, talk, 11).through_sequence == 11

    def test_covers_a_call_for_which_nobody_waits_and_brings_it_back_with_its_result(
        self, desk, talk
    ):
        """Or one call that was abandoned would keep the session from ever being compacted."""
        desk.append(talk, calling("b"), user())
        desk.sessions.settle_tool_call(id=calls_of(talk)[1].id)
        assert compact(desk, talk, 9).through_sequence == 9
        assert sequences(talk) == [1, 10]
        desk.append(talk, result("b"), user())
        assert sequences(talk) == [1, 10, 8, 11, 12]
        assert sequences(talk, 1) == [1, 10, 12]

    @pytest.mark.parametrize("last_n", range(1, 6))
    def test_stands_beside_whatever_window_there_is(self, desk, talk, last_n):
        compact(desk, talk, 3)
        desk.append(talk, user())
        newest = [4, 5, 6, 7, 9][5 - last_n :]
        expected = newest if newest[0] != 5 else newest[1:]
        assert sequences(talk, last_n) == [1, 8, *expected]

    def test_is_all_that_there_is(self, desk):
        session_id = desk.open()
        desk.append(session_id, user(), assistant())
        compact(desk, session_id, 2)
        found = window(session_id, 1)
        assert [each.sequence for each in found.messages] == [3]
        assert (found.first_sequence, found.last_sequence, found.omitted_before) == (3, 3, 2)

    def test_counts_towards_the_bytes(self, desk):
        session_id = desk.open()
        desk.append(session_id, *[user("x" * 900)] * 4)
        compact(desk, session_id, 1, "y" * 900)
        found = window(session_id, budget=2_900)
        assert [each.sequence for each in found.messages] == [5, 3, 4]
        assert found.truncated
        # As what opens a session: there in any case.
        assert [each.sequence for each in window(session_id, budget=10).messages] == [5, 4]

    def test_again_takes_the_place_of_the_last_one(self, desk, talk):
        compact(desk, talk, 3, "one")
        desk.append(talk, user())
        assert compact(desk, talk, 6, "two").sequence == 10
        assert sequences(talk) == [1, 10, 7, 9]
        compact(desk, talk, 9, "three")
        assert sequences(talk) == [1, 11]
        compact(desk, talk, 3, "four")
        assert sequences(talk) == [1, 12, 4, 5, 6, 7, 9]

    def test_is_in_force_until_it_is_taken_away(self, desk, talk):
        compact(desk, talk, 3)
        compact(desk, talk, 7)
        desk.append(talk, user())
        desk.sessions.rewind(session_id=talk, to_sequence=9)
        assert sequences(talk) == [1, 9]
        desk.sessions.pop_messages(session_id=talk)
        assert sequences(talk) == [1, 8, 4, 5, 6, 7]
        desk.sessions.rewind(session_id=talk, to_sequence=7)
        assert sequences(talk) == [1, 2, 3, 4, 5, 6, 7]
        assert (row(talk).compaction_sequence, row(talk).compacted_through) == (None, None)

    def test_goes_with_a_fork_that_has_it(self, desk, talk):
        compact(desk, talk, 3)
        compact(desk, talk, 7)

        def forked(at):
            new = NewFork(at_sequence=at)
            return desk.sessions.fork(session_id=talk, new=new).session_id

        assert sequences(forked(None)) == [1, 9]
        assert sequences(forked(8)) == [1, 8, 4, 5, 6, 7]
        assert sequences(forked(7)) == [1, 2, 3, 4, 5, 6, 7]

    def test_is_no_turn_of_the_user(self, desk, talk):
        compact(desk, talk, 3)
        popped = desk.sessions.pop_messages(session_id=talk, turn=True)[1]
        assert [message.sequence for message in popped] == [6, 7, 8]

    def test_is_not_what_a_provider_calls_so(self, desk, talk):
        item = {"item": {"type": "compaction", "encrypted_content": "x"}, "through_sequence": 6}
        desk.append(talk, item, user())
        assert Message.objects.get(session=talk, sequence=8).type == "compaction"
        compact(desk, talk, 5)
        assert sequences(talk) == [1, 10, 6, 7, 8, 9]

    @pytest.mark.parametrize("summary", ["", " ", "\n\t\u3000"])
    def test_that_says_nothing_is_refused(self, desk, talk, summary):
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            compact(desk, talk, 5, summary)
        assert (list(caught.value.pointers), dump()) == (["/summary"], before)

    @pytest.mark.parametrize("through", [1, 8, 2**63 - 1])
    def test_of_nothing_is_refused(self, desk, talk, through):
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            compact(desk, talk, through)
        assert (list(caught.value.pointers), dump()) == (["/through_sequence"], before)

    def test_of_an_open_call_alone_is_refused(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("a"), user())
        with pytest.raises(InvalidRequest):
            compact(desk, session_id, 2)

    def test_needs_an_active_session(self, desk):
        session_id = session_in(desk, "CLOSED")
        with pytest.raises(SessionClosed):
            compact(desk, session_id, 1)


@pytest.mark.parametrize("format", PROVIDERS)
class TestAProvider:
    def told(self, session_id, format, **more):
        found = window(session_id, **more)
        told = conversation(found.messages, format=format)
        check(format, told.messages, told.system)
        return json.dumps(told.messages), synthetic(told.messages)

    @pytest.mark.parametrize("through", [3, 4, 5, 7])
    def test_is_told_the_summary_in_place_of_what_it_covers(self, desk, talk, format, through):
        compact(desk, talk, through)
        desk.append(talk, user("And now?"), calling("b", "c"), result("c", "two"))
        said, marked = self.told(talk, format)
        assert said.count("What was said.") == 1
        assert said.index("What was said.") < said.index("And now?")
        assert [
            each.get("tool_call_id", each.get("call_id", each.get("tool_use_id")))
            for each in marked
        ] == ["b"]
        assert ("done" in said) == (through < 5)

    def test_is_told_a_covered_call_again_with_its_late_result(self, desk, talk, format):
        desk.append(talk, calling("late"), user())
        compact(desk, talk, 9)
        desk.append(talk, result("late", "at last"))
        said, marked = self.told(talk, format)
        assert said.index("What was said.") < said.index("late") < said.index("at last")
        assert marked == []

    def test_is_told_the_summary_whatever_the_budget(self, desk, talk, format):
        compact(desk, talk, 5)
        desk.append(talk, user("And now?"))
        said, _ = self.told(talk, format, max_tokens=1)
        assert "What was said." in said
        assert "And now?" in said
