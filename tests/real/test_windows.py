"""Every window of a recorded session, by length and by tokens, in all four formats.

`sessions/` holds one of our own with every odd shape; those of real agents are taken from
`../shared/data/sessions` where that exists.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from sessions_app.services.window import Window
from tests.domain import Desk, desk
from tests.runs_app.test_window import sequences, window_of
from tests.runs_app.test_window_budgets import ALL, NaiveBudget, check_in_every_format

__all__ = ["desk"]

OWN = sorted((Path(__file__).parent / "sessions").glob("*.json"))
_ABSENT = pytest.param(
    None, marks=pytest.mark.skip("there are no recorded sessions beside the repository")
)
_SHARED = Path(__file__).parents[3] / "shared" / "data" / "sessions"
RECORDED: list[Any] = sorted(_SHARED.glob("*.json")) or [_ABSENT]

pytestmark = pytest.mark.django_db


@pytest.fixture(params=[*OWN, *RECORDED], ids=lambda file: file.stem if file else "recorded")
def recording(request: pytest.FixtureRequest, desk: Desk) -> str:
    session_id = desk.open()
    desk.append(session_id, *json.loads(request.param.read_text(encoding="utf-8"))["messages"])
    return session_id


def check_window(naive: NaiveBudget, found: Window, expected: list[int]) -> None:
    """As the rules say: the head stays, the newest is kept, and no call is parted from a result."""
    held = sequences(found)
    assert held == expected
    assert held[: len(naive.head)] == naive.head
    assert all((call in held) == (answer in held) for call, answer in naive.pairs)
    check_in_every_format(found)


class TestEveryWindow:
    def test_by_length_is_whole_and_taken_by_every_api(self, recording: str) -> None:
        naive = NaiveBudget(recording)
        for last_n in range(1, len(naive.live) + 2):
            check_window(naive, window_of(recording, last_n), naive.window(last_n))
        assert naive.window(last_n) == naive.live

    def test_by_tokens_is_whole_and_taken_by_every_api(self, recording: str) -> None:
        naive = NaiveBudget(recording)
        for max_tokens in naive.edges():
            found = window_of(recording, ALL, max_tokens=max_tokens)
            check_window(naive, found, naive.within(max_tokens))
            assert sequences(found)[-1] == naive.live[-1]
        assert naive.within(max_tokens) == naive.live


class TestTheEstimate:
    """What docs/RESUMING.md says of its error; with requirements-tokenizer.txt installed."""

    @pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
    @pytest.mark.skipif(RECORDED == [_ABSENT], reason="there are no recorded sessions")
    def test_is_a_little_more_than_the_tokens_of_recordings(
        self, desk: Desk, encoding: str
    ) -> None:
        pytest.importorskip("bpe_openai", reason="the optional tokenizer is not installed")
        estimated, counted = 0, 0
        for file in RECORDED:
            session_id = desk.open()
            desk.append(session_id, *json.loads(file.read_text(encoding="utf-8"))["messages"])
            estimated += window_of(session_id, ALL).estimated_tokens
            with override_settings(TOKENIZER=f"bpe_openai:{encoding}"):
                counted += window_of(session_id, ALL).estimated_tokens
        assert 1 < estimated / counted < 1.15
