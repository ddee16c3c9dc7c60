import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from sessions_app.errors import (
    AlreadyExists,
    InvalidJSON,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
)
from sessions_app.services import Actor, NewSession, SessionChanges, SessionManager
from tests.domain import NOON, Desk, dump, later, moves, row, session_in, user

LENGTHS = {"agent_id": 255, "user_id": 255, "external_id": 255, "title": 500}


class TestCreate:
    def test_makes_an_active_session_with_one_event(self, desk):
        session, is_new = desk.sessions.create(NewSession(agent_id="a", user_id="u"), now=later(5))
        session = row(session.session_id)
        assert is_new
        assert (session.status, session.version, session.account) == ("ACTIVE", 1, desk.user)
        assert (session.agent_id, session.user_id) == ("a", "u")
        assert session.created_at == session.updated_at == session.last_activity_at == later(5)
        assert (session.last_sequence, session.message_count, session.run_count) == (0, 0, 0)
        assert moves(session.session_id) == [(None, "ACTIVE", "account")]

    def test_writes_the_working_memory_in_the_same_version(self, desk):
        session_id = desk.open(working_memory={"goal": "g", "plan": None})
        session, memory = desk.sessions.read_memory(session_id=session_id)
        assert memory.value["goal"] == "g"
        assert memory.value["plan"] == []
        assert (session.version, session.working_memory_version) == (1, 1)

    def test_without_a_working_memory_writes_no_revision(self, desk):
        session_id = desk.open()
        assert row(session_id).working_memory_version == 0
        assert desk.sessions.read_memory(session_id=session_id)[1].value["plan"] == []

    @pytest.mark.parametrize(("name", "longest"), LENGTHS.items())
    def test_takes_names_up_to_their_length(self, desk, name, longest):
        assert getattr(row(desk.open(**{name: "ä" * longest})), name) == "ä" * longest
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            desk.open(**{name: "ä" * (longest + 1)})
        assert list(caught.value.pointers) == [f"/{name}"]
        assert dump() == before

    @pytest.mark.parametrize("name", LENGTHS)
    def test_cleans_names(self, desk, name):
        assert getattr(row(desk.open(**{name: "a\x00b"})), name) == "a\ufffdb"
        with pytest.raises(InvalidJSON):
            desk.open(**{name: "\ud83d"})

    @pytest.mark.parametrize(
        "given",
        [
            {"working_memory": {"goals": []}},
            {"working_memory": {"goal": 5}},
            {"working_memory": []},
            {"metadata": []},
            {"metadata": None},
            {"metadata": {"a": float("nan")}},
        ],
    )
    def test_that_is_refused_leaves_nothing(self, desk, given):
        before = dump()
        with pytest.raises(InvalidRequest):
            desk.open(external_id="x", **given)
        assert dump() == before

    def test_with_too_large_a_memory_leaves_nothing(self, desk, settings):
        settings.MAX_WORKING_MEMORY_BYTES = 200
        before = dump()
        with pytest.raises(PayloadTooLarge):
            desk.open(working_memory={"goal": "x" * 200})
        assert dump() == before

    def test_needs_an_account(self, db):
        with pytest.raises(InvalidRequest):
            SessionManager(Actor.system()).create(NewSession(), now=NOON)


class TestExternalId:
    @pytest.mark.parametrize("state", ["ACTIVE", "CLOSED", "EXPIRED"])
    def test_that_is_taken_is_refused_with_the_session_that_has_it(self, desk, state):
        session_id = session_in(desk, state)
        desk.sessions.resume(session_id=session_id)
        taken = desk.open(external_id="x")
        if state != "ACTIVE":
            {"CLOSED": desk.sessions.close, "EXPIRED": desk.sessions.expire}[state](
                session_id=taken
            )
        before = dump()
        with pytest.raises(AlreadyExists) as caught:
            desk.open(external_id="x", title="Other")
        assert caught.value.data == {"session_id": taken, "current_status": state}
        assert dump() == before

    def test_may_answer_the_existing_one_untouched(self, desk):
        session_id = desk.open(external_id="x", title="First", metadata={"a": 1})
        desk.append(session_id, user())
        before = dump()
        new = NewSession(
            external_id="x",
            title="Second",
            metadata={"b": 2},
            if_exists="return",
            working_memory={"goal": "other"},
        )
        session, is_new = desk.sessions.create(new, now=later(99))
        assert (session.session_id, is_new) == (session_id, False)
        assert dump() == before

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="its write transaction is the lock")
    def test_holds_the_existing_one_until_its_answer_is_recorded(self, desk):
        """Report DEL-02: a deletion in between left the answer in the idempotency record."""
        desk.open(external_id="x")
        with CaptureQueriesContext(connection) as captured:
            desk.sessions.create(NewSession(external_id="x", if_exists="return"))
        (look,) = [query["sql"] for query in captured if "FROM" in query["sql"]]
        assert look.endswith("FOR UPDATE")

    def test_is_each_accounts_own(self, desk):
        other = Desk()
        assert desk.open(external_id="x") != other.open(external_id="x")

    def test_of_a_deleted_session_is_free(self, desk):
        session_id = desk.open(external_id="x")
        desk.sessions.delete(session_id=session_id)
        new = NewSession(external_id="x", if_exists="return")
        session, is_new = desk.sessions.create(new)
        assert is_new
        assert session.session_id != session_id
        assert row(session_id).status == "DELETED"

    def test_that_is_taken_leaves_a_foreign_transaction_usable(self, desk):
        desk.open(external_id="x")
        with transaction.atomic():
            with pytest.raises(AlreadyExists):
                desk.open(external_id="x")
            assert desk.open(external_id="y")


