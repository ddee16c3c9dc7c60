import inspect
import sys
from contextlib import contextmanager
from copy import copy
from datetime import timedelta
from typing import Any

import pytest

from runs_app.models import Run
from runs_app.states import RunStatus, effective_status
from sessions_app.errors import InvalidRequest, InvalidTransition, RunEnded
from sessions_app.ids import new_id
from tests.domain import call_row, calling, calls_of, dump, later, moves, row, run_row, system

ENDS: dict[str, Any] = {
    "complete": ({}, "COMPLETED", "CANCELLED"),
    "fail": ({"error": {}}, "FAILED", "CANCELLED"),
    "cancel": ({}, "CANCELLED", "CANCELLED"),
}


def family(desk, **more):
    session_id = desk.open()
    parent = desk.run(session_id, **more)
    child = desk.run(session_id, parent_run_id=parent.run_id)
    grandchild = desk.run(session_id, parent_run_id=child.run_id)
    return session_id, parent, child, grandchild


def chain_below(run, *, levels):
    """Runs like this one, each the child of the one before."""
    for _ in range(levels):
        run = copy(run)
        run.parent_run_id, run.run_id = run.run_id, new_id("run")
        yield run


def shown(desk, run, moment):
    """As a read shows it, and as every filter finds it."""
    found = desk.runs.get(run_id=run.run_id)
    status = effective_status(found.status, deadline=found.deadline, now=moment)
    mine = Run.objects.effective().filter(pk=run.run_id)
    assert {each for each in RunStatus if mine.with_status({each}, now=moment)} == {status}
    assert mine.lapsed(now=moment).exists() == (status != run_row(run).status)
    return status


