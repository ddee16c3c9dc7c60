"""The index follows every write: what is there is found, and what is gone is not."""

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from config.pagination import _pages_of
from sessions_app.errors import OrphanToolResult
from sessions_app.models import Message, SearchEntry
from sessions_app.services import NewFork, SessionChanges
from sessions_app.services.purge import purge_batch
from sessions_app.services.reading import SessionFilters
from tests.domain import NOON, Desk, assistant, calling, result, row, user
from tests.exports import exported, imported


def found(desk, words, **filters):
    """What a search finds, newest first: a message's sequence, or the kind of another text."""
    given = SessionFilters(q=words, **filters)
    pages = desk.sessions.search(filters=given, now=timezone.now()).pages()
    sequences = dict(Message.objects.values_list("message_id", "sequence"))
    rows = pages.read(None, False, False, 100)
    return [sequences.get(each.subject_id, each.kind) for each in rows]


def sessions(desk, words, **filters):
    """The ids of the sessions that a list with these words has."""
    given = SessionFilters(q=words, **filters)
    listing = desk.sessions.find(filters=given, order=("-created_at", "-session_id"), now=NOON)
    pages = _pages_of(listing.build)
    return [
        each.session_id
        for each in pages.all(listing.order, None, *listing.shape, limit=100, **listing.values)
    ]


class TestWhatIsWritten:
    def test_is_found_newest_first(self, desk):
        session_id = desk.open(title="A refund", external_id="Ticket-7")
        desk.append(session_id, user("refund 1"), assistant("none"))
        desk.append(session_id, user("REFUND 2"))
        desk.call(session_id, name="refund_order", arguments={"why": "late"})
        desk.sessions.patch_memory(session_id=session_id, patch={"goal": "give the refund"})
        assert found(desk, "refund") == ["working_memory", "tool_call", 3, 1, "session"]
        assert found(desk, "ticket-7") == ["session"]
        assert found(desk, "refund late") == ["tool_call"]
        assert sessions(desk, "refund late") == [session_id]
        assert sessions(desk, "refund nothing") == []

    @pytest.mark.parametrize(
        "message",
        [
            user([{"type": "text", "text": "the needle"}]),
            assistant([{"type": "refusal", "refusal": "no needle"}]),
            calling("a", name="find_needle"),
            calling("a", arguments='{"where": "hay\\nneedle"}'),
            calling("a", arguments='{"n\\u0065edle": 1}'),
            calling("a", arguments="needle {"),
            assistant([{"type": "tool_use", "id": "a", "name": "f", "input": {"a": ["needle"]}}]),
            {
                "item": {
                    "type": "function_call",
                    "call_id": "a",
                    "name": "f",
                    "arguments": '["needle"]',
                }
            },
            {"item": {"type": "message", "content": [{"type": "output_text", "text": "needle"}]}},
            {
                "item": {
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": "needle"}],
                }
            },
            user("x" * 60_000 + " needle"),
        ],
    )
    def test_is_found_in_every_form_of_a_message(self, desk, message):
        desk.append(desk.open(), message)
        assert found(desk, "needle") == [1]

    @pytest.mark.parametrize(
        "arguments",
        ['{"a": "\\u0000\\ud83d x"}', "[" * 5_000, "[" * 500 + "]" * 500, "1" * 5_000, "NaN"],
    )
    def test_may_hold_any_arguments(self, desk, arguments):
        desk.append(desk.open(), calling("a", name="needle", arguments=arguments))
        assert found(desk, "needle") == [1]

    def test_is_found_up_to_64_k_characters(self, desk):
        desk.append(desk.open(), user("x " * 40_000 + "needle"), user("字" * 70_000 + "针"))
        assert found(desk, "needle") == found(desk, "针") == []
        assert found(desk, "字字") == [2]

    def test_of_a_batch_is_indexed_with_it_or_not_at_all(self, desk):
        session_id = desk.open()
        with pytest.raises(OrphanToolResult):
            desk.append(session_id, user("needle"), result("nobody"))
        assert found(desk, "needle") == []
        desk.append(session_id, *(user(f"needle {n}") for n in range(30)), user(""))
        assert found(desk, "needle") == list(range(30, 0, -1))
        assert found(desk, "needle 7") == [8]

    def test_under_a_known_client_id_is_found_once(self, desk):
        session_id = desk.open()
        for _ in range(2):
            desk.append(session_id, user("needle", client_message_id="m"))
        assert found(desk, "needle") == [1]


