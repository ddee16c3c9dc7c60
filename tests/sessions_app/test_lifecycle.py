from typing import Any

import pytest

from sessions_app.errors import (
    InvalidRequest,
    InvalidTransition,
    NotFound,
    SessionClosed,
    SessionDeleted,
    SessionExpired,
    VersionMismatch,
)
from sessions_app.services import Actor, Outcome, SessionChanges
from sessions_app.states import ToolCallStatus, effective_status
from tests.domain import (
    NOON,
    Desk,
    calling,
    calls_of,
    domain_models,
    dump,
    later,
    moves,
    row,
    run_row,
    session_in,
    system,
    user,
)


def moment_of(state):
    return later(61) if state == "LAPSED" else later(1)


# Every writing method of SessionManager that needs an ACTIVE session.
WRITES = {
    "update": lambda desk, key, **at: desk.sessions.update(
        session_id=key, changes=SessionChanges(title="New"), **at
    ),
    "append": lambda desk, key, **at: desk.append(key, user(), **at),
    "remove_message": lambda desk, key, **at: desk.sessions.remove_message(
        session_id=key, sequence=1, **at
    ),
    "pop_messages": lambda desk, key, **at: desk.sessions.pop_messages(session_id=key, **at),
    "replace_memory": lambda desk, key, **at: desk.sessions.replace_memory(
        session_id=key, document={"goal": "New"}, **at
    ),
    "patch_memory": lambda desk, key, **at: desk.sessions.patch_memory(
        session_id=key, patch={"goal": "New"}, **at
    ),
    "start_tool_call": lambda desk, key, **at: desk.call(key, **at),
    "create_run": lambda desk, key, **at: desk.run(key, **at),
}
CALL_WRITES = {
    "finish_tool_call": lambda desk, key, **at: desk.sessions.finish_tool_call(
        id=key, outcome=Outcome(ToolCallStatus.SUCCEEDED), **at
    ),
    "settle_tool_call": lambda desk, key, **at: desk.sessions.settle_tool_call(id=key, **at),
}
REFUSALS = {
    "CLOSED": (SessionClosed, "CLOSED"),
    "EXPIRED": (SessionExpired, "EXPIRED"),
    "LAPSED": (SessionExpired, "EXPIRED"),
    "DELETED": (SessionDeleted, "DELETED"),
}


class TestWrite:
    @pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
    def test_raises_the_version_of_an_active_session_by_one(self, desk, write):
        session_id = session_in(desk, "ACTIVE")
        version = row(session_id).version
        write(desk, session_id, now=later(1))
        assert row(session_id).version == version + 1
        assert row(session_id).updated_at == later(1)

    @pytest.mark.parametrize("state", REFUSALS)
    @pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
    def test_is_refused_in_any_other_status_and_stores_nothing(self, desk, write, state):
        session_id = session_in(desk, state)
        before = dump()
        expected, status = REFUSALS[state]
        with pytest.raises(expected) as caught:
            write(desk, session_id, now=moment_of(state))
        assert caught.value.data["current_status"] == status
        assert caught.value.data["session_id"] == session_id
        assert dump() == before

    @pytest.mark.parametrize("write", CALL_WRITES.values(), ids=CALL_WRITES)
    def test_of_a_tool_call_raises_the_version_by_one(self, desk, write):
        session_id = session_in(desk, "ACTIVE")
        version = row(session_id).version
        write(desk, calls_of(session_id)[0].id, now=later(1))
        assert row(session_id).version == version + 1

    @pytest.mark.parametrize("state", REFUSALS)
    @pytest.mark.parametrize("write", CALL_WRITES.values(), ids=CALL_WRITES)
    def test_of_a_tool_call_is_refused_in_any_other_status(self, desk, write, state):
        session_id = session_in(desk, state)
        call_id = calls_of(session_id)[0].id
        before = dump()
        # A tool call of a deleted session is gone: its id tells nothing any more.
        expected = NotFound if state == "DELETED" else REFUSALS[state][0]
        with pytest.raises(expected):
            write(desk, call_id, now=moment_of(state))
        assert dump() == before

    @pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
    def test_never_makes_an_expired_session_active_again(self, desk, write):
        session_id = session_in(desk, "LAPSED")
        with pytest.raises(SessionExpired):
            write(desk, session_id, now=later(61))
        assert row(session_id).status == "ACTIVE"
        assert effective_status("ACTIVE", expires_at=row(session_id).expires_at, now=later(61)) == (
            "EXPIRED"
        )

    @pytest.mark.parametrize(
        "name", ["update", "append", "remove_message", "pop_messages", "start_tool_call"]
    )
    def test_compares_the_version_first(self, desk, name):
        session_id = session_in(desk, "ACTIVE")
        before = dump()
        with pytest.raises(VersionMismatch) as caught:
            WRITES[name](desk, session_id, if_match=1)
        assert caught.value.data == {"version": row(session_id).version}
        assert dump() == before
        WRITES[name](desk, session_id, if_match=row(session_id).version)

    def test_with_the_version_that_it_returned_never_conflicts(self, desk):
        """Even while the clock stands: the version is a count, no time."""
        session, _ = desk.sessions.resume(session_id=desk.open())
        version = session.version
        for _ in range(5):
            version = desk.append(session.session_id, user(), if_match=version).version
        assert row(session.session_id).version == version == 6

    def test_with_an_old_object_at_hand_takes_nothing_back(self, desk):
        session_id = desk.open(title="Old")
        stale = row(session_id)
        desk.sessions.update(session_id=session_id, changes=SessionChanges(title="New"))
        desk.append(stale.session_id, user())
        assert (row(session_id).title, row(session_id).version) == ("New", 3)


