import hashlib
import io
import json
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from sessions_app.chain import link
from sessions_app.models import ContentRead, ReadChain, Session, SessionEvent
from sessions_app.services import Actor, audit
from sessions_app.services.audit import Verified, compare, export, verify
from sessions_app.services.content_reads import record_read
from sessions_app.states import ContentPage
from tests.domain import Desk, later
from tests.exports import exported, imported
from tests.factories import make_account
from tests.tampering import owner_of_the_tables


@pytest.fixture
def session_id(desk: Desk) -> str:
    """Five events and three reads."""
    session_id = desk.open(title="Überweisung")
    run = desk.run(session_id)
    desk.runs.complete(run_id=run.run_id, output={"ok": True})
    desk.sessions.close(session_id=session_id, reason="done, said “Lin”\n")
    desk.sessions.resume(session_id=session_id)
    reader = Actor.operator(make_account("lin"))
    for hours in range(3):
        record_read(
            actor=reader,
            session_id=session_id,
            page=ContentPage.TRANSCRIPT,
            now=later(hours=hours),
        )
    assert SessionEvent.objects.count() == 6
    assert ContentRead.objects.count() == 3
    return session_id


def faults() -> list[tuple[str, int, str]]:
    return [(fault.name, fault.sequence, fault.reason) for fault in verify(Verified())]


def rows_of(model):
    return model.objects.order_by("sequence")


BOTH = pytest.mark.parametrize(
    ("model", "name"), [(SessionEvent, "event"), (ContentRead, "content_read")]
)


@pytest.mark.usefixtures("session_id")
class TestTheDatabase:
    @BOTH
    @pytest.mark.parametrize(
        "change",
        [
            lambda rows: rows.update(session_id=""),
            lambda rows: rows.filter(sequence=1).update(digest="0" * 64),
            lambda rows: rows.all().delete(),
            lambda rows: rows._raw_delete(rows.db),
            lambda rows: rows.first().save(),
        ],
    )
    def test_refuses_to_change_or_to_delete(self, model, name, change):
        before = list(rows_of(model).values())
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            change(model.objects.all())
        assert list(rows_of(model).values()) == before

    @BOTH
    def test_refuses_to_be_emptied(self, model, name):
        if connection.vendor == "sqlite":
            pytest.skip("SQLite has no TRUNCATE")
        emptying = f"SET CONSTRAINTS ALL IMMEDIATE; TRUNCATE {model._meta.db_table} CASCADE"
        with connection.cursor() as cursor, pytest.raises(IntegrityError, match="append-only"):
            cursor.execute(emptying)

    def test_holds_no_two_reads_of_one_number(self, session_id):
        with pytest.raises(IntegrityError), transaction.atomic():
            ContentRead.objects.create(
                session_id=session_id,
                sequence=1,
                reader="x",
                page="transcript",
                read_at=later(),
                digest="",
            )


@pytest.mark.usefixtures("session_id")
class TestVerification:
    def test_finds_nothing_where_nothing_was_done(self):
        done = Verified()
        assert list(verify(done)) == []
        assert (done.rows, done.chains) == (9, 2)

    @BOTH
    @pytest.mark.parametrize("sequence", [1, 2, 3])
    def test_finds_a_row_that_was_taken_away(self, model, name, sequence):
        with owner_of_the_tables():
            model.objects.filter(sequence=sequence).delete()
        assert faults() == [(name, sequence, "is missing")]

    @BOTH
    def test_finds_that_the_newest_rows_are_gone(self, model, name):
        last = rows_of(model).last().sequence
        with owner_of_the_tables():
            model.objects.filter(sequence=last).delete()
        assert faults() == [(name, last, "is missing")]

    @BOTH
    def test_finds_that_all_rows_are_gone(self, model, name):
        with owner_of_the_tables():
            model.objects.all().delete()
        assert faults() == [(name, 1, "is missing")]

    @pytest.mark.parametrize("column", SessionEvent.chained)
    def test_finds_each_column_of_an_event_that_was_changed(self, column, desk):
        other = {
            "sequence": 40,
            "session_version": 40,
            "created_at": later(days=3),
            "session_id": desk.open(),
        }
        with owner_of_the_tables():
            SessionEvent.objects.filter(sequence=3).update(**{column: other.get(column, "x")})
        assert faults()

    @pytest.mark.parametrize(
        ("column", "value"), [("reader", "x"), ("page", "raw"), ("read_at", later(days=3))]
    )
    def test_finds_each_column_of_a_read_that_was_changed(self, column, value):
        with owner_of_the_tables():
            ContentRead.objects.filter(sequence=2).update(**{column: value})
        assert faults() == [("content_read", 2, "was changed, or one before it was")]

    def test_finds_a_row_that_was_put_in(self, session_id):
        forged = rows_of(SessionEvent).last()
        forged.event_id, forged.sequence = "evt_" + "0" * 26, forged.sequence + 1
        forged.save(force_insert=True)
        assert faults() == [("event", 7, "was changed, or one before it was")]

    def test_finds_a_chain_whose_end_was_lost(self):
        ReadChain.objects.all().delete()
        assert faults() == [("content_read", 3, "is not where the chain ends")]

    def test_finds_what_is_wrong_in_each_of_many_chains(self, desk, monkeypatch):
        monkeypatch.setattr(audit, "CHAINS_AT_ONCE", 2)
        made = [desk.open() for _ in range(5)]
        Session.objects.filter(pk__in=made[1:4:2]).update(event_count=2)
        found = [(fault.session_id, fault.sequence) for fault in verify(Verified())]
        assert found == [(made[1], 2), (made[3], 2)]


