"""The waterfall's geometry, and how durations are said."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from runs_app.console.errors import fault_of
from runs_app.pages.waterfall import Scale, idle, phases
from sessions_app.console.durations import duration
from tests.domain import NOON, later


def message(seconds):
    return SimpleNamespace(created_at=later(seconds))


def event(seconds, status):
    return SimpleNamespace(created_at=later(seconds), to_status=status)


class TestIdle:
    def test_is_where_no_call_was_open_and_no_message_came(self):
        busy = [(later(10), later(40)), (later(20), later(30))]
        found = idle((NOON, later(100)), busy, [message(1), message(60)])
        assert found == [
            (later(1), later(10)),
            (later(40), later(60)),
            (later(60), later(100)),
        ]

    def test_is_no_short_pause(self):
        assert idle((NOON, later(5)), [], [message(1), message(2), message(3.5)]) == []

    def test_ends_with_the_run(self):
        assert idle((NOON, later(10)), [(later(20), later(30))], []) == [(NOON, later(10))]


class TestPhases:
    def test_are_what_the_events_say(self):
        events = [event(0, "PENDING"), event(5, "RUNNING"), event(20, "WAITING")]
        assert list(phases([*events, event(30, "FAILED")], (NOON, later(30)))) == [
            ("pending", (NOON, later(5))),
            ("running", (later(5), later(20))),
            ("waiting", (later(20), later(30))),
        ]

    def test_of_a_run_that_goes_on_last_until_now(self):
        found = list(phases([event(0, "RUNNING")], (NOON, later(7))))
        assert found == [("running", (NOON, later(7)))]


class TestTheScale:
    def test_places_bars_in_percent(self):
        bar = Scale(NOON, later(200)).bar("failed", (later(50), later(100)))
        assert (bar.x, bar.width) == ("25.000%", "25.000%")

    @pytest.mark.parametrize("seconds", [0, 0.2, 1, 7, 59, 61, 3600, 86_400 * 400])
    def test_has_a_few_ticks(self, seconds):
        ticks = Scale(NOON, later(seconds)).ticks()
        assert 2 <= len(ticks) <= 7


class TestDuration:
    @pytest.mark.parametrize(
        ("seconds", "said"),
        [
            (0, "0 s"),
            (0.23, "230 ms"),
            (4.27, "4.2 s"),
            (60, "1 min"),
            (187, "3 min 7 s"),
            (7500, "2 h 5 min"),
            (86_400 * 4 + 3 * 3600, "4 d 3 h"),
            (-3, "0 s"),
        ],
    )
    def test_is_said_in_two_units_at_most(self, seconds, said):
        assert duration(timedelta(seconds=seconds)) == said


class TestAFault:
    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ('{"type":"t","message":"m"}', ("t", "m")),
            ('{"message":"m"}', ("", "m")),
            ('{"type":{"a":1}}', ("", '{"type":{"a":1}}')),
            ('"word"', ("", "word")),
            ('{"type":"cut', ("", '{"type":"cut')),
        ],
    )
    def test_is_read_from_an_error_of_any_shape(self, text, fault):
        assert fault_of(text) == fault

    def test_of_no_error_is_none(self):
        assert fault_of(None) is None