class TestWhatIsGone:
    def test_by_removal_is_not_found(self, desk):
        session_id = desk.open()
        desk.append(session_id, user("needle"), calling("a", name="needle"))
        for sequence in (1, 2):
            desk.sessions.remove_message(session_id=session_id, sequence=sequence)
        assert found(desk, "needle") == sessions(desk, "needle") == []

    def test_by_pop_is_not_found_with_the_calls_that_it_had_taken_over(self, desk):
        session_id = desk.open()
        desk.append(session_id, user("needle"))
        desk.call(session_id, name="needle", tool_call_id="a")
        desk.append(session_id, calling("a", name="needle"))
        assert len(found(desk, "needle")) == 3
        desk.sessions.pop_messages(session_id=session_id, turn=True)
        assert found(desk, "needle") == []

    def test_as_superseded_is_not_found(self, desk):
        session_id = desk.open()
        desk.append(session_id, user("needle"), user("needle"))
        desk.sessions.rewind(session_id=session_id, to_sequence=1)
        assert found(desk, "needle") == [1]

    def test_is_the_old_title_and_memory(self, desk):
        session_id = desk.open(title="old", working_memory={"plan": ["old"]})
        desk.sessions.update(session_id=session_id, changes=SessionChanges(title="new"))
        desk.sessions.replace_memory(session_id=session_id, document={"extra": {"new": True}})
        assert found(desk, "old") == []
        assert found(desk, "new") == ["working_memory", "session"]
        desk.sessions.update(session_id=session_id, changes=SessionChanges(title=None))
        desk.sessions.patch_memory(session_id=session_id, patch={"extra": None})
        assert found(desk, "new") == []

    @pytest.mark.parametrize("is_purged", [False, True])
    def test_by_deletion_is_not_found_before_and_after_the_purge(self, desk, is_purged):
        session_id = desk.open(title="needle", working_memory={"goal": "needle"})
        desk.append(session_id, user("needle"))
        desk.call(session_id, name="needle")
        desk.sessions.delete(session_id=session_id)
        if is_purged:
            while purge_batch(row(session_id), batch=1, now=NOON):
                pass
            assert not SearchEntry.objects.exists()
        every = {"status": ["ACTIVE", "CLOSED", "EXPIRED", "DELETED"]}
        assert found(desk, "needle", **every) == sessions(desk, "needle", **every) == []

    def test_leaves_nothing_in_the_index_itself(self, desk):
        if connection.vendor != "sqlite":
            pytest.skip("FTS5")
        session_id = desk.open(title="needle")
        desk.append(session_id, user("needle"), user("hay"))
        desk.sessions.update(session_id=session_id, changes=SessionChanges(title="x"))
        desk.sessions.remove_message(session_id=session_id, sequence=1)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM sessions_app_search WHERE sessions_app_search MATCH 'needle'"
            )
            assert cursor.fetchone() == (0,)
            cursor.execute(
                "INSERT INTO sessions_app_search(sessions_app_search) VALUES ('integrity-check')"
            )


class TestWhoseItIs:
    def test_is_the_account_s_alone(self, desk):
        session_id = desk.open(title="needle")
        other = Desk()
        other.append(other.open(), user("needle"))
        assert found(desk, "needle") == ["session"]
        assert sessions(desk, "needle") == [session_id]

    def test_is_narrowed_by_the_filters_of_sessions(self, desk):
        for agent in ("a", "b"):
            desk.append(
                desk.open(agent_id=agent, metadata={"k": agent}), user("needle"), user(agent)
            )
        assert found(desk, "b", agent_id="b") == [2]
        assert found(desk, "b", agent_id="a") == []
        assert len(found(desk, "needle", metadata={"k": "a"})) == 1
        assert found(desk, "needle", status=["CLOSED"]) == []


