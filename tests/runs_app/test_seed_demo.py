import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from runs_app.management.demo import seed
from runs_app.models import Run
from runs_app.services import RunManager
from runs_app.states import RunStatus
from sessions_app.actors import Actor
from sessions_app.models import (
    Message,
    MetadataTerm,
    SearchEntry,
    Session,
    SessionEvent,
    ToolCall,
    WorkingMemoryRevision,
)
from sessions_app.services import SessionManager
from sessions_app.services.metadata import metadata_term
from sessions_app.states import SessionStatus, ToolCallStatus
from tests.factories import make_account, make_session
from tests.races.invariants import broken
from tests.tampering import owner_of_the_tables

pytestmark = pytest.mark.django_db


def select(query):
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def run_command(**options):
    call_command("seed_demo", stdout=io.StringIO(), **options)


@pytest.fixture(scope="class")
def now(class_db):
    now = timezone.now()
    list(seed(sessions=300, seed=3, now=now))
    return now


class TestSeededSessions:
    def test_break_no_rule_for_what_is_stored(self, now):
        assert broken(select) == {}

    def test_are_as_many_as_asked_for_and_of_the_last_thirty_days(self, now):
        times = Session.objects.values_list("created_at", flat=True)
        assert len(times) == 300
        assert all(now - timedelta(days=30) <= at <= now for at in times)

    def test_have_nothing_of_the_future(self, now):
        assert not Message.objects.filter(created_at__gt=now).exists()
        assert not SessionEvent.objects.filter(created_at__gt=now).exists()
        assert not Run.objects.filter(ended_at__gt=now).exists()

    def test_leave_nothing_to_be_settled(self, now):
        assert not Session.objects.due(now=now).exists()
        assert not Run.objects.effective().lapsed(now=now).exists()

    def test_have_every_status(self, now):
        assert {each.status for each in Session.objects.all()} == set(SessionStatus)
        assert {each.status for each in Run.objects.all()} == set(RunStatus)
        calls = {each.status for each in ToolCall.objects.all()}
        assert calls == set(ToolCallStatus) - {ToolCallStatus.RUNNING}

    def test_speak_english_and_chinese(self, now):
        titles = "".join(session.title or "" for session in Session.objects.all())
        assert "order" in titles
        assert "订单" in titles

    def test_know_their_newest_run(self, now):
        for session in Session.objects.exclude(status=SessionStatus.DELETED):
            newest = session.runs.latest("run_id")
            assert (session.newest_run_id, session.newest_run_status) == (newest.pk, newest.status)
            waiting = session.runs.filter(status=RunStatus.PENDING).first()
            deadline = waiting.lease_expires_at if waiting else None
            assert session.newest_run_deadline == session.other_run_deadline == deadline

    def test_spend_what_their_runs_spend(self, now):
        for session in Session.objects.exclude(status=SessionStatus.DELETED):
            assert session.input_tokens == sum(run.input_tokens for run in session.runs.all())
            assert session.output_tokens == sum(run.output_tokens for run in session.runs.all())

    def test_are_found_by_their_metadata(self, now):
        found = Session.objects.with_metadata([metadata_term("source", "demo")])
        assert found.count() == Session.objects.exclude(status=SessionStatus.DELETED).count()
        assert MetadataTerm.objects.filter(session__status=SessionStatus.DELETED).count() == 0

    def test_go_on_like_any_other(self, now):
        run = Run.objects.filter(status=RunStatus.RUNNING)[0]
        call = run.tool_calls.get(finished_at=None)
        actor = Actor.account(run.session.account)
        answer = {"role": "tool", "tool_call_id": call.tool_call_id, "content": "done"}
        SessionManager(actor).append(
            session_id=run.session_id, run_id=run.pk, messages=[answer], now=now
        )
        RunManager(actor).complete(run_id=run.pk, output="done", now=now)
        assert broken(select) == {}

    def test_are_the_same_for_the_same_seed(self, now):
        first = list(Session.objects.order_by("pk").values_list("pk", "title", "version"))
        entries = (SearchEntry, MetadataTerm)
        with owner_of_the_tables():
            for model in (*entries, ToolCall, Message, WorkingMemoryRevision, SessionEvent, Run):
                model.objects.all().delete()
        Session.objects.all().delete()
        list(seed(sessions=300, seed=3, now=now))
        assert list(Session.objects.order_by("pk").values_list("pk", "title", "version")) == first


class TestTheCommand:
    def test_writes_into_an_empty_database(self):
        run_command(sessions=9)
        assert Session.objects.count() == 9

    def test_refuses_a_database_with_sessions(self):
        make_session(account=make_account("somebody"))
        with pytest.raises(CommandError, match="--force"):
            run_command(sessions=9)
        assert Session.objects.count() == 1

    def test_adds_to_it_by_force(self):
        make_session(account=make_account("somebody"))
        run_command(sessions=9, force=True)
        assert Session.objects.count() == 10

    def test_refuses_none(self):
        with pytest.raises(CommandError, match="greater than zero"):
            run_command(sessions=0)