class TestParent:
    @pytest.mark.parametrize("state", ["ACTIVE", "CLOSED", "EXPIRED", "LAPSED"])
    def test_may_be_any_living_session_of_the_account(self, desk, state):
        parent = session_in(desk, state)
        child = desk.open(parent_session_id=parent, now=later(100))
        assert row(child).parent_session_id == parent

    def test_of_another_account_is_not_found_like_an_unknown_one(self, desk):
        foreign = Desk().open()
        deleted = session_in(desk, "DELETED")
        before = dump()
        details = set()
        for parent in (foreign, deleted, "sess_unknown"):
            with pytest.raises(NotFound) as caught:
                desk.open(parent_session_id=parent)
            details.add(caught.value.detail.replace(parent, "…"))
        assert len(details) == 1
        assert dump() == before

    def test_that_is_deleted_leaves_the_child_whole(self, desk):
        parent = desk.open()
        child = desk.open(parent_session_id=parent)
        desk.append(child, user())
        before = row(child)
        desk.sessions.delete(session_id=parent)
        assert desk.sessions.purge(session_id=parent)
        assert row(child).parent_session_id == parent
        assert row(child).version == before.version
        assert len(desk.sessions.read_page(session_id=child, limit=100).messages) == 1


def patch(desk, session_id, **changes):
    return desk.sessions.update(
        session_id=session_id, changes=SessionChanges(changes), now=later(5)
    )


class TestUpdate:
    def test_changes_what_it_names_and_nothing_else(self, desk):
        session_id = desk.open(
            title="T", agent_id="a", metadata={"a": 1}, idle_timeout_seconds=60, external_id="x"
        )
        before = dump()["sessions_app.Session"][0]
        patch(desk, session_id, title="New")
        after = dump()["sessions_app.Session"][0]
        assert {name for name in after if after[name] != before[name]} == {
            "title",
            "search_text",
            "version",
            "updated_at",
        }

    def test_takes_a_title_away(self, desk):
        session_id = desk.open(title="T")
        patch(desk, session_id, title=None)
        assert (row(session_id).title, row(session_id).search_text) == (None, "")

    def test_of_nothing_is_no_change(self, desk):
        session_id = desk.open(title="T")
        before = dump()
        assert patch(desk, session_id).version == 1
        assert dump() == before

    @pytest.mark.parametrize("name", ["agent_id", "user_id"])
    def test_names_agent_and_user_once(self, desk, name):
        session_id = desk.open()
        patch(desk, session_id, **{name: "first"})
        patch(desk, session_id, **{name: "first"})
        before = dump()
        for other in ("second", "", None):
            with pytest.raises(InvalidRequest) as caught:
                patch(desk, session_id, **{name: other})
            assert list(caught.value.pointers) == [f"/{name}"]
        assert dump() == before

    @pytest.mark.parametrize("name", ["agent_id", "user_id", "title"])
    def test_refuses_what_is_too_long(self, desk, name):
        session_id = desk.open()
        before = dump()
        with pytest.raises(InvalidRequest):
            patch(desk, session_id, **{name: "x" * (LENGTHS[name] + 1)})
        assert dump() == before

    def test_keeps_the_search_text_true(self, desk):
        session_id = desk.open(title="Straße", external_id="Order-7")
        assert row(session_id).search_text == "strasse\norder-7"
        patch(desk, session_id, title="ÄRGER")
        assert row(session_id).search_text == "ärger\norder-7"

    def test_that_is_refused_in_one_field_changes_none(self, desk):
        session_id = desk.open()
        before = dump()
        with pytest.raises(InvalidRequest):
            patch(desk, session_id, title="New", metadata=[])
        assert dump() == before
