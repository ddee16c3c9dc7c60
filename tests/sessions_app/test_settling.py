import pytest

from sessions_app.errors import SessionExpired
from tests.domain import dump, later, moves, row, run_row, session_in, system, user


class TestSettlement:
    def lapsed(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        run = desk.run(session_id, lease_seconds=100)
        return session_id, run

    def test_happens_in_the_sweep_with_the_deadlines_as_times(self, desk):
        session_id, run = self.lapsed(desk)
        version = row(session_id).version
        assert system().settle(session_id=session_id, now=later(500)) == "EXPIRED"
        assert (row(session_id).expired_at, run_row(run).ended_at) == (later(100), later(100))
        assert moves(session_id)[-2:] == [
            ("RUNNING", "INTERRUPTED", "system"),
            ("ACTIVE", "EXPIRED", "system"),
        ]
        assert row(session_id).version == version + 1
        assert row(session_id).updated_at == later(500)

    def test_happens_once(self, desk):
        session_id, _ = self.lapsed(desk)
        system().settle(session_id=session_id, now=later(500))
        before = dump()
        system().settle(session_id=session_id, now=later(900))
        assert dump() == before

    def test_does_nothing_before_its_time(self, desk):
        session_id, _ = self.lapsed(desk)
        before = dump()
        assert system().settle(session_id=session_id, now=later(99)) == "ACTIVE"
        assert dump() == before

    def test_happens_in_a_resume_which_then_writes_its_own_event(self, desk):
        session_id, run = self.lapsed(desk)
        session, origin = desk.sessions.resume(session_id=session_id, now=later(500))
        assert (session.status, origin) == ("ACTIVE", "EXPIRED")
        assert moves(session_id)[-3:] == [
            ("RUNNING", "INTERRUPTED", "system"),
            ("ACTIVE", "EXPIRED", "system"),
            ("EXPIRED", "ACTIVE", "account"),
        ]
        assert (session.expires_at, session.expired_at) == (later(560), None)
        assert run_row(run).ended_at == later(100)

    def test_happens_in_a_delete(self, desk):
        session_id, _ = self.lapsed(desk)
        desk.sessions.delete(session_id=session_id, now=later(500))
        assert moves(session_id, "session")[-2:] == [
            ("ACTIVE", "EXPIRED", "system"),
            ("EXPIRED", "DELETED", "account"),
        ]

    def test_happens_in_an_expire_that_comes_too_late(self, desk):
        session_id, _ = self.lapsed(desk)
        session, changed = desk.sessions.expire(session_id=session_id, now=later(500))
        assert (session.status, changed) == ("EXPIRED", False)
        assert row(session_id).expired_at == later(100)
        assert moves(session_id, "session")[-1] == ("ACTIVE", "EXPIRED", "system")

    def test_of_a_run_happens_in_the_next_write(self, desk):
        session_id = desk.open()
        run = desk.run(session_id, lease_seconds=10)
        version = row(session_id).version
        desk.append(session_id, user(), now=later(50))
        assert (run_row(run).status, run_row(run).ended_at) == ("INTERRUPTED", later(10))
        assert row(session_id).version == version + 1
        assert row(session_id).active_run_id is None

    def test_is_not_kept_by_a_write_that_is_refused(self, desk):
        session_id, _ = self.lapsed(desk)
        before = dump()
        with pytest.raises(SessionExpired):
            desk.append(session_id, user(), now=later(500))
        assert dump() == before

    def test_in_one_transaction_ends_runs_before_the_session(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        early = desk.run(session_id, lease_seconds=10)
        child = desk.run(session_id, parent_run_id=early.run_id, lease_seconds=500)
        queued = desk.run(session_id, start=False)
        system().settle(session_id=session_id, now=later(1000))
        assert [run_row(run).ended_at for run in (early, child, queued)] == [
            later(10),
            later(10),
            later(60),
        ]
        assert row(session_id).expired_at == later(60)
        assert row(session_id).other_run_deadline is None

    def test_of_what_is_not_active_is_nothing(self, desk):
        for state in ("CLOSED", "EXPIRED"):
            session_id = session_in(desk, state)
            before = dump()
            assert system().settle(session_id=session_id, now=later(days=4000)) == state
            assert dump() == before
