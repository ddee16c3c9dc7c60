"""What a session's changes are, where they stand, and that nothing moves them."""

from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.services import Outcome, SessionChanges
from sessions_app.services.changes import (
    Place,
    Reached,
    current_versions,
    reached_after,
    read_changes,
)
from sessions_app.states import ToolCallStatus
from tests.domain import assistant, calling, later, result, row, user
from tests.tampering import owner_of_the_tables

BEGINNING = Place(0, 0)


def changes(session_id, after=BEGINNING, *, most=1000):
    """All changes after a place, read so many at a time, each with its own place."""
    session = row(session_id)
    reached = reached_after(session, after)
    found = []
    while page := read_changes(session, reached, most=most):
        for change in page:
            reached = reached.by(change)
            found.append((reached.place, change.subject, change.subject_id))
    return found


def finish(desk, call):
    outcome = Outcome(ToolCallStatus.SUCCEEDED, result=1, has_result=True)
    desk.sessions.finish_tool_call(id=call.id, outcome=outcome)


def eventful(desk):
    """A session to which everything has happened that can, some of it in one version."""
    session_id = desk.open(title="T", idle_timeout_seconds=60, working_memory={"goal": "g"})
    named = {"session_id": session_id}
    desk.append(session_id, user(), calling("a", "b"), user("gone"), assistant())
    desk.append(session_id, result("b"), result("a"))
    run = desk.run(session_id, input="x", lease_seconds=10)
    call = desk.call(session_id, run_id=run.run_id)
    desk.call(session_id, run_id=run.run_id)
    finish(desk, call)
    desk.sessions.update(**named, changes=SessionChanges(title="U"))
    desk.sessions.patch_memory(**named, patch={"goal": "h"})
    desk.runs.complete(run_id=run.run_id)
    desk.sessions.settle_tool_call(id=desk.call(session_id).id, reason="lost")
    desk.run(session_id, lease_seconds=10, start=False)
    # Past the deadline of both: two runs are interrupted, the session expires, then resumes.
    desk.sessions.resume(**named, now=later(days=2))
    desk.append(session_id, user("late"), calling("c"), now=later(days=2))
    desk.sessions.close(**named, now=later(days=2))
    desk.sessions.resume(**named, now=later(days=2))
    return session_id


def shake(desk, session_id):
    """Remove and change what earlier changes are about."""
    desk.sessions.remove_message(session_id=session_id, sequence=3, now=later(days=2))
    for _ in range(3):
        desk.sessions.pop_messages(session_id=session_id, now=later(days=2))
    desk.sessions.update(
        session_id=session_id, changes=SessionChanges(title="V"), now=later(days=2)
    )


class TestTheChangesOfASession:
    def test_are_there_for_every_version_in_order(self, desk):
        session_id = eventful(desk)
        places = [place for place, *_ in changes(session_id)]
        assert places == sorted(places)
        assert {place.version for place in places} == set(range(1, row(session_id).version + 1))
        for place, following in pairwise(places):
            assert following in {Place(place.version, place.number + 1), Place(place[0] + 1, 0)}

    def test_are_of_every_kind(self, desk):
        session_id = eventful(desk)
        kinds = {subject for _, subject, _ in changes(session_id)}
        assert kinds == {"session", "run", "tool_call", "content", "memory"}

    @pytest.mark.parametrize("most", [1, 3])
    def test_are_the_same_in_pages(self, desk, most):
        session_id = eventful(desk)
        assert changes(session_id, most=most) == changes(session_id)

    def test_go_on_after_each_of_them(self, desk):
        session_id = eventful(desk)
        whole = changes(session_id)
        for count, (place, *_) in enumerate(whole, 1):
            assert changes(session_id, place, most=2) == whole[count:], place

    def test_go_on_after_a_whole_version(self, desk):
        session_id = eventful(desk)
        whole = changes(session_id)
        for version in range(row(session_id).version + 1):
            rest = [change for change in whole if change[0].version > version]
            assert changes(session_id, Place(version, 10**18)) == rest

    def test_stay_where_they_are_whatever_happens_to_what_they_are_about(self, desk):
        session_id = eventful(desk)
        before = changes(session_id)
        shake(desk, session_id)
        after = changes(session_id)
        assert after[: len(before)] == before
        versions = {place.version for place, *_ in after}
        assert versions == set(range(1, row(session_id).version + 1))
        for count, (place, *_) in enumerate(after, 1):
            assert changes(session_id, place, most=3) == after[count:], place

    def test_end_with_the_session_as_it_was_read(self, desk):
        session_id = eventful(desk)
        session = row(session_id)
        reached = reached_after(session, Place(session.version, 10**18))
        shake(desk, session_id)
        desk.append(session_id, user(), now=later(days=2))
        assert read_changes(session, reached, most=10) == []

    def test_of_one_session_are_no_others(self, desk):
        first, second = desk.open(), desk.open()
        for session_id in (first, second, first):
            desk.append(session_id, user())
            desk.call(session_id)
        assert len(changes(first)) == 5
        assert len(changes(second)) == 3
        assert current_versions([first, second]) == {first: 5, second: 3}


class TestReadingThem:
    def test_costs_the_same_however_many_there_are(self, desk):
        counts = []
        for length in (1, 300):
            session_id = desk.open()
            for _ in range(length):
                desk.append(session_id, user(), user())
            session = row(session_id)
            with CaptureQueriesContext(connection) as queries:
                reached = reached_after(session, Place(session.version, 0))
                assert len(read_changes(session, reached, most=10)) == 1
            counts.append(len(queries))
        assert counts[0] == counts[1] <= 9

    def test_asks_only_for_what_there_can_be(self, desk):
        session_id = desk.open()
        desk.append(session_id, user())
        session = row(session_id)
        reached = reached_after(session, BEGINNING)
        with CaptureQueriesContext(connection) as queries:
            (change,) = read_changes(session, reached, most=10)[1:]
        assert change.is_message
        assert len(queries) == 3  # events, messages, notes


def test_an_event_of_content_that_is_no_messages_is_about_the_session(desk):
    session_id = desk.open()
    with owner_of_the_tables():
        row(session_id).events.update(subject="content")
    assert changes(session_id) == [(Place(1, 0), "session", session_id)]


def test_an_append_leaves_no_note(desk):
    session_id = desk.open()
    desk.append(session_id, user(), calling("a"))
    desk.append(session_id, result("a"))
    assert not row(session_id).change_notes.exists()


def test_a_purge_takes_the_notes(desk):
    session_id = eventful(desk)
    assert row(session_id).change_notes.exists()
    desk.sessions.delete(session_id=session_id, now=later(days=2))
    desk.sessions.purge(session_id=session_id)
    assert not row(session_id).change_notes.exists()


def test_nothing_is_reached_at_the_beginning(desk):
    assert reached_after(row(desk.open()), Place(0, 0)) == Reached(Place(0, -1))
