import pytest
from django.db import OperationalError, connection

from runs_app.models import Run
from sessions_app.errors import DossierError, NotFound, SessionDeleted
from sessions_app.jsontext import JSONText
from sessions_app.models import IdempotencyRecord, Session, SessionEvent
from sessions_app.services import Actor, NewSession, Outcome
from sessions_app.services.content_reads import record_read
from sessions_app.services.purge import purge_batch, purged_models
from sessions_app.states import ContentPage, ToolCallStatus
from sessions_app.usage import Usage
from tests.domain import (
    NOON,
    Desk,
    assistant,
    calling,
    calls_of,
    domain_models,
    dump,
    dump_of,
    later,
    moves,
    result,
    row,
    run_row,
    system,
    user,
)

SECRET = "secret"
KEPT = {
    "sessions_app.Session",
    "sessions_app.SessionEvent",
    "sessions_app.ContentRead",
    "sessions_app.ReadChain",
    "sessions_app.IdempotencyRecord",
}
# What the tombstone is: everything else in the row is empty.
TOMBSTONE = {
    "session_id",
    "account_id",
    "agent_id",
    "status",
    "created_at",
    "updated_at",
    "last_activity_at",
    "deleted_at",
    "purged_at",
    "version",
    "event_count",
    "event_digest",
    "last_sequence",
    "head_sequence",
    "message_count",
    "tool_call_count",
    "run_count",
}


def full_session(desk, **more):
    """A session with rows in every table."""
    session_id = desk.open(
        title=SECRET,
        external_id=f"{SECRET}-{desk.user.pk}-{len(more)}",
        user_id=SECRET,
        agent_id="agent",
        metadata={SECRET: SECRET},
        working_memory={"goal": SECRET},
        idle_timeout_seconds=600,
        **more,
    )
    first = desk.run(session_id, input=SECRET, metadata={"a": SECRET})
    desk.append(session_id, {"role": "system", "content": SECRET}, user(SECRET))
    desk.append(
        session_id,
        calling("c1", "c2", arguments=SECRET),
        assistant(usage={"input_tokens": 5}),
        result("c1", SECRET),
        run_id=first.run_id,
    )
    desk.sessions.patch_memory(session_id=session_id, patch={"goal": "x"}, run_id=first.run_id)
    desk.runs.complete(run_id=first.run_id, output=SECRET)
    desk.sessions.pop_messages(session_id=session_id)
    second = desk.run(session_id, retry_of=first.run_id)
    child = desk.run(session_id, parent_run_id=second.run_id)
    desk.run(session_id, parent_run_id=child.run_id)
    desk.call(session_id, arguments=SECRET, run_id=child.run_id)
    reader = Actor.operator(desk.user)
    record_read(actor=reader, session_id=session_id, page=ContentPage.TRANSCRIPT, now=NOON)
    IdempotencyRecord.objects.create(
        digest=session_id,
        fingerprint="f",
        account=desk.user,
        session=row(session_id),
        status_code=201,
        answer=JSONText.of({"body": SECRET}),
        headers=JSONText("{}"),
        created_at=NOON,
    )
    return session_id


def delete(desk, session_id, **more):
    desk.sessions.delete(session_id=session_id, reason="by request", now=later(9), **more)


