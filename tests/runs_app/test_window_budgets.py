"""Windows of at most so many tokens, over random transcripts: for every budget where one changes.

And that every window, however it was cut, is a conversation that each provider's API takes.
"""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import HealthCheck, given, settings

from sessions_app.services.estimating import BYTES_PER_TOKEN
from sessions_app.services.formats import conversation
from sessions_app.services.window import Window
from tests.domain import Desk, assistant, calling, result, user
from tests.providers import PROVIDERS, check, synthetic
from tests.runs_app.test_window import Naive, Transcript, sequences, steps, window_of

pytestmark = pytest.mark.django_db
ALL = 1000


class NaiveBudget(Naive):
    """The rule for tokens, as it is said: newest first, whole units, the newest in any case."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        rows = window_of(session_id, ALL).messages
        self.size_of = {message.sequence: message.size for message in rows}
        assert sorted(self.size_of) == self.live

    def within(self, max_tokens: int) -> list[int]:
        chosen: set[int] = set()
        for unit in self.units():
            if chosen and self.tokens(chosen | unit) > max_tokens:
                break
            chosen |= unit
        return sorted({*self.head, *chosen})

    def tokens(self, chosen: set[int]) -> int:
        return sum(self.size_of[sequence] for sequence in chosen) // BYTES_PER_TOKEN

    def edges(self) -> list[int]:
        """The budgets at which one unit more fits, and those just below."""
        chosen: set[int] = set()
        found = {1}
        for unit in self.units():
            chosen |= unit
            found |= {max(1, self.tokens(chosen) - 1), max(1, self.tokens(chosen))}
        return sorted(found)


def check_in_every_format(found: Window) -> None:
    for api in PROVIDERS:
        said = conversation(found.messages, format=api, answers=found.answers)
        check(api, said.messages, said.system)


class TestAWindow:
    @settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(played=steps)
    def test_is_what_the_rules_say_for_every_budget(
        self, desk: Desk, played: list[tuple[str, int]]
    ) -> None:
        session_id = Transcript(desk, played).session_id
        naive = NaiveBudget(session_id)
        for max_tokens in naive.edges():
            found = window_of(session_id, ALL, max_tokens=max_tokens)
            assert sequences(found) == naive.within(max_tokens)
            assert found.truncated is False
            check_in_every_format(found)

    @settings(
        max_examples=15,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(played=steps)
    def test_of_every_length_is_taken_by_every_api(
        self, desk: Desk, played: list[tuple[str, int]]
    ) -> None:
        transcript = Transcript(desk, played)
        for last_n in range(1, len(Naive(transcript.session_id).live) + 2):
            check_in_every_format(window_of(transcript.session_id, last_n))

    @pytest.mark.parametrize("head", [[], [{"role": "system", "content": "Rules. " * 50}]])
    def test_keeps_the_newest_whatever_it_is(self, desk: Desk, head: list[Any]) -> None:
        session_id = desk.open()
        desk.append(session_id, *head, user(), calling("c1"), result("c1", "x" * 4000))
        found = window_of(session_id, 50, max_tokens=1)
        assert sequences(found)[len(head) :] == [len(head) + 2, len(head) + 3]
        assert found.estimated_tokens > 1000

    @pytest.mark.parametrize("calls", [[], [calling("c1"), result("c1")]], ids=["plain", "calls"])
    def test_is_bound_by_the_narrower_of_both(self, desk: Desk, calls: list[Any]) -> None:
        session_id = desk.open()
        desk.append(session_id, *calls, *[user("x" * 400)] * 5)
        many, few = window_of(session_id, 3), window_of(session_id, 3, max_tokens=230)
        assert (len(many.messages), len(few.messages)) == (3, 2)
        assert few.estimated_tokens <= 230
        assert few.truncated is False
        assert window_of(session_id, 3, max_tokens=230, budget=500).truncated is True

    def test_is_the_one_of_the_picture(self, desk: Desk) -> None:
        """docs/pictures/window.svg."""
        session_id = desk.open()
        rules = {"role": "system", "content": "Rules"}
        first = [rules, user(), calling("A"), user(), calling("B"), result("B")]
        desk.append(session_id, *first, user(), result("A"), calling("C", "D"), result("C"))
        found = window_of(session_id, 5)
        assert sequences(found) == [1, 3, 7, 8, 9, 10]
        assert (found.first_sequence, found.omitted_before) == (7, 4)
        (mark,) = synthetic(conversation(found.messages, format="openai_chat").messages)
        assert mark["tool_call_id"] == "D"

    def test_tells_which_messages_a_result_answers(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, calling("x"), calling("x"), result("x"), result("x"))
        assert window_of(session_id, 50).answers == {3: {2}, 4: {1}}
        desk.sessions.remove_message(session_id=session_id, sequence=3)
        assert window_of(session_id, 50).answers == {4: {1}}


class Words:
    """A tokenizer that counts words, in place of an installed one."""

    def encode_ordinary(self, text: str) -> list[int]:
        return [0] * len(text.split())


class TestATokenizer:
    @pytest.fixture(autouse=True)
    def words(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        library = SimpleNamespace(get_encoding=lambda _name: Words())
        monkeypatch.setitem(sys.modules, "tiktoken", library)
        with override_settings(TOKENIZER="tiktoken:words"):
            yield

    def test_counts_what_is_said_and_four_a_message(self, desk: Desk) -> None:
        session_id = desk.open()
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
        desk.append(
            session_id, user("one two"), calling("c1", arguments="{}"), result("c1", "done")
        )
        assert window_of(session_id, 50).estimated_tokens == (4 + 2) + (4 + 2) + (4 + 1)
        desk.append(session_id, user([picture]))
        assert window_of(session_id, 1).estimated_tokens == 4 + 1000

    @pytest.mark.parametrize("calls", [[], [calling("c1"), result("c1")]], ids=["plain", "calls"])
    def test_judges_instead_of_the_estimate(self, desk: Desk, calls: list[Any]) -> None:
        session_id = desk.open()
        desk.append(session_id, *calls, *[user("long" * 1000 + " word")] * 5)
        found = window_of(session_id, 50, max_tokens=18)  # 4 + 2 each
        assert (len(found.messages), found.estimated_tokens) == (3, 18)
        assert found.truncated is False
        assert found.first_sequence == found.messages[0].sequence

    def test_counts_a_summary_and_not_what_it_covers(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, user("many words in here"), assistant("so many"), user("and now"))
        desk.sessions.compact(session_id=session_id, through_sequence=2, summary="one two three")
        found = window_of(session_id, 50)
        told = [
            each["content"] for each in conversation(found.messages, format=PROVIDERS[0]).messages
        ]
        assert "one two three" in told[0]
        assert told[1:] == ["and now"]
        assert found.estimated_tokens == sum(4 + len(words.split()) for words in told)

    def test_drops_no_part_of_a_unit_and_never_the_newest(self, desk: Desk) -> None:
        session_id = desk.open()
        rules = {"role": "system", "content": "many words in here " * 20}
        desk.append(session_id, rules, user(), calling("c1"), assistant("so"), result("c1"))
        assert sequences(window_of(session_id, 50, max_tokens=1)) == [1, 3, 5]
        assert sequences(window_of(session_id, 50, max_tokens=16)) == [1, 3, 4, 5]
        found = window_of(session_id, 50, max_tokens=16)
        assert (found.first_sequence, found.omitted_before) == (3, 1)
