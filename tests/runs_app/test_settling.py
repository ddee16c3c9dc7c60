"""Every run in a database that was written by other hands is ended by the sweep, too."""

from itertools import product

import pytest
from django.db import IntegrityError, transaction

from runs_app.models import Run
from runs_app.services.sweep import due, sweep
from runs_app.states import STARTED, UNFINISHED, RunStatus
from sessions_app.models import Session
from tests.domain import NOON, dump, later, moves, row, run_row, user

TIMES = ("lease_expires_at", "heartbeat_at", "started_at", "ended_at")
COMBINATIONS = [
    (status, dict(zip(TIMES, present, strict=True)))
    for status, present in product(RunStatus, product([True, False], repeat=len(TIMES)))
]


def insert(session_id, status, present, *, run_id="run_raw", **more):
    times = {name: NOON if there else None for name, there in present.items()}
    return Run.objects.create(
        run_id=run_id,
        session_id=session_id,
        status=status,
        lease_seconds=300,
        created_at=NOON,
        session_version=1,
        **times,
        **more,
    )


def name_of(combination):
    status, present = combination
    return "-".join([status, *(name for name, there in present.items() if there)])


class TestRunOfOtherHands:
    @pytest.mark.parametrize("combination", COMBINATIONS, ids=name_of)
    @pytest.mark.parametrize("state", ["ACTIVE", "CLOSED"])
    def test_is_refused_by_the_database_or_ended_by_the_sweep(self, desk, combination, state):
        """No combination of status and null columns escapes: here the session knows of none."""
        status, present = combination
        session_id = desk.open()
        if state == "CLOSED":
            desk.sessions.close(session_id=session_id)
        try:
            with transaction.atomic():
                run = insert(session_id, status, present)
        except IntegrityError:
            return
        assert sweep(now=later(1)).settled == (status in UNFINISHED)
        ended = run_row(run)
        assert ended.status not in UNFINISHED
        if status in UNFINISHED:
            assert (ended.status, ended.ended_at) == ("INTERRUPTED", NOON)
            assert moves(session_id, "run")[-1] == (status, "INTERRUPTED", "system")
        assert due(now=later(1)).settled == 0
        before = dump()
        sweep(now=later(1))
        assert dump() == before

    @pytest.mark.parametrize("status", sorted(UNFINISHED))
    def test_needs_a_deadline(self, desk, status):
        present = dict.fromkeys(TIMES, False) | {"started_at": status in STARTED}
        with pytest.raises(IntegrityError), transaction.atomic():
            insert(desk.open(), status, present)

    @pytest.mark.parametrize("status", ["CANCELLING", "QUEUED", ""])
    def test_of_a_status_that_nobody_knows_needs_an_end(self, desk, status):
        with pytest.raises(IntegrityError), transaction.atomic():
            insert(desk.open(), status, dict.fromkeys(TIMES, True) | {"ended_at": False})

    def test_that_is_fresh_is_left_alone(self, desk):
        session_id = desk.open()
        present = dict.fromkeys(TIMES, True) | {"ended_at": False}
        run = insert(session_id, "RUNNING", present)
        Run.objects.update(lease_expires_at=later(100))
        before = dump()
        assert sweep(now=later(99)).settled == 0
        assert dump() == before
        assert sweep(now=later(100)).settled == 1
        assert run_row(run).status == "INTERRUPTED"

    def test_that_the_session_half_remembers_is_ended(self, desk):
        """The session names an active run and has lost its deadline."""
        session_id = desk.open()
        run = desk.run(session_id, lease_seconds=10)
        Session.objects.update(active_run_deadline=None)
        assert sweep(now=later(10)).settled == 1
        assert run_row(run).status == "INTERRUPTED"
        assert row(session_id).active_run_id is None
        assert desk.run(session_id, now=later(11)).status == "RUNNING"

    def test_whose_session_renewed_it_is_no_stray(self, desk):
        """The run's own row is old while it is active; the session's is what counts."""
        session_id = desk.open()
        run = desk.run(session_id, lease_seconds=10)
        for second in range(5, 100, 5):
            desk.append(session_id, user(), run_id=run.run_id, now=later(second))
        before = dump()
        assert due(now=later(104)).settled == sweep(now=later(104)).settled == 0
        assert dump() == before