MOVES = {
    "close": ("close", "CLOSED"),
    "expire": ("expire", "EXPIRED"),
    "resume": ("resume", "ACTIVE"),
    "delete": ("delete", "DELETED"),
}
# What each transition does in each state: "moves", "stays", or the refusal.
OUTCOMES: dict[tuple[str, str], Any] = {
    ("close", "ACTIVE"): "moves",
    ("close", "CLOSED"): "stays",
    ("close", "EXPIRED"): InvalidTransition,
    ("close", "LAPSED"): InvalidTransition,
    ("close", "DELETED"): SessionDeleted,
    ("expire", "ACTIVE"): "moves",
    ("expire", "CLOSED"): InvalidTransition,
    ("expire", "EXPIRED"): "stays",
    ("expire", "DELETED"): SessionDeleted,
    ("resume", "ACTIVE"): "stays",
    ("resume", "CLOSED"): "moves",
    ("resume", "EXPIRED"): "moves",
    ("resume", "DELETED"): SessionDeleted,
    ("delete", "ACTIVE"): "moves",
    ("delete", "CLOSED"): "moves",
    ("delete", "EXPIRED"): "moves",
    ("delete", "DELETED"): SessionDeleted,
}


def transit(desk, name, session_id, **more):
    return getattr(desk.sessions, name)(session_id=session_id, **more)


