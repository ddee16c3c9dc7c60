"""Report FORK-01: forks that shared state with their original, or forgot some of it."""

import pytest

from sessions_app.errors import InvalidRequest, PayloadTooLarge, SessionDeleted
from sessions_app.models import Message, ToolCall
from sessions_app.services import NewFork
from tests.domain import (
    NOON,
    assistant,
    calling,
    calls_of,
    dump_of,
    later,
    moves,
    result,
    row,
    session_in,
    user,
)

SAME = ["account_id", "agent_id", "user_id", "title", "metadata", "last_sequence"]
SAME += ["head_sequence", "message_count", "tool_call_count", "open_tool_call_count"]
SAME += ["input_tokens", "output_tokens", "cost_nanousd"]


def fork(desk, session_id, at=None, now=None, **new):
    made = desk.sessions.fork(session_id=session_id, new=NewFork(at, **new), now=now)
    return made.session_id


def bodies(session_id):
    messages = Message.objects.filter(session=session_id).order_by("sequence")
    return [(message.sequence, message.body.text) for message in messages]


def goal(desk, session_id):
    return desk.sessions.read_memory(session_id=session_id)[1].value["goal"]


@pytest.fixture
def talk(desk):
    """Two turns: memory is written at the beginning, and after each; usage is said in both."""
    session_id = desk.open(
        title="T",
        agent_id="a",
        user_id="u",
        external_id="mine",
        metadata={"k": 1},
        working_memory={"goal": "first"},
        idle_timeout_seconds=60,
    )
    run = desk.run(session_id)
    desk.append(session_id, {"role": "system", "content": "s"}, user(client_message_id="m2"))
    desk.append(session_id, calling("c"), result("c"), run_id=run.run_id)
    desk.append(session_id, assistant(usage={"input_tokens": 3, "cost_usd": "0.5"}))
    desk.sessions.patch_memory(session_id=session_id, patch={"goal": "second"})
    desk.append(session_id, user(), calling("c", "d"), result("d", is_error=True))
    desk.append(session_id, assistant(usage={"output_tokens": 4}))
    desk.sessions.patch_memory(session_id=session_id, patch={"goal": "third"})
    return session_id


