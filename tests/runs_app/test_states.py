from datetime import timedelta
from itertools import product

import pytest

from runs_app.states import (
    FINAL,
    RUN_TRANSITIONS,
    STARTED,
    UNFINISHED,
    RunStatus,
    effective_status,
)
from tests.domain import NOON

ARROWS = {
    ("PENDING", "RUNNING"),
    ("PENDING", "COMPLETED"),
    ("PENDING", "FAILED"),
    ("PENDING", "CANCELLED"),
    ("PENDING", "INTERRUPTED"),
    ("RUNNING", "WAITING"),
    ("RUNNING", "COMPLETED"),
    ("RUNNING", "FAILED"),
    ("RUNNING", "CANCELLED"),
    ("RUNNING", "INTERRUPTED"),
    ("WAITING", "RUNNING"),
    ("WAITING", "COMPLETED"),
    ("WAITING", "FAILED"),
    ("WAITING", "CANCELLED"),
    ("WAITING", "INTERRUPTED"),
    ("INTERRUPTED", "RUNNING"),
    ("INTERRUPTED", "CANCELLED"),
    ("INTERRUPTED", "FAILED"),
}


class TestRunTransitions:
    @pytest.mark.parametrize(("origin", "to"), [*product(RunStatus, repeat=2)])
    def test_are_those_of_the_lifecycle_and_no_others(self, origin, to):
        assert (to in RUN_TRANSITIONS[origin]) == ((origin, to) in ARROWS)

    @pytest.mark.parametrize("final", sorted(FINAL))
    def test_never_leave_a_final_status(self, final):
        assert not RUN_TRANSITIONS[final]

    def test_divide_the_statuses(self):
        assert UNFINISHED | FINAL | {RunStatus.INTERRUPTED} == set(RunStatus)
        assert {RunStatus.PENDING} == UNFINISHED - STARTED
        assert RunStatus.INTERRUPTED not in UNFINISHED | FINAL


class TestEffectiveStatus:
    @pytest.mark.parametrize("status", sorted(UNFINISHED))
    @pytest.mark.parametrize(("microseconds", "lapsed"), [(-1, True), (0, True), (1, False)])
    def test_is_interrupted_at_the_deadline_itself(self, status, microseconds, lapsed):
        deadline = NOON + timedelta(microseconds=microseconds)
        expected = "INTERRUPTED" if lapsed else status
        assert effective_status(status, deadline=deadline, now=NOON) == expected

    @pytest.mark.parametrize("status", sorted(set(RunStatus) - UNFINISHED))
    def test_is_the_stored_one_of_a_run_that_ended(self, status):
        past = NOON - timedelta(days=1)
        assert effective_status(status, deadline=past, now=NOON) == status
