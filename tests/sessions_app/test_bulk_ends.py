"""What ends a decision about many sessions, or keeps it waiting."""

from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.contrib.auth.models import User
from django.db import DataError, OperationalError, connection
from django.utils import timezone

from runs_app.services import sweep as sweeping
from runs_app.services.sweep import due, sweep
from sessions_app.models import BulkMove, BulkTarget, Session, SessionEvent
from sessions_app.services import Actor, SessionManager, bulk
from sessions_app.states import SessionStatus
from tests.factories import make_account
from tests.moves import after_one, begin, go_on, make_operator, make_sessions, outcomes

pytestmark = pytest.mark.django_db


class TestALostRight:
    """Asked at each session, so that nothing more is done by whoever may not do it."""

    @pytest.mark.parametrize(
        "withdraw",
        [
            lambda person: person.user_permissions.clear(),
            lambda person: User.objects.filter(pk=person.pk).update(is_active=False),
            lambda person: User.objects.filter(pk=person.pk).update(is_staff=False),
            lambda person: person.delete(),
        ],
        ids=["right", "inactive", "no staff", "gone"],
    )
    def test_ends_the_move(self, account, operator, withdraw):
        move = begin(operator, make_sessions(account, 3), SessionStatus.DELETED)
        withdraw(User.objects.get(username="maria"))
        BulkMove.objects.update(worked_at=timezone.now() - timedelta(minutes=1))
        assert sweep().moved == 0
        move.refresh_from_db()
        assert (move.end, move.operator) == ("WITHDRAWN", "maria")
        assert outcomes(move) == [(None, "")] * 3
        assert set(Session.objects.values_list("status", flat=True)) == {"ACTIVE"}

    def test_is_not_brought_back_by_the_name(self, account, operator):
        move = begin(operator, make_sessions(account, 2))
        User.objects.get(username="maria").delete()
        make_operator("maria")
        assert go_on(move).end == "WITHDRAWN"
        assert set(Session.objects.values_list("status", flat=True)) == {"ACTIVE"}

    def test_counts_from_the_next_session_on(self, account, operator, monkeypatch):
        move = begin(operator, make_sessions(account, 3))
        after_one(monkeypatch, User.objects.get(username="maria").user_permissions.clear)
        assert go_on(move).end == "WITHDRAWN"
        assert outcomes(move) == [("CHANGED", "")] + [(None, "")] * 2


class TestAStop:
    def test_counts_from_the_next_session_on(self, account, operator, monkeypatch):
        move = begin(operator, make_sessions(account, 3))
        after_one(monkeypatch, lambda: bulk.stop(move, actor=Actor.operator(account)))
        assert go_on(move).end == "STOPPED"
        assert move.stopped_by == account.username
        assert outcomes(move) == [("CHANGED", "")] + [(None, "")] * 2
        assert Session.objects.filter(status="ACTIVE").count() == 2

    def test_of_what_is_over_changes_nothing(self, account, operator):
        move = go_on(begin(operator, make_sessions(account, 1)))
        bulk.stop(move, actor=operator)
        move.refresh_from_db()
        assert (move.end, move.stopped_by) == ("DONE", "")


@pytest.mark.django_db(transaction=True)
class TestTwoAtATime:
    def test_move_each_session_once(self, account, operator):
        move = begin(operator, make_sessions(account, 12))
        ready, worked = Barrier(2), []

        def drive():
            ready.wait()
            worked.append(bulk.step(move, seconds=30))
            connection.close()

        run_all([drive, drive])
        assert sum(each.moved for each in worked) == 12
        assert SessionEvent.objects.filter(to_status="CLOSED").count() == 12
        assert outcomes(move) == [("CHANGED", "")] * 12

    def test_are_stopped_where_they_are(self, account, operator, monkeypatch):
        move = begin(operator, make_sessions(account, 12))

        def stop():
            bulk.stop(move, actor=operator)
            connection.close()

        def stop_meanwhile():
            stopper.start()
            stopper.join(0.3)

        stopper = Thread(target=stop)
        after_one(monkeypatch, stop_meanwhile)
        bulk.step(move, seconds=30)
        stopper.join()
        move.refresh_from_db()
        assert move.end == "STOPPED"
        moved = Session.objects.filter(status="CLOSED").count()
        # It waits for the session that is being moved; whoever is first then has the next one.
        assert outcomes(move) == [("CHANGED", "")] * moved + [(None, "")] * (12 - moved)