@pytest.mark.usefixtures("session_id")
class TestAnExport:
    def test_has_every_row_chain_by_chain(self):
        lines = [json.loads(line) for line in export()]
        assert [line["object"] for line in lines] == ["event"] * 6 + ["content_read"] * 3
        assert [line["sequence"] for line in lines] == [1, 2, 3, 4, 5, 6, 1, 2, 3]

    def test_can_be_checked_without_this_program(self):
        """What docs/SECURITY.md says of the digest."""
        ends: dict[str, str] = {}
        for line in export():
            fields = json.loads(line)
            kind, digest = fields.pop("object"), fields.pop("digest")
            said = json.dumps(
                [ends.get(kind), *fields.values()], ensure_ascii=False, separators=(",", ":")
            )
            assert hashlib.sha256(said.encode()).hexdigest() == digest
            ends[kind] = digest

    def test_is_of_one_session_where_that_is_asked_for(self, desk, session_id):
        other = desk.open()
        assert {json.loads(line)["session_id"] for line in export(session_id=other)} == {other}

    def test_is_what_is_stored_as_long_as_nothing_is_changed(self, desk, session_id):
        kept = list(export())
        desk.sessions.close(session_id=session_id)
        assert list(compare(kept, Verified())) == []

    def test_shows_a_chain_that_was_made_anew(self):
        kept = list(export())
        with owner_of_the_tables():
            ends = None
            for event in rows_of(SessionEvent):
                event.reason = event.reason.replace("Lin", "Maria")
                event.digest = ends = link(ends, event)
                event.save()
        Session.objects.update(event_digest=ends)
        assert faults() == []
        assert [(fault.sequence, fault.reason) for fault in compare(kept, Verified())] == [
            (5, "is not what was exported"),
            (6, "is not what was exported"),
        ]

    def test_shows_a_chain_that_is_gone(self):
        kept = list(export())
        with owner_of_the_tables():
            ContentRead.objects.all().delete()
        ReadChain.objects.all().delete()
        assert faults() == []
        assert [fault.reason for fault in compare(kept, Verified())] == ["is missing"] * 3


@pytest.mark.usefixtures("session_id")
class TestTheCommands:
    def test_say_that_all_is_well(self, capsys):
        call_command("verify_audit")
        assert "9 rows in 2 chains" in capsys.readouterr().out

    def test_fail_and_say_where(self, session_id, capsys):
        with owner_of_the_tables():
            ContentRead.objects.filter(sequence=2).delete()
        with pytest.raises(CommandError, match="1 faults"):
            call_command("verify_audit")
        assert f"content_read 2 of {session_id} is missing" in capsys.readouterr().err

    def test_compare_with_a_file(self, tmp_path, capsysbinary):
        call_command("export_audit")
        file = tmp_path / "audit.ndjson"
        file.write_bytes(capsysbinary.readouterr().out)
        call_command("verify_audit", against=file)
        assert f"9 rows of {file} were compared" in capsysbinary.readouterr().out.decode()
        with owner_of_the_tables():
            ContentRead.objects.all().delete()
        ReadChain.objects.all().delete()
        with pytest.raises(CommandError, match="3 faults"):
            call_command("verify_audit", against=file)

    @pytest.mark.parametrize("text", ["", "{}\n", "[]\n", '{"object": "x"}\n', "\xff\n"])
    def test_refuse_a_file_that_is_none(self, tmp_path, text):
        file = tmp_path / "audit.ndjson"
        if text:
            file.write_text(text, encoding="latin-1")
        with pytest.raises(CommandError, match="cannot be compared"):
            call_command("verify_audit", against=file, stderr=io.StringIO())


class TestTheMigration:
    def test_chains_what_was_there_before(self, desk, session_id, monkeypatch):
        before = list(export())
        migration = import_module("sessions_app.migrations.0024_chain_what_happened")
        monkeypatch.setattr(migration, "_AT_ONCE", 4)
        desk.open()
        stored = [list(model.objects.values()) for model in (Session, SessionEvent, ContentRead)]
        with owner_of_the_tables():
            SessionEvent.objects.update(digest="")
            ContentRead.objects.update(sequence=F("sequence") + 100, digest="")
            ReadChain.objects.all().delete()
            Session.objects.update(event_digest=None)
            editor = SimpleNamespace(connection=connection, execute=connection.cursor().execute)
            migration.chain_what_happened(apps, editor)
        assert faults() == []
        assert list(compare(before, Verified())) == []
        again = [list(model.objects.values()) for model in (Session, SessionEvent, ContentRead)]
        assert again == stored


class TestEveryDoor:
    def test_leaves_chains_that_hold(self, desk, session_id):
        """Forks, imports and the demo write events past the manager."""
        desk.sessions.fork(session_id=session_id)
        imported(desk, exported(session_id))
        call_command("seed_demo", sessions=30, force=True, stdout=io.StringIO())
        assert faults() == []