class TestFork:
    def test_begins_as_a_copy_under_names_of_its_own(self, desk, talk):
        forked = row(fork(desk, talk, now=later(5)))
        parent = row(talk)
        assert bodies(forked.pk) == bodies(talk)
        for name in SAME:
            assert getattr(forked, name) == getattr(parent, name), name
        assert (forked.parent_session_id, forked.forked_at_sequence) == (talk, 9)
        assert (forked.external_id, forked.run_count, forked.active_run_id) == (None, 0, None)
        assert (forked.version, forked.created_at, forked.expires_at) == (1, later(5), later(65))
        copies = Message.objects.filter(session=forked)
        assert not set(copies.values_list("run", flat=True)) - {None}
        assert set(copies.values_list("session_version", flat=True)) == {1}
        assert list(copies.values_list("created_at", flat=True).distinct()) == [NOON]
        assert not {m.pk for m in copies} & {m.pk for m in Message.objects.filter(session=talk)}
        assert [m.pk for m in copies.order_by("pk")] == [m.pk for m in copies.order_by("sequence")]

    def test_has_the_tool_calls_as_they_are(self, desk, talk):
        names = [field.attname for field in ToolCall._meta.concrete_fields]
        own = {"id", "session_id", "run_id", "session_version"}
        kept = [name for name in names if name not in own]

        def seen(session_id):
            return [[getattr(call, name) for name in kept] for call in calls_of(session_id)]

        forked = fork(desk, talk)
        assert seen(forked) == seen(talk)
        assert {call.run_id for call in calls_of(forked)} == {None}

    @pytest.mark.parametrize(
        ("at", "cut", "remembers"),
        [
            (0, 0, "first"),
            (2, 2, "first"),
            (3, 2, "first"),  # the call's result is the next
            (4, 4, "first"),
            (5, 5, "second"),
            (6, 6, "second"),
            (7, 6, "second"),  # one of the two calls is answered later
            (8, 8, "second"),
            (9, 9, "third"),
        ],
    )
    def test_ends_where_no_call_is_parted_from_its_result(self, desk, talk, at, cut, remembers):
        forked = fork(desk, talk, at)
        assert bodies(forked) == bodies(talk)[:cut]
        stored = row(forked)
        assert (stored.forked_at_sequence, stored.last_sequence, stored.message_count) == (cut,) * 3
        assert goal(desk, forked) == remembers
        assert stored.working_memory_version == 1
        assert stored.memory_revisions.get().sequence == cut
        calls = calls_of(forked)
        open_ones = [call for call in calls if call.finished_at is None]
        assert (stored.tool_call_count, stored.open_tool_call_count) == (len(calls), len(open_ones))
        assert stored.head_sequence == min(1, cut)
        assert stored.input_tokens == (3 if cut >= 5 else 0)

    def test_moves_down_a_chain_of_late_results(self, desk):
        """Each cut that comes into question lies between another call and its result."""
        session_id = desk.open()
        desk.append(session_id, user(), calling("c0"))
        for number in range(1, 40):
            desk.append(session_id, calling(f"c{number}"), result(f"c{number - 1}"))
        assert row(fork(desk, session_id, 70)).forked_at_sequence == 1

    def test_goes_on_by_itself(self, desk, talk):
        forked = fork(desk, talk, 8)
        before = dump_of(talk)
        desk.append(forked, result("c", "late"), user("another way"))
        desk.sessions.patch_memory(session_id=forked, patch={"goal": "other", "extra": {"a": 1}})
        desk.sessions.pop_messages(session_id=forked)
        desk.sessions.remove_message(session_id=forked, sequence=2)
        desk.run(forked)
        assert dump_of(talk) == before
        before = dump_of(forked)
        desk.append(talk, result("c", "here"), user())
        desk.sessions.delete(session_id=talk)
        desk.sessions.purge(session_id=talk)
        assert dump_of(forked) == before
        assert len(desk.sessions.read_page(session_id=forked, limit=50).messages) == 8

    def test_knows_client_ids_of_what_it_copied(self, desk, talk):
        forked = fork(desk, talk)
        again = desk.append(forked, user(client_message_id="m2"))
        assert (again.created_count, again.messages[0].sequence) == (0, 2)
        assert again.messages[0].session_id == forked

    def test_takes_title_and_metadata_if_given(self, desk, talk):
        forked = fork(desk, talk, title="New", metadata={"x": True})
        assert (row(forked).title, row(forked).metadata.value) == ("New", {"x": True})
        assert row(forked).search_text == "new"
        assert row(forked).metadata_terms.count() == 1

    @pytest.mark.parametrize("state", ["ACTIVE", "CLOSED", "EXPIRED", "LAPSED"])
    def test_is_active_whatever_the_original_is(self, desk, state):
        session_id = session_in(desk, state)
        moment = later(100) if state == "LAPSED" else NOON
        forked = fork(desk, session_id, now=moment)
        assert row(forked).status == "ACTIVE"
        assert row(session_id).status == {"LAPSED": "EXPIRED"}.get(state, state)
        # A closed session's open calls were cancelled, and stay so.
        assert row(forked).open_tool_call_count == (0 if state == "CLOSED" else 1)
        desk.append(forked, user(), now=moment)

    def test_of_a_deleted_session_is_refused(self, desk):
        with pytest.raises(SessionDeleted):
            fork(desk, session_in(desk, "DELETED"))

    def test_is_written_down_in_both(self, desk, talk):
        version = row(talk).version
        forked = fork(desk, talk, 4)
        assert moves(forked) == [(None, "ACTIVE", "account")]
        assert row(forked).events.get().reason == f"forked from {talk} at 4"
        event = row(talk).events.order_by("-sequence").first()
        assert (event.subject, event.subject_id, event.to_status) == ("content", forked, "FORKED")
        assert (event.session_version, row(talk).version) == (version + 1, version + 1)
        assert row(talk).last_activity_at == NOON

    def test_of_what_is_not_there_is_refused(self, desk, talk):
        before = dump_of(talk)
        with pytest.raises(InvalidRequest) as caught:
            fork(desk, talk, 10)
        assert list(caught.value.pointers) == ["/at_sequence"]
        with pytest.raises(PayloadTooLarge):
            fork(desk, talk, metadata={"x": "y" * 20_000})
        assert dump_of(talk) == before

    def test_keeps_places_that_are_empty(self, desk, talk):
        desk.sessions.remove_message(session_id=talk, sequence=6)
        forked = fork(desk, talk)
        assert bodies(forked) == bodies(talk)
        assert row(forked).message_count == 8

    def test_of_a_fork_names_that(self, desk, talk):
        first = fork(desk, talk)
        second = fork(desk, first, 5)
        assert (row(second).parent_session_id, row(second).last_sequence) == (first, 5)

    def test_of_an_empty_session_is_empty(self, desk):
        forked = row(fork(desk, desk.open()))
        assert (forked.forked_at_sequence, forked.working_memory_version) == (0, 0)
