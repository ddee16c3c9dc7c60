"""What a change comes with."""

from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs_app.services import following
from runs_app.services.following import tell
from sessions_app.services.changes import Place, Reached, reached_after
from tests.domain import calling, result, row, user

BEGINNING = Reached(Place(0, -1))


def told(session_id, reached=BEGINNING):
    return list(tell(row(session_id), reached))


class TestAMessage:
    def test_comes_with_the_calls_that_it_made_or_answered(self, desk):
        session_id = desk.open()
        desk.append(session_id, user(), calling("a", "b"))
        desk.append(session_id, result("b"))
        messages = told(session_id)[1:]
        assert [one.thing.sequence for one in messages] == [1, 2, 3]
        assert [[call.tool_call_id for call in one.calls] for one in messages] == [
            [],
            ["a", "b"],
            ["b"],
        ]
        assert [call.status for call in messages[1].calls] == ["PENDING", "SUCCEEDED"]

    def test_that_was_removed_is_told_as_it_is_now_and_again_with_the_event(self, desk):
        session_id = desk.open()
        desk.append(session_id, user("secret"))
        desk.sessions.remove_message(session_id=session_id, sequence=1)
        added, removed = told(session_id)[1:]
        assert (added.reached.place, removed.reached.place) == (Place(2, 0), Place(3, 0))
        assert added.thing == removed.thing
        assert added.thing.removed_at is not None
        assert (added.event, removed.event.to_status) == (None, "REMOVED")

    def test_whose_call_is_gone_leaves_the_calls_place_empty(self, desk):
        session_id = desk.open()
        desk.call(session_id, tool_call_id="a")
        desk.append(session_id, calling("a"))
        desk.sessions.pop_messages(session_id=session_id)
        assert [(one.subject, one.thing is None) for one in told(session_id)] == [
            ("session", False),
            ("tool_call", True),
            ("content", False),
            ("content", False),
        ]


class TestTheRest:
    def test_comes_as_it_is_now(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        call = desk.call(session_id, run_id=run.run_id)
        desk.sessions.patch_memory(session_id=session_id, patch={"goal": "g"})
        desk.runs.complete(run_id=run.run_id, output={"done": True})
        found = told(session_id)
        runs = [one for one in found if one.subject == "run"]
        assert [one.event.to_status for one in runs] == ["PENDING", "RUNNING", "COMPLETED"]
        assert {one.thing.status for one in runs} == {"COMPLETED"}
        calls = [one.thing for one in found if one.subject == "tool_call"]
        assert [(each.id, each.status) for each in calls] == [(call.id, "FAILED")] * 2
        (memory,) = [one.thing for one in found if one.subject == "memory"]
        assert memory.memory.value["goal"] == "g"


class TestAPage:
    def test_ends_where_messages_are_large(self, desk, monkeypatch):
        monkeypatch.setattr(following, "MOST_BYTES", 5000)
        session_id = desk.open()
        desk.append(session_id, *[user("x" * 2000) for _ in range(6)])
        reached, pages = BEGINNING, []
        while page := told(session_id, reached):
            reached = page[-1].reached
            pages.append([one.thing.sequence for one in page if one.subject == "content"])
        assert pages == [[1, 2], [3, 4], [5, 6]]

    def test_says_when_it_is_the_last_one(self, desk, monkeypatch):
        monkeypatch.setattr(following, "MOST_CHANGES", 3)
        session_id = desk.open()
        desk.append(session_id, *[user() for _ in range(4)])
        first = told(session_id)
        assert [one.is_last for one in first] == [False] * 3
        second = told(session_id, first[-1].reached)
        assert [one.is_last for one in second] == [False, True]

    def test_costs_the_same_for_one_message_as_for_many(self, desk):
        counts = []
        for length in (1, 90):
            session_id = desk.open()
            desk.append(session_id, *[calling(f"c{number}") for number in range(length)])
            session = row(session_id)
            reached = reached_after(session, Place(1, 0))
            with CaptureQueriesContext(connection) as queries:
                assert len(list(tell(session, reached))) == length
            counts.append(len(queries))
        assert counts == [5, 5]  # messages twice, notes, calls made, calls answered