@contextmanager
def stack_of(frames):
    """So many further calls deep, and no deeper."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


class TestChildRun:
    def test_does_not_count_for_one_started_run_a_session(self, desk):
        session_id, parent, child, grandchild = family(desk)
        assert {run_row(run).status for run in (parent, child, grandchild)} == {"RUNNING"}
        assert row(session_id).active_run_id == parent.run_id
        assert desk.run(session_id, parent_run_id=parent.run_id).status == "RUNNING"

    @pytest.mark.parametrize("if_active", ["reject", "cancel", "queue"])
    def test_starts_beside_its_parent_whatever_is_asked(self, desk, if_active):
        session_id, parent, *_ = family(desk)
        child = desk.run(session_id, parent_run_id=parent.run_id, if_active=if_active)
        assert (child.status, run_row(parent).status) == ("RUNNING", "RUNNING")

    @pytest.mark.parametrize("status", ["PENDING", "RUNNING", "WAITING"])
    def test_may_have_any_unfinished_parent(self, desk, status):
        session_id = desk.open()
        parent = desk.run(session_id, start=status != "PENDING")
        if status == "WAITING":
            desk.runs.wait(run_id=parent.run_id, reason="w")
        assert desk.run(session_id, parent_run_id=parent.run_id).status == "RUNNING"

    @pytest.mark.parametrize("name", ENDS)
    def test_has_no_parent_that_ended(self, desk, name):
        session_id = desk.open()
        parent = desk.run(session_id)
        getattr(desk.runs, name)(run_id=parent.run_id, **ENDS[name][0])
        before = dump()
        with pytest.raises(InvalidTransition) as caught:
            desk.run(session_id, parent_run_id=parent.run_id)
        assert caught.value.data["current_status"] == ENDS[name][1]
        assert dump() == before

    def test_is_at_most_two_levels_below_a_top_level_run(self, desk):
        session_id, *_, grandchild = family(desk)
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            desk.run(session_id, parent_run_id=grandchild.run_id)
        assert list(caught.value.pointers) == ["/parent_run_id"]
        assert dump() == before

    def test_has_no_parent_that_lapsed(self, desk):
        session_id = desk.open()
        parent = desk.run(session_id, lease_seconds=10)
        before = dump()
        with pytest.raises(InvalidTransition):
            desk.run(session_id, parent_run_id=parent.run_id, now=later(10))
        assert dump() == before

    def test_ends_by_itself_and_leaves_its_parent_running(self, desk):
        session_id, parent, child, grandchild = family(desk)
        desk.runs.complete(run_id=child.run_id)
        assert [run_row(run).status for run in (parent, child, grandchild)] == [
            "RUNNING",
            "COMPLETED",
            "CANCELLED",
        ]
        assert row(session_id).active_run_id == parent.run_id

    def test_is_not_taken_for_the_active_run(self, desk):
        session_id, parent, child, _ = family(desk)
        desk.runs.wait(run_id=child.run_id, reason="w")
        session = row(session_id)
        assert (session.active_run_id, session.active_run_attempt) == (parent.run_id, 1)
        assert session.active_run_deadline == later(300)

    def test_may_be_started_and_resumed_only_while_its_parent_is_unfinished(self, desk):
        session_id, parent, *_ = family(desk)
        queued = desk.run(session_id, parent_run_id=parent.run_id, start=False)
        lapsing = desk.run(session_id, parent_run_id=parent.run_id, lease_seconds=10)
        assert desk.runs.start(run_id=queued.run_id).status == "RUNNING"
        system().settle(session_id=session_id, now=later(10))
        assert desk.runs.resume(run_id=lapsing.run_id, now=later(11)).attempt == 2
        system().settle(session_id=session_id, now=later(21))
        desk.runs.complete(run_id=parent.run_id, now=later(22))
        with pytest.raises(InvalidTransition):
            desk.runs.resume(run_id=lapsing.run_id, now=later(23))


class TestEndOfTheParent:
    @pytest.mark.parametrize(("name", "more", "own", "childs"), [(n, *e) for n, e in ENDS.items()])
    def test_ends_its_descendants_in_the_same_change(self, desk, name, more, own, childs):
        session_id, parent, child, grandchild = family(desk)
        desk.append(session_id, calling("c1"), run_id=grandchild.run_id)
        version = row(session_id).version
        getattr(desk.runs, name)(run_id=parent.run_id, now=later(5), **more)
        assert run_row(parent).status == own
        for run in (child, grandchild):
            ended = run_row(run)
            assert (ended.status, ended.ended_at) == (childs, later(5))
            assert ended.cancel_reason == "the parent run ended"
        assert row(session_id).version == version + 1
        assert row(session_id).other_run_deadline is None
        assert call_row(calls_of(session_id)[0]).status == "CANCELLED"
        # Descendants first: no event shows a run that outlived its parent.
        subjects = row(session_id).events.order_by("-sequence").values_list("subject_id", flat=True)
        assert [*subjects[:3]] == [parent.run_id, child.run_id, grandchild.run_id]

    def test_ends_a_chain_of_them_that_is_longer_than_the_stack(self, desk):
        """No manager makes one; it is found in rows that other hands wrote."""
        session_id, top, _, grandchild = family(desk)
        chain = list(chain_below(grandchild, levels=200))
        Run.objects.bulk_create(chain)
        with stack_of(150):
            desk.runs.cancel(run_id=top.run_id)
        assert run_row(chain[-1]).status == "CANCELLED"
        assert row(session_id).other_run_deadline is None

    def test_by_its_deadline_interrupts_them_then(self, desk):
        session_id, parent, child, grandchild = family(desk, lease_seconds=100)
        system().settle(session_id=session_id, now=later(1000))
        for run in (parent, child, grandchild):
            assert (run_row(run).status, run_row(run).ended_at) == ("INTERRUPTED", later(100))
        assert {move[2] for move in moves(session_id, "run")[-3:]} == {"system"}

    def test_by_its_deadline_is_seen_on_the_child_at_once(self, desk):
        """Those below write on, the top does not: they end together, and show it together."""
        session_id, *runs = family(desk, lease_seconds=100)
        for run in runs[1:]:
            desk.runs.heartbeat(run_id=run.run_id, now=later(99))
        assert [shown(desk, run, later(99.999999)) for run in runs] == ["RUNNING"] * 3
        assert [shown(desk, run, later(100)) for run in runs] == ["INTERRUPTED"] * 3
        system().settle(session_id=session_id, now=later(100))
        assert [run_row(run).ended_at for run in runs] == [later(100)] * 3

    @pytest.mark.parametrize("top", ["PENDING", "WAITING"])
    def test_by_any_kind_of_deadline_is_seen_below(self, desk, top):
        session_id, *runs = family(desk, start=top != "PENDING")
        if top == "WAITING":
            desk.runs.wait(run_id=runs[0].run_id, reason="w", timeout_seconds=100)
        end = later(hours=24) if top == "PENDING" else later(100)
        for run in runs[1:]:
            desk.runs.wait(run_id=run.run_id, reason="w", timeout_seconds=200_000)
        for run, before in zip(runs, [top, "WAITING", "WAITING"], strict=True):
            assert shown(desk, run, end - timedelta(microseconds=1)) == before
            assert shown(desk, run, end) == "INTERRUPTED"
        system().settle(session_id=session_id, now=end)
        assert [run_row(run).ended_at for run in runs] == [end] * 3

    def test_between_two_is_seen_below_it_only(self, desk):
        session_id = desk.open()
        top = desk.run(session_id, lease_seconds=1000)
        child = desk.run(session_id, parent_run_id=top.run_id, lease_seconds=50)
        grandchild = desk.run(session_id, parent_run_id=child.run_id, lease_seconds=500)
        runs = (top, child, grandchild)
        expected = ["RUNNING", "INTERRUPTED", "INTERRUPTED"]
        assert [shown(desk, run, later(50)) for run in runs] == expected
        system().settle(session_id=session_id, now=later(60))
        assert [run_row(run).status for run in runs] == expected
        assert [run_row(run).ended_at for run in runs] == [None, later(50), later(50)]

    def test_by_the_sessions_expiry_is_seen_below(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        runs = [desk.run(session_id, start=False)]
        for _ in range(2):
            below = desk.run(session_id, parent_run_id=runs[-1].run_id, lease_seconds=500)
            runs.append(below)
        assert [shown(desk, run, later(60)) for run in runs] == ["INTERRUPTED"] * 3
        system().settle(session_id=session_id, now=later(60))
        assert [run_row(run).ended_at for run in runs] == [later(60)] * 3

    def test_leaves_a_child_that_lapsed_earlier_its_own_deadline(self, desk):
        session_id = desk.open()
        parent = desk.run(session_id, lease_seconds=100)
        child = desk.run(session_id, parent_run_id=parent.run_id, lease_seconds=20)
        system().settle(session_id=session_id, now=later(1000))
        assert (run_row(child).ended_at, run_row(parent).ended_at) == (later(20), later(100))

    def test_leaves_alone_a_child_that_ended_before(self, desk):
        _, parent, child, _ = family(desk)
        desk.runs.complete(run_id=child.run_id, now=later(5))
        desk.runs.fail(run_id=parent.run_id, error={}, now=later(9))
        assert (run_row(child).status, run_row(child).ended_at) == ("COMPLETED", later(5))
        with pytest.raises(RunEnded):
            desk.runs.cancel(run_id=child.run_id)

    @pytest.mark.parametrize(
        ("name", "status"), [("close", "CANCELLED"), ("expire", "INTERRUPTED")]
    )
    def test_with_its_session_ends_them_too(self, desk, name, status):
        session_id, *runs = family(desk)
        getattr(desk.sessions, name)(session_id=session_id)
        assert {run_row(run).status for run in runs} == {status}
