"""Moving many sessions: once each, told truly, and on again after any interruption."""

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from runs_app.services.sweep import sweep
from sessions_app.models import BulkMove, BulkTarget, Message, Session, SessionEvent
from sessions_app.services import SessionManager, bulk
from sessions_app.states import SessionStatus
from tests.factories import make_messages
from tests.moves import begin, go_on, make_sessions, outcomes

pytestmark = pytest.mark.django_db


class TestAMove:
    def test_does_nothing_when_it_begins(self, account, operator):
        move = begin(operator, make_sessions(account, 3))
        assert (move.total, move.ended_at) == (3, None)
        assert outcomes(move) == [(None, "")] * 3
        assert set(Session.objects.values_list("status", flat=True)) == {"ACTIVE"}

    @pytest.mark.parametrize("to", ["CLOSED", "EXPIRED", "DELETED"])
    def test_brings_each_to_its_status_as_the_operator(self, account, operator, to):
        move = go_on(begin(operator, make_sessions(account, 3), SessionStatus(to)))
        assert outcomes(move) == [("CHANGED", "")] * 3
        assert move.ended_at is not None
        assert set(Session.objects.values_list("status", flat=True)) == {to}
        events = SessionEvent.objects.filter(to_status=to)
        told = events.values_list("actor_type", "actor_id", "reason")
        assert set(told) == {("operator", "maria", "spring cleaning")}

    def test_resumes(self, account, operator):
        sessions = make_sessions(account, 2)
        go_on(begin(operator, sessions))
        move = go_on(begin(operator, sessions, SessionStatus.ACTIVE))
        assert outcomes(move) == [("CHANGED", "")] * 2

    def test_tells_what_stays_and_what_fails_and_why(self, account, operator, monkeypatch):
        closed, expired, deleted, busy, last = make_sessions(account, 5)
        move = begin(operator, [closed, expired, deleted, busy, last])
        manager, close = SessionManager(operator), SessionManager.close
        manager.close(session_id=closed.pk)
        manager.expire(session_id=expired.pk)
        manager.delete(session_id=deleted.pk)

        def busy_for_one(self, *, session_id, **more):
            if session_id == busy.pk:
                raise OperationalError("locked")
            return close(self, session_id=session_id, **more)

        monkeypatch.setattr(SessionManager, "close", busy_for_one)
        assert outcomes(go_on(move)) == [
            ("KEPT", "CLOSED"),
            ("KEPT", "EXPIRED"),
            ("KEPT", "DELETED"),
            (None, ""),
            ("CHANGED", ""),
        ]
        assert move.ended_at is None

    def test_takes_at_most_so_many(self, account, operator, monkeypatch):
        monkeypatch.setattr(bulk, "MOST_TARGETS", 2)
        move = begin(operator, make_sessions(account, 3))
        assert (move.total, move.has_more) == (2, True)

    def test_does_nothing_before_it_is_confirmed(self, account, operator):
        ids = [session.pk for session in make_sessions(account, 2)]
        move = bulk.draft(actor=operator, to=SessionStatus.DELETED, session_ids=ids)
        BulkMove.objects.update(worked_at=timezone.now() - timedelta(hours=1))
        sweep()
        assert outcomes(go_on(move)) == [(None, "")] * 2
        assert move.ended_at is None
        assert set(Session.objects.values_list("status", flat=True)) == {"ACTIVE"}

    def test_is_confirmed_once(self, account, operator):
        move = begin(operator, make_sessions(account, 1))
        bulk.confirm(move, reason="another")
        assert move.reason == "spring cleaning"


class TestAnInterruption:
    def interrupted(self, account, operator, monkeypatch, to=SessionStatus.CLOSED):
        """After two of four the process dies: in the third's transaction, before it is noted."""
        move = begin(operator, make_sessions(account, 4), to)
        note, seen = bulk._note, []

        def die(target, outcome, why):
            seen.append(target)
            if len(seen) == 3:
                raise KeyboardInterrupt
            note(target, outcome, why)

        with monkeypatch.context() as patch:
            patch.setattr(bulk, "_note", die)
            with pytest.raises(KeyboardInterrupt):
                go_on(move)
        return move

    def test_leaves_no_session_moved_that_is_not_noted(self, account, operator, monkeypatch):
        move = self.interrupted(account, operator, monkeypatch)
        assert outcomes(move) == [("CHANGED", "")] * 2 + [(None, "")] * 2
        assert Session.objects.filter(status="CLOSED").count() == 2

    def test_is_gone_on_from_and_nothing_is_done_twice(self, account, operator, monkeypatch):
        move = self.interrupted(account, operator, monkeypatch)
        go_on(move)
        assert outcomes(move) == [("CHANGED", "")] * 4
        assert SessionEvent.objects.filter(to_status="CLOSED").count() == 4

    def test_is_mended_by_the_sweep(
        self, account, operator, monkeypatch, django_capture_on_commit_callbacks
    ):
        move = self.interrupted(account, operator, monkeypatch, SessionStatus.DELETED)
        for session in Session.objects.filter(status="ACTIVE"):
            make_messages(session=session)
        sweep()  # somebody may still be at it
        assert BulkTarget.objects.filter(outcome=None).count() == 2
        BulkMove.objects.update(worked_at=timezone.now() - timedelta(minutes=1))
        with django_capture_on_commit_callbacks(execute=True):
            sweep()
        move.refresh_from_db()
        assert move.ended_at is not None
        assert outcomes(move) == [("CHANGED", "")] * 4
        assert not Message.objects.exists()

    def test_by_an_operator_leaves_the_rest(self, account, operator):
        move = begin(operator, make_sessions(account, 3))
        bulk.stop(move, actor=operator)
        move = go_on(move)
        assert outcomes(move) == [(None, "")] * 3
        assert move.ended_at is not None
