"""The window against a naive one, over random transcripts, for every ``last_n``.

What a model's API refuses is a result without its call and a call without its result (report
PAIR-01); everything else here says that the window is no smaller than it must be.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sessions_app.models import Message, ToolCall
from sessions_app.services import window as module
from sessions_app.services.window import Window, read_window
from tests.domain import Desk, assistant, calling, result, row, user

HEAD_ROLES = ("system", "developer")
PER_TURN = 4

pytestmark = pytest.mark.django_db

# A step of a transcript: what happens, and a number that chooses how.
KINDS = ("system", "users", "assistant", "call", "answer", "parallel", "several", "both", "remove")
steps = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 11)), min_size=4, max_size=16)
_BOUNDED = re.compile(r"session_id=\? AND (\w*sequence)(=\?|>\? AND \1<\?)\)")
margins = st.sampled_from([0, 1, 64])


class Transcript:
    """Plays steps into a session; whatever the steps are, what comes of them is acceptable."""

    def __init__(self, desk: Desk, played: Sequence[tuple[str, int]]) -> None:
        self.desk = desk
        self.session_id = desk.open()
        self.waiting: list[dict[str, Any]] = []
        self.open: list[str] = []  # ids of unanswered calls, as often as they were used
        for kind, number in played:
            getattr(self, f"_{kind}")(number)
        self._store()

    def _system(self, number: int) -> None:
        self._say({"role": HEAD_ROLES[number % 2], "content": "Rules."})

    def _users(self, number: int) -> None:
        for _ in range(1 + number % 4):
            self._say(user(f"Question {number}"))

    def _assistant(self, number: int) -> None:
        self._say(assistant("Answer " * number))

    def _call(self, number: int) -> None:
        self._say(calling(self._announced(number)))

    def _parallel(self, number: int) -> None:
        # Three ids for all calls: they are used again, also in one message.
        self._say(calling(*[self._announced(number + step) for step in range(1 + number % 4)]))

    def _answer(self, number: int) -> None:
        for call_id in self._answered(number, 1):
            self._say(result(call_id))

    def _several(self, number: int) -> None:
        if blocks := self._result_blocks(number, 1 + number % 3):
            self._say(user(blocks))

    def _both(self, number: int) -> None:
        """One message that answers calls and makes one."""
        if blocks := self._result_blocks(number, 1 + number % 2):
            self._say(calling(self._announced(number)) | {"content": blocks})

    def _remove(self, number: int) -> None:
        self._store()
        removable = _live(self.session_id).exclude(
            sequence__in=ToolCall.objects.filter(session=self.session_id)
            .exclude(message_sequence=None)
            .values("message_sequence")
        )
        message = list(removable)[number % 3 :][:1]
        for found in message:
            reopened = ToolCall.objects.filter(
                session=self.session_id, result_sequence=found.sequence
            )
            self.open += [str(call.tool_call_id) for call in reopened]
            self.desk.sessions.remove_message(session_id=self.session_id, sequence=found.sequence)

    def _announced(self, number: int) -> str:
        call_id = "abc"[number % 3]
        self.open.append(call_id)
        return call_id

    def _answered(self, number: int, how_many: int) -> list[str]:
        return [
            self.open.pop((number + step) % len(self.open))
            for step in range(min(how_many, len(self.open)))
        ]

    def _result_blocks(self, number: int, how_many: int) -> list[dict[str, Any]]:
        return [
            {"type": "tool_result", "tool_use_id": call_id, "content": "done"}
            for call_id in self._answered(number, how_many)
        ]

    def _say(self, message: dict[str, Any]) -> None:
        self.waiting.append(message)

    def _store(self) -> None:
        if self.waiting:
            self.desk.append(self.session_id, *self.waiting)
        self.waiting = []


def _live(session_id: str) -> Any:
    return Message.objects.filter(session=session_id).live().order_by("sequence")


def window_of(session_id: str, last_n: int, **more: Any) -> Window:
    return read_window(row(session_id), last_n=last_n, **more)


def sequences(found: Window) -> list[int]:
    return [message.sequence for message in found.messages]


class Naive:
    """The same rules, from everything that is stored, without a thought of cost."""

    def __init__(self, session_id: str) -> None:
        rows = Message.objects.filter(session=session_id).order_by("sequence")
        opening = takewhile(lambda message: message.role in HEAD_ROLES, rows)
        opening_sequences = {message.sequence for message in opening}
        self.live = [message.sequence for message in _live(session_id)]
        self.head = [sequence for sequence in self.live if sequence in opening_sequences]
        self.body = [sequence for sequence in self.live if sequence not in opening_sequences]
        answered = ToolCall.objects.filter(session=session_id, result_sequence__isnull=False)
        self.pairs = list(answered.values_list("message_sequence", "result_sequence"))

    def units(self) -> Iterator[set[int]]:
        """Newest first."""
        left = set(self.body)
        while left:
            unit = {max(left)}
            while (
                more := {sequence for pair in self.pairs if unit & {*pair} for sequence in pair}
                - unit
            ):
                unit |= more
            yield unit
            left -= unit

    def window(self, last_n: int) -> list[int]:
        chosen: set[int] = set()
        for unit in self.units():
            if len(chosen) + len(unit) > last_n:
                break
            chosen |= unit
        return sorted({*self.head, *chosen})


class TestAWindow:
    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(played=steps, margin=margins)
    @example(  # a result message answers two messages' calls, one of which has an older result too
        played=[("call", 0), ("parallel", 1), ("answer", 1), ("several", 1), ("users", 0)], margin=0
    )
    @example(  # two calls of one message, the first answered at once and the second late
        played=[("parallel", 1), ("answer", 0), ("users", 3), ("answer", 0)], margin=0
    )
    @example(played=[("call", 0), *[("both", 0)] * 8], margin=0)  # one unit from end to end
    @example(
        played=[("system", 0), ("call", 0), ("users", 0), ("users", 1), ("answer", 0)], margin=0
    )
    def test_is_what_the_rules_say_for_every_length(
        self, desk: Desk, played: list[tuple[str, int]], margin: int
    ) -> None:
        transcript = Transcript(desk, played)
        naive = Naive(transcript.session_id)
        with mock.patch.object(module, "_MARGIN", margin):
            for last_n in range(1, len(naive.live) + 2):
                found = window_of(transcript.session_id, last_n)
                self.check(naive, found, last_n)

    def check(self, naive: Naive, found: Window, last_n: int) -> None:
        held = sequences(found)
        assert held == sorted(set(held))
        assert [sequence for sequence in held if sequence in naive.head] == naive.head
        assert len(set(held) - set(naive.head)) <= last_n
        for call, answer in naive.pairs:
            assert (call in held) == (answer in held)
        assert held == naive.window(last_n)
        assert found.omitted_before == len(naive.live) - len(held)
        assert found.truncated is False
        self.check_range(naive, found)

    def check_range(self, naive: Naive, found: Window) -> None:
        """Between its ends nothing is missing; all that is missing is before them."""
        held, first, last = sequences(found), found.first_sequence, found.last_sequence
        missing = set(naive.live) - set(held)
        if first is None or last is None:
            assert set(held) == set(naive.head)
            assert not naive.live or missing
            return
        assert last == naive.live[-1]
        assert first in held
        assert all(sequence < first for sequence in missing)

    def test_has_all_when_all_fits(self, desk: Desk) -> None:
        session_id = desk.open()
        system = {"role": "system", "content": "Rules."}
        desk.append(session_id, system, user(), calling("c1"), result("c1"), assistant())
        found = window_of(session_id, 4)
        assert sequences(found) == [1, 2, 3, 4, 5]
        assert (found.first_sequence, found.last_sequence, found.omitted_before) == (1, 5, 0)

    def test_of_an_empty_session_is_empty(self, desk: Desk) -> None:
        found = window_of(desk.open(), 50)
        assert found == Window([], None, None, 0, 0, truncated=False)

    def test_is_only_the_head_when_the_newest_unit_does_not_fit(self, desk: Desk) -> None:
        session_id = desk.open()
        system = {"role": "system", "content": "Rules."}
        desk.append(session_id, system, user(), calling("c1"), result("c1"))
        found = window_of(session_id, 1)
        assert sequences(found) == [1]
        assert (found.first_sequence, found.omitted_before) == (None, 3)

    def test_brings_the_old_call_of_a_late_result_along(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, calling("old"), *[user()] * 200, result("old"), assistant())
        found = window_of(session_id, 4)
        assert sequences(found) == [1, 201, 202, 203]
        assert found.first_sequence == 201
        assert found.omitted_before == 199

    def test_binds_few_values_however_many_results_a_message_has(self, desk: Desk) -> None:
        session_id, ids = desk.open(), [f"c{number}" for number in range(1200)]
        desk.append(session_id, calling(*ids))
        for start in range(0, len(ids), 600):
            desk.append(session_id, *map(result, ids[start : start + 600]))
        bound: list[int] = []

        def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            bound.append(len(params or ()))
            return execute(sql, params, many, context)

        with connection.execute_wrapper(count):
            assert window_of(session_id, 20).messages == []
        assert 1000 < max(bound) < 4000

    def test_estimates_tokens_by_the_bytes_of_its_messages(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, user("x" * 4000), user("x" * 4000))
        assert window_of(session_id, 1).estimated_tokens in range(1000, 1020)

    def test_ends_at_the_session_that_was_read(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, user(), calling("c1"))
        before = row(session_id)
        desk.append(session_id, result("c1"), user())
        assert sequences(read_window(before, last_n=50)) == [1, 2]

    def test_takes_a_system_item_that_makes_a_call_for_no_head(self, desk: Desk) -> None:
        session_id = desk.open()
        item = {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"}
        desk.append(session_id, {"role": "system", "item": item}, result("c1"), user())
        assert sequences(window_of(session_id, 1)) == [3]
        assert sequences(window_of(session_id, 3)) == [1, 2, 3]


class TestReportPair01:
    """History cut by message count lands between a tool call and its result."""

    TWO_TURNS = (
        {"role": "system", "content": "Rules."},
        user(),
        calling("c1"),
        result("c1"),
        assistant(),
    ) * 2
    SECOND_SHAPE = (
        {"role": "system", "content": "Rules."},
        user(),
        calling("123"),
        result("123"),
        user(),
        assistant(),
    )

    @pytest.mark.parametrize("shape", [TWO_TURNS, SECOND_SHAPE], ids=["two turns", "reduced"])
    def test_never_happens(self, desk: Desk, shape: tuple[dict[str, Any], ...]) -> None:
        session_id = desk.open()
        desk.append(session_id, *shape)
        for last_n in range(1, len(shape) + 2):
            found = window_of(session_id, last_n)
            announced: list[str] = []
            for message in found.messages:
                body = message.body.value
                announced += [call["id"] for call in body.get("tool_calls", ())]
                if message.role == "tool":
                    announced.remove(body["tool_call_id"])
            assert announced == []
            assert found.messages[0].sequence == 1

    def test_keeps_the_newest_three_of_the_second_shape(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, *self.SECOND_SHAPE)
        # The third from the end is the result, and its call would be the fourth.
        assert sequences(window_of(session_id, 3)) == [1, 5, 6]
        assert sequences(window_of(session_id, 4)) == [1, 3, 4, 5, 6]


class TestTheBudget:
    def test_keeps_the_newest_unit_whatever_it_weighs(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, user(), calling("c1"), result("c1", "x" * 5000))
        found = window_of(session_id, 50, budget=100)
        assert sequences(found) == [2, 3]
        assert found.truncated is True

    def test_ends_the_window_before_the_unit_that_exceeds_it(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, user("x" * 900), user("x" * 900), user("x" * 900))
        found = window_of(session_id, 50, budget=2000)
        assert sequences(found) == [2, 3]
        assert (found.truncated, found.omitted_before) == (True, 1)

    def test_is_not_blamed_for_what_the_length_left_out(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, user("x" * 900), user("x" * 900), user("x" * 900))
        assert window_of(session_id, 2, budget=2000).truncated is False

    def test_counts_the_head_first(self, desk: Desk) -> None:
        session_id = desk.open()
        system = {"role": "system", "content": "x" * 900}
        desk.append(session_id, system, user("x" * 900), user("x" * 900))
        found = window_of(session_id, 50, budget=2000)
        assert sequences(found) == [1, 3]
        assert found.truncated is True

    def test_cuts_a_head_that_alone_exceeds_it(self, desk: Desk) -> None:
        session_id = desk.open()
        system = {"role": "system", "content": "x" * 900}
        desk.append(session_id, *[system] * 4, user())
        found = window_of(session_id, 50, budget=2000)
        assert sequences(found) == [1, 2, 5]
        assert found.truncated is True
        assert (found.first_sequence, found.last_sequence) == (5, 5)

    def test_bounds_the_number_of_opening_messages(self, desk: Desk) -> None:
        session_id = desk.open()
        system = {"role": "system", "content": "Rules."}
        desk.append(session_id, *[system] * 6, user())
        with mock.patch.object(module, "MAX_HEAD", 4):
            found = window_of(session_id, 50)
        assert sequences(found) == [1, 2, 3, 4, 7]
        assert found.truncated is True


class TestItsCost:
    def turns(self, desk: Desk, count: int) -> str:
        session_id = desk.open()
        desk.append(session_id, {"role": "system", "content": "Rules."})
        for start in range(0, count, 50):
            turns = range(start, min(start + 50, count))
            desk.append(
                session_id,
                *[
                    message
                    for turn in turns
                    for message in (
                        user(),
                        calling(f"a{turn}", f"b{turn}"),
                        result(f"a{turn}"),
                        result(f"b{turn}"),
                    )
                ],
            )
        return session_id

    @pytest.mark.parametrize("last_n", [5, 6, 7, 8])
    def test_is_the_same_at_ten_messages_and_at_two_thousand(
        self,
        desk: Desk,
        django_assert_num_queries: Any,
        last_n: int,
    ) -> None:
        for count in (3, 500):
            session = row(self.turns(desk, count))
            with django_assert_num_queries(2):  # sizes and pairs, messages
                assert read_window(session, last_n=last_n).messages

    def test_is_one_query_of_a_session_without_calls_and_head(
        self, desk: Desk, django_assert_num_queries: Any
    ) -> None:
        session_id = desk.open()
        desk.append(session_id, *[user()] * 10)
        session = row(session_id)
        with django_assert_num_queries(1):
            read_window(session, last_n=5)

    def test_never_reads_the_text_that_is_kept_for_search(self, desk: Desk) -> None:
        session_id = self.turns(desk, 3)
        with CaptureQueriesContext(connection) as captured:
            window_of(session_id, 5)
        assert not any('"sessions_app_message"."text"' in query["sql"] for query in captured)

    @pytest.mark.skipif(connection.vendor != "sqlite", reason="reads a plan of SQLite")
    def test_is_that_of_its_messages_and_not_of_the_session(self, desk: Desk) -> None:
        """Each step of a plan looks up sequences one by one, or a range that ends at both sides."""
        session = row(self.turns(desk, 20))
        with CaptureQueriesContext(connection) as captured, mock.patch.object(module, "_MARGIN", 0):
            read_window(session, last_n=6)
        assert len(captured) == 3  # survey, what is linked behind it, messages
        for query in captured:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
                steps = [step for *_, step in cursor.fetchall() if re.search("SEARCH|SCAN", step)]
            assert steps
            assert all(_BOUNDED.search(step) for step in steps), steps

    def test_is_bounded_by_its_length_where_every_message_is_linked(
        self, desk: Desk, django_assert_max_num_queries: Any
    ) -> None:
        session_id = desk.open()
        block = {"type": "tool_result", "tool_use_id": "c", "content": "done"}
        desk.append(session_id, calling("c"), *[calling("c") | {"content": [block]}] * 300)
        session = row(session_id)
        with django_assert_max_num_queries(1):
            assert read_window(session, last_n=50).messages == []
        assert len(window_of(session_id, 301).messages) == 301
