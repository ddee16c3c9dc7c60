import pytest

from sessions_app.errors import (
    InvalidRequest,
    OrphanToolResult,
    SessionClosed,
    SessionExpired,
    VersionMismatch,
)
from sessions_app.models import Message
from sessions_app.services import Outcome
from sessions_app.services.window import read_window
from sessions_app.states import ToolCallStatus
from tests.domain import (
    assistant,
    calling,
    calls_of,
    dump,
    later,
    moves,
    result,
    row,
    session_in,
    user,
)

SYSTEM = {"role": "system", "content": "s"}


def rewind(desk, session_id, to, **more):
    return desk.sessions.rewind(session_id=session_id, to_sequence=to, **more)[1:]


def live(session_id):
    return [m.sequence for m in Message.objects.filter(session=session_id).live()]


def remember(desk, session_id, goal):
    desk.sessions.patch_memory(session_id=session_id, patch={"goal": goal})


def memory(desk, session_id):
    session, text = desk.sessions.read_memory(session_id=session_id)
    return text.value["goal"], session.working_memory_version


class TestRewind:
    def test_supersedes_what_came_later_and_keeps_it(self, desk):
        session_id = desk.open(idle_timeout_seconds=60)
        desk.append(session_id, user("1"), assistant("2"), user("3"), assistant("4"))
        assert rewind(desk, session_id, 2, now=later(5)) == (2, True)
        stored = row(session_id)
        assert (stored.message_count, stored.last_sequence, stored.version) == (2, 4, 3)
        assert (stored.last_activity_at, stored.expires_at) == (later(5), later(65))
        assert live(session_id) == [1, 2]
        page = desk.sessions.read_page(session_id=session_id, limit=9, include_superseded=True)
        assert [m.body.value["content"] for m in page.messages] == ["1", "2", "3", "4"]
        gone = Message.objects.get(session=session_id, sequence=4)
        assert (gone.superseded_at, gone.session_version) == (later(5), 3)

    def test_lets_the_sequences_go_on(self, desk):
        session_id = desk.open()
        desk.append(session_id, user(), user(), user())
        rewind(desk, session_id, 1)
        assert desk.append(session_id, user(), expected_last_sequence=3).messages[0].sequence == 4
        assert rewind(desk, session_id, 3) == (1, True)  # what came after the newest up to there
        assert live(session_id) == [1]

    def test_says_who_did_it_and_why(self, desk):
        session_id = desk.open()
        second = desk.append(session_id, user(), user()).messages[1]
        rewind(desk, session_id, 1, reason="wrong way")
        assert moves(session_id, "content") == [(None, "SUPERSEDED", "account")]
        event = row(session_id).events.get(subject="content")
        assert (event.subject_id, event.reason) == (second.pk, "wrong way")

    @pytest.mark.parametrize("to", [2, 3])
    def test_to_where_it_is_does_nothing(self, desk, to):
        session_id = desk.open(working_memory={"goal": "a"})
        desk.append(session_id, user(), user(), user())
        rewind(desk, session_id, 2)
        remember(desk, session_id, "b")
        before = dump()
        assert rewind(desk, session_id, to) == (2, False)
        assert dump() == before

    @pytest.mark.parametrize(
        ("to", "cut"), [(1, 1), (2, 1), (3, 1), (4, 4), (5, 4), (6, 4), (7, 4), (8, 8)]
    )
    def test_parts_no_call_from_its_result(self, desk, to, cut):
        session_id = desk.open()
        desk.append(session_id, user(), calling("a", "b"), result("b"), result("a"))
        desk.append(session_id, calling("c"), calling("d"), result("c"), result("d"))
        assert rewind(desk, session_id, to)[0] == cut

    def test_takes_calls_along_and_closes_what_is_open(self, desk):
        session_id = desk.open()
        desk.append(session_id, calling("kept"), user(), calling("a", "b"), result("a"))
        rewind(desk, session_id, 2, now=later(3))
        kept, a, b = calls_of(session_id)
        assert (kept.status, kept.superseded_at) == ("PENDING", None)
        assert (a.status, a.superseded_at) == ("SUCCEEDED", later(3))
        assert (b.status, b.error_type, b.finished_at) == ("CANCELLED", "superseded", later(3))
        stored = row(session_id)
        assert (stored.tool_call_count, stored.open_tool_call_count) == (3, 1)

    def test_leaves_no_call_for_a_late_result(self, desk):
        """It would stand in the context without its call (report PAIR-04)."""
        session_id = desk.open()
        run = desk.run(session_id)
        desk.append(session_id, user(), calling("a", "b"), run_id=run.run_id)
        desk.sessions.settle_tool_call(id=calls_of(session_id)[1].id)
        rewind(desk, session_id, 1)
        for tool_call_id in ("a", "b"):
            with pytest.raises(OrphanToolResult):
                desk.append(session_id, result(tool_call_id))
        # What was done is never forgotten.
        outcome = Outcome(ToolCallStatus.SUCCEEDED, result=1, has_result=True)
        call = desk.sessions.finish_tool_call(id=calls_of(session_id)[0].id, outcome=outcome)
        assert (call.status, call.result.value) == ("CANCELLED", 1)
        desk.append(session_id, calling("a"), result("a"), run_id=run.run_id)
        assert [c.result_sequence for c in calls_of(session_id)] == [None, None, 4]

    def test_makes_an_id_new_for_who_records_a_start(self, desk):
        session_id = desk.open()
        desk.append(session_id, user(), calling("a"))
        rewind(desk, session_id, 1)
        call, is_new = desk.sessions.start_tool_call(
            session_id=session_id, name="ls", tool_call_id="a"
        )
        assert is_new
        desk.append(session_id, calling("a"))
        assert calls_of(session_id)[1].message_sequence == 3
        assert call.id == calls_of(session_id)[1].id

    def test_keeps_the_runs_as_they_are(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        desk.append(session_id, user(), calling("a"), run_id=run.run_id)
        rewind(desk, session_id, 0)
        assert row(session_id).active_run_id == run.run_id
        desk.append(session_id, user(), run_id=run.run_id, attempt=1)
        desk.runs.complete(run_id=run.run_id)

    def test_knows_the_client_ids_of_what_it_took_away(self, desk):
        """A retry that comes late must not be a second message (report DUP-01)."""
        session_id = desk.open()
        sent = user(client_message_id="m")
        desk.append(session_id, user(), sent)
        rewind(desk, session_id, 1)
        again = desk.append(session_id, sent)
        assert (again.created_count, again.messages[0].superseded_at is None) == (0, False)

    def test_removes_content_of_what_was_superseded_too(self, desk):
        session_id = desk.open()
        desk.append(session_id, user(), calling("a"), result("a", "secret"))
        rewind(desk, session_id, 1)
        desk.sessions.remove_message(session_id=session_id, sequence=3)
        assert "secret" not in str(dump())
        assert row(session_id).open_tool_call_count == 0
        desk.sessions.remove_message(session_id=session_id, sequence=2)
        stored = row(session_id)
        assert (stored.message_count, stored.tool_call_count) == (1, 0)

    def test_counts_no_removed_message_twice(self, desk):
        session_id = desk.open()
        desk.append(session_id, user(), user(), user())
        desk.sessions.remove_message(session_id=session_id, sequence=2)
        rewind(desk, session_id, 1)
        assert row(session_id).message_count == 1

    @pytest.mark.parametrize("state", ["CLOSED", "EXPIRED"])
    def test_needs_an_active_session(self, desk, state):
        session_id = session_in(desk, state)
        with pytest.raises((SessionClosed, SessionExpired)):
            rewind(desk, session_id, 1)

    def test_to_what_is_not_there_is_refused(self, desk):
        session_id = desk.open()
        desk.append(session_id, user())
        before = dump()
        with pytest.raises(InvalidRequest):
            rewind(desk, session_id, 2)
        with pytest.raises(VersionMismatch):
            rewind(desk, session_id, 0, if_match=1)
        assert dump() == before


class TestTheMemoryOfThen:
    @pytest.fixture
    def talk(self, desk):
        session_id = desk.open(working_memory={"goal": "0"})
        for number in "1234":
            desk.append(session_id, user())
            remember(desk, session_id, number)
        return session_id

    @pytest.mark.parametrize("to", [0, 1, 3])
    def test_becomes_a_new_revision(self, desk, talk, to):
        rewind(desk, talk, to)
        assert memory(desk, talk) == (str(to), 6)
        revision = row(talk).memory_revisions.get(version=6)
        assert (revision.sequence, revision.session_version) == (4, row(talk).version)

    def test_is_what_it_was_before_the_next_message_of_the_history(self, desk, talk):
        rewind(desk, talk, 2)
        remember(desk, talk, "do not do that again")
        desk.append(talk, user())
        remember(desk, talk, "5")
        rewind(desk, talk, 2)
        assert memory(desk, talk)[0] == "do not do that again"
        rewind(desk, talk, 1)
        assert memory(desk, talk)[0] == "1"

    def test_is_left_alone_where_it_is_the_same(self, desk):
        session_id = desk.open(working_memory={"goal": "0"})
        desk.append(session_id, user(), user())
        rewind(desk, session_id, 1)
        assert memory(desk, session_id) == ("0", 1)

    def test_may_have_been_empty(self, desk):
        session_id = desk.open()
        desk.append(session_id, user())
        desk.append(session_id, user())
        rewind(desk, session_id, 1)
        assert memory(desk, session_id) == ("", 0)
        desk.append(session_id, user())
        remember(desk, session_id, "late")
        rewind(desk, session_id, 1)
        assert memory(desk, session_id) == ("", 2)


class TestTheHead:
    @pytest.mark.parametrize("to", [0, 1, 2])
    def test_goes_on_where_nothing_else_is_left(self, desk, to):
        session_id = desk.open()
        desk.append(session_id, SYSTEM, SYSTEM, user(), user())
        rewind(desk, session_id, to)
        desk.append(session_id, SYSTEM, user(), user(), user())
        window = read_window(row(session_id), last_n=1)
        assert [m.sequence for m in window.messages] == [*range(1, to + 1), 5, 8]

    def test_is_closed_by_what_is_left(self, desk):
        session_id = desk.open()
        desk.append(session_id, SYSTEM, user(), user())
        rewind(desk, session_id, 2)
        desk.append(session_id, SYSTEM, user())
        window = read_window(row(session_id), last_n=1)
        assert [m.sequence for m in window.messages] == [1, 5]
