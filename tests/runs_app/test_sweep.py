from unittest.mock import Mock

import pytest
from django.db import IntegrityError, OperationalError, connection

from runs_app.models import Run
from runs_app.services.sweep import Swept, due, sweep
from sessions_app.models import IdempotencyRecord, Message, Session
from sessions_app.services import SessionManager
from tests.domain import NOON, Desk, calling, calls_of, dump, later, moves, row, run_row, user


def record(desk, digest, at):
    return IdempotencyRecord.objects.create(
        digest=digest, fingerprint="f", account=desk.user, created_at=at
    )


def failing_for(victim, name):
    """The manager's method, but for one session."""
    method = getattr(SessionManager, name)

    def partly(self, *, session_id, **given):
        if session_id == victim:
            raise RecursionError("too deep")
        return method(self, session_id=session_id, **given)

    return partly


class TestSweep:
    def test_of_nothing_does_nothing(self, desk):
        desk.open()
        desk.run(desk.open(idle_timeout_seconds=1000))
        before = dump()
        assert sweep(now=later(299)) == Swept() == due(now=later(299))
        assert dump() == before

    def test_interrupts_expires_purges_and_forgets(self, desk):
        expiring = desk.open(idle_timeout_seconds=60)
        busy = desk.open()
        run = desk.run(busy, lease_seconds=10)
        queued = desk.run(busy, start=False, lease_seconds=10)
        deleted = desk.open()
        desk.append(deleted, *[user()] * 5)
        desk.sessions.delete(session_id=deleted)
        record(desk, "old", NOON)
        record(desk, "new", later(hours=2))
        moment = later(hours=24, seconds=1)
        expected = Swept(settled=2, purged=1, idempotency_records=1)
        assert due(now=moment) == expected
        assert sweep(now=moment, batch=2) == expected
        assert (row(expiring).status, row(expiring).expired_at) == ("EXPIRED", later(60))
        assert (run_row(run).status, run_row(run).ended_at) == ("INTERRUPTED", later(10))
        assert run_row(queued).ended_at == later(hours=24)
        assert not Message.objects.filter(session=deleted).exists()
        assert row(deleted).purged_at is not None
        assert [*IdempotencyRecord.objects.values_list("pk", flat=True)] == ["new"]

    def test_twice_is_the_same_as_once(self, desk):
        for _ in range(3):
            desk.run(desk.open(idle_timeout_seconds=10), lease_seconds=10)
        desk.sessions.delete(session_id=desk.open())
        assert sweep(now=later(50)) == Swept(settled=3, purged=1)
        before = dump()
        assert sweep(now=later(500)) == Swept()
        assert dump() == before

    @pytest.mark.parametrize("batch", [1, 2, 3, 7, 100])
    def test_reaches_all_in_batches_of_any_size(self, desk, batch):
        ids = [desk.open(idle_timeout_seconds=10) for _ in range(7)]
        for session_id in ids[:3]:
            desk.append(session_id, *[user()] * 3)
            desk.sessions.delete(session_id=session_id)
        assert sweep(now=later(50), batch=batch) == Swept(settled=4, purged=3)
        assert Session.objects.awaiting_purge().count() == 0

    def test_writes_what_a_settling_write_would_have_written(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        run = desk.run(session_id, lease_seconds=100)
        sweep(now=later(1000))
        assert moves(session_id)[-2:] == [
            ("RUNNING", "INTERRUPTED", "system"),
            ("ACTIVE", "EXPIRED", "system"),
        ]
        assert run_row(run).ended_at == row(session_id).expired_at == later(100)
        assert row(session_id).events.last().actor_id == ""

    def test_fails_a_dead_run_and_frees_its_session_at_once(self, desk):
        session_id = desk.open()
        dead = desk.run(session_id, lease_seconds=10)
        desk.append(session_id, calling("c1"), run_id=dead.run_id)
        sweep(now=later(50))
        assert desk.run(session_id, now=later(51)).status == "RUNNING"
        assert calls_of(session_id)[0].status == "PENDING"
        sweep(now=later(52))
        assert row(session_id).active_run_id is not None

    @pytest.mark.parametrize("state", ["WAITING", "PENDING"])
    def test_ends_what_waits_for_ever(self, desk, state):
        session_id = desk.open()
        run = desk.run(session_id, start=state != "PENDING")
        if state == "WAITING":
            desk.runs.wait(run_id=run.run_id, reason="approval")
        moment = later(days=7) if state == "WAITING" else later(hours=24)
        assert sweep(now=moment.replace(microsecond=0) - (later(1) - NOON)) == Swept()
        assert sweep(now=moment) == Swept(settled=1)
        assert (run_row(run).status, run_row(run).ended_at) == ("INTERRUPTED", moment)

    def test_covers_every_account(self, desk):
        other = Desk()
        for one in (desk, other):
            one.open(idle_timeout_seconds=10)
        assert sweep(now=later(50)).settled == 2

    def test_passes_by_a_session_that_was_deleted_or_settled_meanwhile(self, desk, monkeypatch):
        """Several sweeps at once: each looks again under the lock."""
        ids = [desk.open(idle_timeout_seconds=10) for _ in range(3)]
        settle = SessionManager.settle

        def late(self, *, session_id, now=None):
            if session_id == ids[0]:
                desk.sessions.delete(session_id=ids[1], now=now)
                desk.sessions.resume(session_id=ids[2], now=now)
            return settle(self, session_id=session_id, now=now)

        monkeypatch.setattr(SessionManager, "settle", late)
        sweep(now=later(50))
        assert [row(session_id).status for session_id in ids] == ["EXPIRED", "DELETED", "ACTIVE"]

    def test_goes_on_past_a_session_that_it_cannot_settle(self, desk, monkeypatch, caplog):
        """One account's session must not keep those of all others from being swept."""
        ids = [desk.open(idle_timeout_seconds=10) for _ in range(3)]
        gone = [desk.open() for _ in range(2)]
        for session_id in gone:
            desk.sessions.delete(session_id=session_id)
        record(desk, "old", NOON)
        for name, victim in (("settle", ids[1]), ("purge", gone[0])):
            monkeypatch.setattr(SessionManager, name, failing_for(victim, name))
        swept = sweep(now=later(hours=25))
        assert swept == Swept(settled=2, purged=1, idempotency_records=1, failed=2)
        assert [row(session_id).status for session_id in ids] == ["EXPIRED", "ACTIVE", "EXPIRED"]
        assert ids[1] in caplog.text
        assert gone[0] in caplog.text

    def test_says_nothing_of_the_rows_that_a_database_refused(self, desk, monkeypatch, caplog):
        session_id = desk.open(idle_timeout_seconds=10)
        refusal = IntegrityError("Failing row contains (what somebody wrote)")
        monkeypatch.setattr(SessionManager, "settle", Mock(side_effect=refusal))
        assert sweep(now=later(hours=25)) == Swept(failed=1)
        assert f"leaves {session_id} for later: IntegrityError" in caplog.text
        assert "wrote" not in caplog.text

    def test_stops_where_the_database_is_gone(self, desk, monkeypatch):
        desk.open(idle_timeout_seconds=10)
        gone = OperationalError("connection refused")
        monkeypatch.setattr(SessionManager, "settle", Mock(side_effect=gone))
        monkeypatch.setattr(connection, "is_usable", lambda: False)
        with pytest.raises(OperationalError):
            sweep(now=later(hours=25))

    def test_finishes_a_purge_that_was_interrupted(self, desk):
        session_id = desk.open()
        desk.append(session_id, *[user()] * 5)
        desk.run(session_id)
        desk.sessions.delete(session_id=session_id)
        desk.sessions.purge(session_id=session_id, batch=1, batches=2)
        assert sweep(batch=2).purged == 1
        assert not Run.objects.exists()

    def test_forgets_a_record_after_its_time_only(self, desk):
        record(desk, "a", NOON)
        assert sweep(now=later(hours=24)).idempotency_records == 0
        assert sweep(now=later(hours=24, seconds=1)).idempotency_records == 1

    def test_forgets_records_by_the_setting(self, desk, settings):
        settings.IDEMPOTENCY_TTL_HOURS = 1
        record(desk, "a", NOON)
        assert sweep(now=later(hours=1, seconds=1)).idempotency_records == 1