def run_all(jobs):
    threads = [Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class TestAFailure:
    def failing(self, monkeypatch, session, error):
        close = SessionManager.close

        def fail(self, *, session_id, **more):
            if session_id == session.pk:
                raise error
            return close(self, session_id=session_id, **more)

        monkeypatch.setattr(SessionManager, "close", fail)

    @pytest.mark.parametrize(
        ("error", "why"),
        [(RuntimeError("what?"), "internal_error"), (DataError("row"), "database_error")],
    )
    def test_keeps_no_other_waiting(self, operator, monkeypatch, error, why, caplog):
        sessions = make_sessions(make_account(), 3)
        self.failing(monkeypatch, sessions[0], error)
        moves = [begin(operator, sessions[:2]), begin(operator, sessions[2:])]
        BulkMove.objects.update(worked_at=timezone.now() - timedelta(minutes=1))
        swept = sweep()
        assert (swept.moved, swept.failed) == (2, 1)
        assert outcomes(moves[0]) == [("REFUSED", why), ("CHANGED", "")]
        assert outcomes(moves[1]) == [("CHANGED", "")]
        assert sessions[0].pk in caplog.text

    def test_of_a_busy_database_is_tried_again(self, account, operator, monkeypatch):
        sessions = make_sessions(account, 2)
        with monkeypatch.context() as patch:
            self.failing(patch, sessions[0], OperationalError("locked"))
            move = go_on(begin(operator, sessions))
            assert outcomes(move) == [(None, ""), ("CHANGED", "")]
            assert move.ended_at is None
        assert outcomes(go_on(move)) == [("CHANGED", "")] * 2
        assert move.end == "DONE"

    def test_of_a_busy_database_is_final_in_the_end(self, account, operator, monkeypatch):
        sessions = make_sessions(account, 1)
        self.failing(monkeypatch, sessions[0], OperationalError("locked"))
        move = begin(operator, sessions)
        for _ in range(bulk.MOST_ATTEMPTS):
            assert move.end is None
            go_on(move)
        assert outcomes(move) == [("REFUSED", "database_busy")]
        assert go_on(move).end == "DONE"


class TestTheSweep:
    def test_says_what_it_would_go_on_with(self, account, operator):
        begin(operator, make_sessions(account, 3))
        assert due().moved == 0
        BulkMove.objects.update(worked_at=timezone.now() - timedelta(minutes=1))
        assert due().moved == 3

    def test_takes_a_limited_time_for_them(self, account, operator, monkeypatch):
        monkeypatch.setattr(sweeping, "_BULK_ROUND_SECONDS", 0.0)
        begin(operator, make_sessions(account, 1))
        BulkMove.objects.update(worked_at=timezone.now() - timedelta(minutes=1))
        assert sweep().moved == 0

    def test_forgets_what_was_over_long_ago(self, account, operator):
        over, lately = (go_on(begin(operator, make_sessions(account, 3))) for _ in range(2))
        long_ago = timezone.now() - timedelta(days=31)
        BulkMove.objects.filter(pk=over.pk).update(ended_at=long_ago)
        sweep(batch=2)
        assert list(BulkMove.objects.all()) == [lately]
        assert BulkTarget.objects.count() == 3

    def test_forgets_drafts_that_nobody_confirms(self, operator):
        old, new = (
            bulk.draft(actor=operator, to=SessionStatus.CLOSED, session_ids=["sess_x"])
            for _ in range(2)
        )
        yesterday = timezone.now() - timedelta(days=1, minutes=1)
        BulkMove.objects.filter(pk=old.pk).update(created_at=yesterday)
        sweep()
        assert list(BulkMove.objects.all()) == [new]