class TestTombstone:
    @pytest.mark.parametrize("state", ["ACTIVE", "CLOSED", "EXPIRED"])
    def test_holds_what_the_lifecycle_says_and_nothing_else(self, desk, state):
        session_id = full_session(desk)
        lead = {"CLOSED": desk.sessions.close, "EXPIRED": desk.sessions.expire}
        if state in lead:
            lead[state](session_id=session_id)
        counted = row(session_id)
        delete(desk, session_id)
        stored = dump()["sessions_app.Session"][0]
        empty = {None, 0, "", "{}"}
        held = {
            name for name, value in stored.items() if getattr(value, "text", value) not in empty
        }
        assert held <= TOMBSTONE
        assert (stored["agent_id"], stored["account_id"]) == ("agent", desk.user.pk)
        assert (stored["created_at"], stored["deleted_at"]) == (NOON, later(9))
        assert (stored["message_count"], stored["tool_call_count"], stored["run_count"]) == (
            counted.message_count,
            counted.tool_call_count,
            counted.run_count,
        )

    def test_comes_with_who_and_why(self, desk):
        session_id = full_session(desk)
        delete(desk, session_id)
        event = row(session_id).events.order_by("-sequence").first()
        assert (event.from_status, event.to_status) == ("ACTIVE", "DELETED")
        assert (event.actor_id, event.reason) == (desk.user.username, "by request")

    def test_and_its_events_hold_no_content(self, desk):
        session_id = full_session(desk)
        delete(desk, session_id)
        assert desk.sessions.purge(session_id=session_id)
        assert SECRET not in str(dump()).replace("JSONText", "")
        assert SessionEvent.objects.filter(session=session_id).count() > 10

    def test_hides_everything_before_a_row_is_purged(self, desk):
        session_id = full_session(desk)
        run, call = Run.objects.all()[0], calls_of(session_id)[0]
        delete(desk, session_id)
        sessions, runs = desk.sessions, desk.runs
        for read in (
            lambda: sessions.get(session_id=session_id),
            lambda: sessions.read_page(session_id=session_id, limit=1),
            lambda: sessions.read_message(session_id=session_id, sequence=1),
            lambda: sessions.read_memory(session_id=session_id),
            lambda: sessions.memory_revisions(session_id=session_id),
            lambda: sessions.tool_calls(session_id=session_id),
            lambda: sessions.events(session_id=session_id),
            lambda: runs.list_of(session_id=session_id),
        ):
            with pytest.raises(SessionDeleted) as caught:
                read()
            assert caught.value.data["deleted_at"] == later(9)
        for read in (
            lambda: runs.get(run_id=run.run_id),
            lambda: sessions.tool_call(id=call.id),
        ):
            with pytest.raises(NotFound):
                read()
        assert not runs.list_all().exists()

    def test_settles_runs_and_calls(self, desk):
        session_id = full_session(desk)
        delete(desk, session_id)
        assert set(Run.objects.values_list("status", flat=True)) == {"COMPLETED", "CANCELLED"}
        assert row(session_id).active_run_id is None
        assert row(session_id).other_run_deadline is None
        assert row(session_id).open_tool_call_count == 0

    def test_loses_the_bodies_of_idempotency_records(self, desk):
        delete(desk, full_session(desk))
        record = IdempotencyRecord.objects.get()
        assert (record.answer, record.headers, record.fingerprint) == (None, None, "f")


class TestLateWrite:
    def test_never_brings_a_session_back(self, desk):
        session_id = full_session(desk)
        run = Run.objects.get(pk=row(session_id).active_run_id)
        call = calls_of(session_id)[-1]
        delete(desk, session_id)
        assert desk.sessions.purge(session_id=session_id)
        before = dump()
        outcome = Outcome(ToolCallStatus.SUCCEEDED)
        sessions, runs = desk.sessions, desk.runs
        for write in (
            lambda: desk.append(session_id, user()),
            lambda: desk.append(session_id, result("c2"), run_id=run.run_id, attempt=1),
            lambda: sessions.patch_memory(session_id=session_id, patch={}),
            lambda: sessions.resume(session_id=session_id),
            lambda: sessions.delete(session_id=session_id),
            lambda: sessions.pop_messages(session_id=session_id),
            lambda: desk.call(session_id),
            lambda: desk.run(session_id),
            lambda: desk.open(parent_session_id=session_id),
            lambda: sessions.finish_tool_call(id=call.id, outcome=outcome),
            lambda: runs.complete(run_id=run.run_id, output=1),
            lambda: runs.heartbeat(run_id=run.run_id),
            lambda: runs.resume(run_id=run.run_id),
            lambda: system().settle(session_id=session_id),
        ):
            with pytest.raises(DossierError) as caught:
                write()
            assert isinstance(caught.value, NotFound | SessionDeleted)
            assert dump() == before

    def test_by_get_or_create_makes_a_new_session(self, desk):
        session_id = full_session(desk)
        external_id = row(session_id).external_id
        delete(desk, session_id)
        new = NewSession(external_id=external_id, if_exists="return")
        assert desk.sessions.create(new)[0].session_id != session_id


