"""Who sees what. The doors of the API have a table of their own; here are the managers'."""

import inspect

import pytest
from django.contrib.auth.models import Permission, User

from runs_app.services import NewRun, RunManager
from sessions_app.errors import NotFound, PermissionDenied
from sessions_app.models import Session
from sessions_app.services import Actor, NewSession, Outcome, SessionChanges, SessionManager
from sessions_app.states import ToolCallStatus
from tests.domain import Desk, calling, calls_of, dump, user

# Every public method of both managers, with arguments that would succeed for the owner.
SESSION_READS = {
    "get": {},
    "read_page": {"limit": 1},
    "read_message": {"sequence": 1},
    "read_memory": {},
    "read_messages": {"sequences": [1]},
    "memory_revision": {"version": 1},
    "memory_revisions": {},
    "tool_calls": {},
    "events": {},
}
SESSION_WRITES = {
    "update": {"changes": SessionChanges(title="x")},
    "close": {},
    "expire": {},
    "resume": {},
    "delete": {},
    "settle": {},
    "append": {"messages": [user()]},
    "remove_message": {"sequence": 1},
    "pop_messages": {},
    "replace_memory": {"document": {}},
    "patch_memory": {"patch": {}},
    "start_tool_call": {"name": "ls"},
    "fork": {},
    "rewind": {"to_sequence": 1},
    "compact": {"through_sequence": 1, "summary": "s"},
}
CALL_WRITES = {
    "finish_tool_call": {"outcome": Outcome(ToolCallStatus.SUCCEEDED)},
    "settle_tool_call": {},
}
RUN_WRITES = {
    "start": {},
    "resume": {},
    "wait": {"reason": "w"},
    "heartbeat": {},
    "complete": {},
    "fail": {"error": {}},
    "cancel": {},
}
# None names a session that could be another's, but for one that then does nothing
# (tests/races/test_plain_append.py).
ELSEWHERE = {
    *("create", "purge", "find", "find_events", "search", "restore"),
    "append_plainly",
}


def call_everything(desk, session_id, run_id, call_id):
    """One closure for each method on another's ids: (writes, closure)."""
    for name, more in (SESSION_READS | SESSION_WRITES).items():
        method = getattr(desk.sessions, name)
        yield name in SESSION_WRITES, lambda m=method, k=more: m(session_id=session_id, **k)
    yield False, lambda: desk.sessions.tool_call(id=call_id)
    for name, more in CALL_WRITES.items():
        method = getattr(desk.sessions, name)
        yield True, lambda m=method, k=more: m(id=call_id, **k)
    yield False, lambda: desk.runs.get(run_id=run_id)
    yield False, lambda: desk.runs.list_of(session_id=session_id)
    yield True, lambda: desk.runs.create(session_id=session_id, new=NewRun())
    yield True, lambda: desk.runs.interrupt_lapsed(session_id=session_id)
    for name, more in RUN_WRITES.items():
        method = getattr(desk.runs, name)
        yield True, lambda m=method, k=more: m(run_id=run_id, **k)


@pytest.fixture
def ids(desk):
    session_id = desk.open(working_memory={"goal": "g"})
    desk.append(session_id, calling("c1"))
    return session_id, desk.run(session_id).run_id, calls_of(session_id)[0].id


class TestAnotherAccount:
    def test_gets_the_answer_for_an_unknown_id(self, desk, ids):
        before = dump()
        unknown = ("sess_unknown", "run_unknown", "call_unknown")
        stranger = Desk()
        pairs = zip(
            call_everything(stranger, *ids), call_everything(stranger, *unknown), strict=True
        )
        for (_, foreign), (_, nothing) in pairs:
            details = []
            for attempt in (foreign, nothing):
                with pytest.raises(NotFound) as caught:
                    attempt()
                text = caught.value.detail
                for one, other in zip(ids, unknown, strict=True):
                    text = text.replace(one, other)
                details.append((text, caught.value.data))
            assert details[0] == details[1]
        assert dump() == before

    def test_lists_nothing(self, desk, ids):
        stranger = Desk()
        assert not stranger.runs.list_all().exists()
        assert not Session.objects.readable_by(stranger.actor).exists()

    def test_cannot_name_a_foreign_run_in_a_new_one(self, desk, ids):
        stranger = Desk()
        session_id = stranger.open()
        before = dump()
        for name in ("retry_of", "parent_run_id"):
            with pytest.raises(NotFound):
                stranger.run(session_id, **{name: ids[1]})
        assert dump() == before


class TestViewAll:
    @pytest.fixture
    def viewer(self, db):
        account = User.objects.create_user("viewer")
        account.user_permissions.add(Permission.objects.get(codename="view_all_sessions"))
        return Desk(User.objects.get(pk=account.pk))

    def test_may_read_everything_and_write_nothing(self, desk, ids, viewer):
        before = dump()
        for writes, attempt in call_everything(viewer, *ids):
            if writes:
                with pytest.raises(PermissionDenied):
                    attempt()
            else:
                attempt()
        assert dump() == before

    def test_may_not_make_children_of_others(self, desk, ids, viewer):
        with pytest.raises(NotFound):
            viewer.open(parent_session_id=ids[0])


class TestOperatorAndSystem:
    @pytest.mark.parametrize("kind", ["operator", "system"])
    def test_see_and_write_everything(self, desk, ids, kind):
        actor = (
            Actor.system() if kind == "system" else Actor.operator(User.objects.create_user("o"))
        )
        above = SessionManager(actor)
        assert above.get(session_id=ids[0]).session_id == ids[0]
        assert above.close(session_id=ids[0])[1]
        assert RunManager(actor).get(run_id=ids[1]).status == "CANCELLED"
        assert above.events(session_id=ids[0]).filter(actor_type=kind).exists()


class TestTheTable:
    def test_names_every_method_of_both_managers(self):
        tabled = {*SESSION_READS, *SESSION_WRITES, *CALL_WRITES, "tool_call"}
        assert methods(SessionManager) - tabled - ELSEWHERE == by_queryset(SessionManager)
        tabled = {*RUN_WRITES, "get", "list_of", "list_all", "interrupt_lapsed"}
        assert methods(RunManager) - tabled - ELSEWHERE == by_queryset(RunManager)


def methods(manager):
    members = inspect.getmembers(manager, inspect.isfunction)
    return {name for name, _ in members if not name.startswith("_")}


def by_queryset(manager):
    """Those that narrow rows which were found within the scope already."""
    return {
        name
        for name in methods(manager)
        if {"history", "session"} & set(inspect.signature(getattr(manager, name)).parameters)
    }


class TestCreate:
    def test_makes_it_the_actors_own(self, desk):
        session, _ = desk.sessions.create(NewSession())
        assert session.account == desk.user