class TestTransition:
    @pytest.mark.parametrize(
        ("name", "state"), [key for key, outcome in OUTCOMES.items() if outcome == "moves"]
    )
    def test_writes_one_event_with_who_and_why(self, desk, name, state):
        session_id = session_in(desk, state)
        before = moves(session_id, "session")
        transit(desk, name, session_id, reason="because", now=later(1))
        assert row(session_id).status == MOVES[name][1]
        assert moves(session_id, "session") == [*before, (state, MOVES[name][1], "account")]
        event = row(session_id).events.get(sequence=row(session_id).event_count)
        assert (event.subject, event.subject_id) == ("session", session_id)
        assert (event.reason, event.actor_id) == ("because", desk.user.username)
        assert event.created_at == later(1)
        assert event.session_version == row(session_id).version

    @pytest.mark.parametrize(
        ("name", "state"), [key for key, outcome in OUTCOMES.items() if outcome == "stays"]
    )
    def test_to_the_status_that_it_has_does_nothing(self, desk, name, state):
        session_id = session_in(desk, state)
        before = dump()
        changed = transit(desk, name, session_id, now=later(1))[1]
        assert not changed
        assert dump() == before

    @pytest.mark.parametrize(
        ("name", "state"),
        [key for key, outcome in OUTCOMES.items() if not isinstance(outcome, str)],
    )
    def test_that_has_no_arrow_is_refused_and_stores_nothing(self, desk, name, state):
        session_id = session_in(desk, state)
        before = dump()
        with pytest.raises(OUTCOMES[name, state]) as caught:
            transit(desk, name, session_id, now=moment_of(state))
        status = "EXPIRED" if state == "LAPSED" else state
        assert caught.value.data["current_status"] == status
        assert dump() == before

    @pytest.mark.parametrize("name", MOVES)
    def test_compares_the_version_first(self, desk, name):
        session_id = session_in(desk, "ACTIVE")
        before = dump()
        with pytest.raises(VersionMismatch):
            transit(desk, name, session_id, if_match=1)
        assert dump() == before

    @pytest.mark.parametrize("name", MOVES)
    def test_says_whether_it_changed(self, desk, name):
        session_id = session_in(desk, "CLOSED" if name == "resume" else "ACTIVE")
        answer = transit(desk, name, session_id)
        expected = {"close": True, "expire": True, "resume": "CLOSED"}
        assert name == "delete" or answer[1] == expected[name]

    @pytest.mark.parametrize("name", MOVES)
    @pytest.mark.parametrize("state", ["ACTIVE", "CLOSED"])
    def test_takes_a_reason_of_a_thousand_characters(self, desk, name, state):
        with pytest.raises(InvalidRequest) as caught:
            transit(desk, name, session_in(desk, state), reason="x" * 1001)
        assert list(caught.value.pointers) == ["/reason"]

    @pytest.mark.parametrize("name", MOVES)
    def test_keeps_a_long_reason_whole(self, desk, name):
        session_id = session_in(desk, "CLOSED" if name == "resume" else "ACTIVE")
        transit(desk, name, session_id, reason="ä" * 1000)
        event = row(session_id).events.order_by("-sequence").first()
        assert event.reason == "ä" * 1000

    def test_by_an_operator_says_so(self, desk):
        session_id = session_in(desk, "ACTIVE")
        operator = Desk(actor=Actor.operator(desk.user))
        operator.sessions.expire(session_id=session_id, reason="tidy")
        assert moves(session_id, "session")[-1] == ("ACTIVE", "EXPIRED", "operator")

    def test_sets_the_time_of_its_status_and_no_other(self, desk):
        session_id = session_in(desk, "ACTIVE")
        seen = []
        for name, at in [("close", 1), ("resume", 2), ("expire", 3), ("resume", 4)]:
            transit(desk, name, session_id, now=later(at))
            session = row(session_id)
            seen.append((session.closed_at, session.expired_at, session.deleted_at))
        assert seen == [
            (later(1), None, None),
            (None, None, None),
            (None, later(3), None),
            (None, None, None),
        ]

    def test_counts_its_events_without_a_gap(self, desk):
        session_id = session_in(desk, "ACTIVE")
        for name in ("close", "resume", "expire", "resume", "delete"):
            transit(desk, name, session_id)
        events = row(session_id).events.order_by("sequence")
        assert [event.sequence for event in events] == [*range(1, row(session_id).event_count + 1)]


class TestCloseAndExpire:
    @pytest.mark.parametrize("name", ["close", "expire"])
    def test_keep_every_byte(self, desk, name):
        session_id = session_in(desk, "ACTIVE")
        before = dump()
        transit(desk, name, session_id)
        after = dump()
        for label in ("Message", "WorkingMemoryRevision", "MetadataTerm"):
            assert after[f"sessions_app.{label}"] == before[f"sessions_app.{label}"]
        session, now_closed = before["sessions_app.Session"][0], after["sessions_app.Session"][0]
        for field in ("title", "metadata", "user_id", "agent_id", "external_id", "message_count"):
            assert now_closed[field] == session[field]
        assert desk.sessions.read_memory(session_id=session_id)[1].value["goal"] == "g"
        assert len(desk.sessions.read_page(session_id=session_id, limit=100).messages) == 2

    def test_close_cancels_unfinished_runs_and_open_calls(self, desk):
        session_id = session_in(desk, "ACTIVE")
        active, queued = desk.run(session_id), desk.run(session_id, start=False)
        desk.sessions.close(session_id=session_id, reason="done", now=later(5))
        assert {run_row(run).status for run in (active, queued)} == {"CANCELLED"}
        assert run_row(active).ended_at == later(5)
        assert run_row(active).cancel_reason == "done"
        assert [call.status for call in calls_of(session_id)] == ["CANCELLED"]
        assert (row(session_id).active_run_id, row(session_id).open_tool_call_count) == (None, 0)

    def test_expire_interrupts_unfinished_runs_and_leaves_calls_open(self, desk):
        session_id = session_in(desk, "ACTIVE")
        active, queued = desk.run(session_id), desk.run(session_id, start=False)
        desk.sessions.expire(session_id=session_id, now=later(5))
        assert {run_row(run).status for run in (active, queued)} == {"INTERRUPTED"}
        assert run_row(active).ended_at == later(5)
        assert [call.status for call in calls_of(session_id)] == ["PENDING"]
        assert (row(session_id).active_run_id, row(session_id).open_tool_call_count) == (None, 1)

    def test_are_one_change_whatever_they_settle(self, desk):
        session_id = session_in(desk, "ACTIVE")
        desk.run(session_id)
        desk.run(session_id, start=False)
        version = row(session_id).version
        session, _ = desk.sessions.close(session_id=session_id)
        assert session.version == version + 1
        assert {event.session_version for event in session.events.order_by("-sequence")[:3]} == {
            version + 1
        }


