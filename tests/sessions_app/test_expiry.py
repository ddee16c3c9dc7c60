import pytest

from sessions_app.errors import InvalidRequest, SessionExpired
from sessions_app.models import Session
from sessions_app.services import SessionChanges
from sessions_app.states import SessionStatus, effective_status
from tests.domain import dump, later, row, run_row, session_in, system, user


class TestExpiry:
    def test_is_never_without_a_timeout(self, desk):
        session_id = desk.open()
        desk.append(session_id, user(), now=later(days=4000))
        assert row(session_id).expires_at is None
        assert row(session_id).status == "ACTIVE"

    @pytest.mark.parametrize("seconds", [1, 315_360_000])
    def test_takes_a_timeout_from_a_second_to_ten_years(self, desk, seconds):
        session_id = desk.open(idle_timeout_seconds=seconds)
        assert row(session_id).expires_at == later(seconds)
        assert system().settle(session_id=session_id, now=later(seconds - 0.000001)) == "ACTIVE"
        assert system().settle(session_id=session_id, now=later(seconds)) == "EXPIRED"

    @pytest.mark.parametrize("seconds", [0, -1, 315_360_001, 10**20])
    def test_takes_no_other_timeout(self, desk, seconds):
        session_id = desk.open()
        before = dump()
        for refused in (
            lambda: desk.open(idle_timeout_seconds=seconds),
            lambda: desk.sessions.update(
                session_id=session_id, changes=SessionChanges(idle_timeout_seconds=seconds)
            ),
        ):
            with pytest.raises(InvalidRequest) as caught:
                refused()
            assert list(caught.value.pointers) == ["/idle_timeout_seconds"]
        assert dump() == before

    def test_is_the_active_runs_deadline_if_that_is_later(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        run = desk.run(session_id, lease_seconds=300)
        assert row(session_id).expires_at == later(300)
        desk.runs.heartbeat(run_id=run.run_id, now=later(200))
        assert row(session_id).expires_at == later(500)
        desk.append(session_id, user(), run_id=run.run_id, now=later(400))
        assert row(session_id).expires_at == later(700)
        desk.runs.complete(run_id=run.run_id, now=later(500))
        assert row(session_id).expires_at == later(560)

    def test_by_hand_leaves_no_deadline_in_the_future(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        desk.sessions.expire(session_id=session_id, now=later(10))
        assert row(session_id).expires_at == row(session_id).expired_at == later(10)

    def test_waits_for_a_waiting_run(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        run = desk.run(session_id)
        desk.runs.wait(run_id=run.run_id, reason="approval", now=later(10))
        assert row(session_id).expires_at == later(10, days=7)

    def test_does_not_wait_for_a_queued_run(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        run = desk.run(session_id, start=False)
        assert row(session_id).expires_at == later(60)
        system().settle(session_id=session_id, now=later(100))
        assert (run_row(run).status, run_row(run).ended_at) == ("INTERRUPTED", later(60))

    @pytest.mark.parametrize(("seconds", "status"), [(59.999999, "ACTIVE"), (60, "EXPIRED")])
    def test_is_seen_at_once_on_every_read(self, desk, seconds, status):
        session_id = desk.open(idle_timeout_seconds=60)
        now = later(seconds)
        session = desk.sessions.get(session_id=session_id)
        assert effective_status(session.status, expires_at=session.expires_at, now=now) == status
        assert Session.objects.with_status({status}, now=now).count() == 1
        others = set(SessionStatus) - {status}
        assert not Session.objects.with_status(others, now=now).exists()
        assert Session.objects.due(now=now).exists() == (status == "EXPIRED")

    @pytest.mark.parametrize(("seconds", "refused"), [(59.999999, False), (60, True)])
    def test_refuses_a_write_at_the_deadline_itself(self, desk, seconds, refused):
        session_id = desk.open(idle_timeout_seconds=60)
        try:
            desk.append(session_id, user(), now=later(seconds))
        except SessionExpired:
            assert refused
        else:
            assert not refused

    def test_counts_a_changed_timeout_from_the_last_activity(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        desk.append(session_id, user(), now=later(10))
        change = {"idle_timeout_seconds": 100}
        desk.sessions.update(session_id=session_id, changes=SessionChanges(change), now=later(30))
        assert row(session_id).expires_at == later(110)

    def test_may_be_brought_into_the_past_by_a_changed_timeout(self, desk):
        session_id = desk.open()
        change = {"idle_timeout_seconds": 5}
        session = desk.sessions.update(
            session_id=session_id, changes=SessionChanges(change), now=later(30)
        )
        assert session.expires_at == later(5)
        assert system().settle(session_id=session_id, now=later(30)) == "EXPIRED"
        assert row(session_id).expired_at == later(5)

    def test_ends_with_the_timeout(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        changes = SessionChanges(idle_timeout_seconds=None)
        desk.sessions.update(session_id=session_id, changes=changes)
        assert row(session_id).expires_at is None

    def test_counts_a_changed_timeout_with_the_active_run(self, desk):
        session_id = desk.open()
        desk.run(session_id, lease_seconds=300)
        changes = SessionChanges(idle_timeout_seconds=60)
        desk.sessions.update(session_id=session_id, changes=changes)
        assert row(session_id).expires_at == later(300)

    @pytest.mark.parametrize("state", ["CLOSED", "DELETED"])
    def test_has_no_deadline_once_the_session_left_active(self, desk, state):
        session_id = session_in(desk, state)
        assert row(session_id).expires_at is None
        assert not Session.objects.due(now=later(days=4000)).exists()