class TestPurge:
    def test_leaves_no_row_in_any_table_but_the_kept_ones(self, desk):
        doomed, other = full_session(desk), full_session(Desk())
        before = dump_of(other)
        delete(desk, doomed)
        assert desk.sessions.purge(session_id=doomed)
        left = {label for label, rows in dump_of(doomed).items() if rows}
        assert left == KEPT
        assert row(doomed).purged_at == NOON
        assert dump_of(other) == before

    def test_begins_with_a_session_that_has_rows_in_every_table(self, desk):
        """Else the test above proves nothing about a table that is added later."""
        session_id = full_session(desk)
        without = {label for label, rows in dump_of(session_id).items() if not rows}
        # What no session owns, and the list of those that an operator meant, which stays.
        others = {"AccessToken", "ContentRead", "BulkMove", "BulkTarget"}
        assert without <= {f"sessions_app.{name}" for name in others}

    def test_knows_every_table_with_a_path_to_a_session(self):
        reaching = {
            model
            for model in domain_models()
            if any(field.related_model is Session for field in model._meta.fields)
        }
        kept = {model for model in reaching if model._meta.label in KEPT}
        assert set(purged_models()) == reaching - kept

    def test_finds_sessions_by_a_key_of_one_name(self):
        for model in purged_models():
            assert model._meta.get_field("session").related_model is Session

    def test_is_left_to_the_commit_of_the_delete(self, desk, django_capture_on_commit_callbacks):
        session_id = full_session(desk)
        with django_capture_on_commit_callbacks(execute=True):
            delete(desk, session_id)
            assert Run.objects.filter(session=session_id).exists()
        assert not Run.objects.filter(session=session_id).exists()
        assert row(session_id).purged_at is not None

    @pytest.mark.parametrize("batch", [1, 2, 3, 1000])
    def test_goes_in_batches_of_any_size(self, desk, batch):
        """Each is committed, so that each must satisfy the foreign keys by itself."""
        session_id = full_session(desk)
        delete(desk, session_id)
        rounds = 0
        while not desk.sessions.purge(session_id=session_id, batch=batch, batches=1):
            connection.check_constraints()
            rounds += 1
        assert rounds >= (14 if batch == 1 else 4)
        assert {label for label, rows in dump_of(session_id).items() if rows} == KEPT

    @pytest.mark.parametrize("link", ["parent_run", "retry_of"])
    def test_goes_on_though_an_older_key_points_at_a_newer_one(self, desk, link):
        """Ids of two machines are in order only as far as their clocks are."""
        session_id = desk.open()
        older, newer = (desk.run(session_id, start=False) for _ in range(2))
        Run.objects.filter(pk=older.run_id).update(**{link: newer.run_id})
        delete(desk, session_id)
        while not desk.sessions.purge(session_id=session_id, batch=1, batches=1):
            connection.check_constraints()
        assert not Run.objects.exists()

    def test_that_was_interrupted_goes_on_where_it_stopped(self, desk):
        session_id = full_session(desk)
        delete(desk, session_id)
        assert not desk.sessions.purge(session_id=session_id, batch=1, batches=3)
        assert row(session_id).purged_at is None
        assert system().purge(session_id=session_id, batch=1, batches=1000)
        assert row(session_id).purged_at == NOON

    def test_again_does_nothing(self, desk):
        session_id = full_session(desk)
        delete(desk, session_id)
        desk.sessions.purge(session_id=session_id)
        before = dump()
        assert desk.sessions.purge(session_id=session_id)
        assert dump() == before

    def test_that_another_has_finished_meanwhile_keeps_its_time(self, desk):
        session_id = full_session(desk)
        delete(desk, session_id)
        late = row(session_id)
        assert system().purge(session_id=session_id)
        before = dump()
        assert purge_batch(late, batch=1, now=later(9)) == 0
        assert late.purged_at == NOON
        assert dump() == before

    @pytest.mark.parametrize("state", ["ACTIVE", "CLOSED", "EXPIRED"])
    def test_touches_nothing_that_was_not_deleted(self, desk, state):
        session_id = full_session(desk)
        lead = {"CLOSED": desk.sessions.close, "EXPIRED": desk.sessions.expire}
        if state in lead:
            lead[state](session_id=session_id)
        before = dump()
        desk.sessions.purge(session_id=session_id)
        assert dump() == before


class TestDeleteOfALapsedSession:
    def test_settles_it_first(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        run = desk.run(session_id, lease_seconds=30)
        desk.append(session_id, calling("c1"), run_id=run.run_id)
        desk.sessions.delete(session_id=session_id, now=later(500))
        assert (run_row(run).status, run_row(run).ended_at) == ("INTERRUPTED", later(30))
        assert moves(session_id, "session")[1:] == [
            ("ACTIVE", "EXPIRED", "system"),
            ("EXPIRED", "DELETED", "account"),
        ]
        assert calls_of(session_id)[0].status == "CANCELLED"
        assert row(session_id).open_tool_call_count == 0


class TestUsage:
    def test_goes_with_the_data(self, desk):
        session_id = full_session(desk)
        delete(desk, session_id)
        assert Usage.of(row(session_id)) == Usage()


@pytest.mark.django_db(transaction=True)
def test_a_deletion_stands_though_its_purge_fails(monkeypatch):
    """The client is answered that the session is gone; what is left of it is the sweep's."""
    desk = Desk()
    session_id = desk.open()
    desk.append(session_id, user())

    def failing(self: object, **_: object) -> bool:
        raise OperationalError("database is locked")

    with monkeypatch.context() as patched:
        patched.setattr(type(desk.sessions), "purge", failing)
        delete(desk, session_id)
    assert row(session_id).status == "DELETED"
    assert row(session_id).purged_at is None
    assert system().purge(session_id=session_id)