class TestActivity:
    """Expiry: what postpones it, and what does not."""

    ACTIVITIES = {name: WRITES[name] for name in WRITES if name != "update"} | {
        "start_queued_run": lambda desk, key, **at: desk.runs.start(
            run_id=desk.run(key, start=False).run_id, **at
        ),
        "heartbeat": lambda desk, key, **at: desk.runs.heartbeat(
            run_id=desk.run(key, lease_seconds=10).run_id, **at
        ),
        "wait": lambda desk, key, **at: desk.runs.wait(
            run_id=desk.run(key, lease_seconds=10).run_id, reason="w", timeout_seconds=5, **at
        ),
        "complete": lambda desk, key, **at: desk.runs.complete(run_id=desk.run(key).run_id, **at),
        "fail": lambda desk, key, **at: desk.runs.fail(run_id=desk.run(key).run_id, error={}, **at),
        "cancel": lambda desk, key, **at: desk.runs.cancel(run_id=desk.run(key).run_id, **at),
        "finish_tool_call": lambda desk, key, **at: CALL_WRITES["finish_tool_call"](
            desk, calls_of(key)[0].id, **at
        ),
    }

    @pytest.mark.parametrize("act", ACTIVITIES.values(), ids=ACTIVITIES)
    def test_postpones_expiry(self, desk, act):
        session_id = desk.open(idle_timeout_seconds=600)
        desk.append(session_id, user(), calling("c1"))
        act(desk, session_id, now=later(5))
        assert row(session_id).last_activity_at == later(5)
        assert row(session_id).expires_at == later(605)

    def test_is_a_resume(self, desk):
        session_id = session_in(desk, "CLOSED")
        desk.sessions.resume(session_id=session_id, now=later(1000))
        assert row(session_id).expires_at == later(1060)
        assert row(session_id).last_activity_at == later(1000)

    @pytest.mark.parametrize("field", ["title", "metadata", "user_id", "agent_id"])
    def test_is_not_a_patch(self, desk, field):
        session_id = desk.open(idle_timeout_seconds=60)
        value = {"a": 1} if field == "metadata" else "x"
        changes = SessionChanges({field: value})
        desk.sessions.update(session_id=session_id, changes=changes, now=later(30))
        assert (row(session_id).last_activity_at, row(session_id).expires_at) == (NOON, later(60))

    def test_is_no_read(self, desk):
        session_id = session_in(desk, "ACTIVE")
        before = dump()
        desk.sessions.get(session_id=session_id)
        desk.sessions.read_page(session_id=session_id, limit=100)
        desk.sessions.read_memory(session_id=session_id)
        [*desk.sessions.events(session_id=session_id)]
        [*desk.sessions.tool_calls(session_id=session_id)]
        assert dump() == before

    def test_is_no_message_that_was_stored_already(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        desk.append(session_id, user(client_message_id="m"))
        before = dump()
        desk.append(session_id, user(client_message_id="m"), now=later(30))
        assert dump() == before

    def test_is_no_maintenance(self, desk):
        session_id = session_in(desk, "ACTIVE")
        desk.run(session_id, lease_seconds=10)
        system().settle(session_id=session_id, now=later(20))
        assert row(session_id).last_activity_at == NOON
        assert row(session_id).expires_at == later(60)


class TestEveryTable:
    def test_with_rows_of_a_session_carries_the_version_that_made_them(self):
        """`session_version` on messages, tool calls, runs, memory revisions and events."""
        carrying = {
            model.__name__
            for model in domain_models()
            if "session_version" in {field.name for field in model._meta.fields}
        }
        assert carrying == {"Message", "ToolCall", "Run", "WorkingMemoryRevision", "SessionEvent"}

    def test_carries_it_truly(self, desk):
        session_id = desk.open()
        message = desk.append(session_id, user()).messages[0]
        desk.sessions.patch_memory(session_id=session_id, patch={"goal": "g"})
        run = desk.run(session_id)
        call = desk.call(session_id)
        revision = row(session_id).memory_revisions.get()
        made = [message, revision, run_row(run), call]
        assert [made.session_version for made in made] == [2, 3, 4, 5]
        assert row(session_id).version == 5