class TestACommonWord:
    def test_finds_the_same_sessions(self, desk, monkeypatch):
        ids = [desk.open(title=f"needle {n}") for n in range(3)]
        desk.open(title="hay")
        desk.append(ids[1], user("needle"), user("needle"))
        desk.sessions.delete(session_id=ids[0])
        few = sessions(desk, "needle")
        monkeypatch.setattr("sessions_app.services.finding.MOST_MATCHES", 1)
        assert sessions(desk, "needle") == few == [ids[2], ids[1]]

    def test_is_found_beyond_the_newest_texts(self, desk, monkeypatch):
        monkeypatch.setattr("sessions_app.services.finding.LOOKED_THROUGH", 2)
        session_id = desk.open()
        desk.append(session_id, user("needle"), *(user("hay") for _ in range(4)), user("needle"))
        assert found(desk, "needle") == [6, 1]


class TestACopy:
    """Is found by the same terms, under names of its own."""

    @pytest.fixture
    def session_id(self, desk):
        session_id = desk.open(title="title", working_memory={"goal": "goal"})
        desk.append(session_id, user("one"), calling("a", name="two"), result("a", "three"))
        desk.append(session_id, user("gone"), user("four"))
        desk.sessions.remove_message(session_id=session_id, sequence=4)
        return session_id

    def test_that_is_a_fork(self, desk, session_id):
        fork = desk.sessions.fork(session_id=session_id)
        assert terms(fork.pk) == terms(session_id)
        assert not {*entries(fork.pk)} & {*entries(session_id)}
        assert found(desk, "one") == [1, 1]

    def test_that_is_the_beginning(self, desk, session_id):
        fork = desk.sessions.fork(session_id=session_id, new=NewFork(at_sequence=1))
        assert [each for kind, each in terms(fork.pk) if kind == "message"] == [["one"]]

    def test_that_is_imported(self, desk, session_id):
        desk.call(session_id, name="recorded")
        copy = imported(desk, exported(session_id))
        assert terms(copy.pk) == terms(session_id)
        assert not {*entries(copy.pk)} & {*entries(session_id)}


def test_what_was_stored_before_is_indexed_by_the_migration(desk):
    """As it was then: without entries, and without calls in the texts of messages."""
    session_id = desk.open(title="needle", working_memory={"goal": "old"})
    desk.sessions.patch_memory(session_id=session_id, patch={"goal": "needle"})
    desk.append(session_id, user("needle"), calling("a", name="needle"), user("gone"))
    desk.sessions.remove_message(session_id=session_id, sequence=3)
    desk.call(session_id, name="needle")
    deleted = desk.open(title="needle")
    desk.sessions.delete(session_id=deleted)
    before = entries(session_id)
    SearchEntry.objects.all().delete()
    Message.objects.filter(session=session_id, sequence=2).update(text="")
    migration = import_module("sessions_app.migrations.0021_index_what_is_stored")
    for _ in range(2):
        migration.index_all(apps, None)
    after = entries(session_id)
    assert (after, SearchEntry.objects.count()) == (before, 5)
    assert Message.objects.get(session=session_id, sequence=2).text == "needle"
    assert len(found(desk, "needle")) == 5


def entries(session_id):
    """The terms of its texts, by what these are."""
    rows = SearchEntry.objects.filter(session=session_id)
    return {(each.kind, each.subject_id): set(each.terms.split()) for each in rows}


def terms(session_id):
    """The same without names, and as PostgreSQL writes them, too."""
    found = entries(session_id).items()
    return sorted((kind, sorted(term.strip("'") for term in each)) for (kind, _), each in found)
