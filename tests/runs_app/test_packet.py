"""What a packet holds, and that it keeps its size."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs_app.models import Run
from runs_app.services import packet as module
from runs_app.services.packet import Packet, read_packet
from sessions_app.rows import ToolCallRow
from tests.domain import NOON, Desk, assistant, calling, later, result, row, user

LARGE = 1000


def packet_of(session_id: str, *, last_n: int = 50, now: datetime = NOON) -> Packet:
    return read_packet(session=row(session_id), last_n=last_n, now=now)


def ids(rows: Sequence[Run | ToolCallRow]) -> list[str]:
    return [each.run_id if isinstance(each, Run) else each.id for each in rows]


class TestAPacket:
    def test_has_the_newest_twenty_tool_calls(self, desk: Desk) -> None:
        session_id = desk.open()
        calls = [desk.call(session_id, name=f"t{number}").pk for number in range(25)]
        packet = packet_of(session_id)
        assert ids(packet.tool_history) == calls[:4:-1]
        assert ids(packet.open_tool_calls) == packet.open_call_ids == calls

    def test_has_the_oldest_hundred_open_calls(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, calling(*[f"c{number}" for number in range(120)]))
        packet = packet_of(session_id)
        assert [call.tool_call_id for call in packet.open_tool_calls] == [
            f"c{number}" for number in range(100)
        ]

    def test_has_no_answered_call_among_the_open_ones(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, calling("c1", "c2"), result("c1"))
        assert [call.tool_call_id for call in packet_of(session_id).open_tool_calls] == ["c2"]

    def test_has_no_call_that_came_after_the_session_was_read(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, calling("c1"))
        session = row(session_id)
        desk.append(session_id, calling("c2"))
        packet = read_packet(session=session, last_n=50, now=NOON)
        for calls in (packet.open_tool_calls, packet.tool_history):
            assert [call.tool_call_id for call in calls] == ["c1"]

    def test_has_the_newest_ten_runs(self, desk: Desk) -> None:
        session_id = desk.open()
        runs = [desk.run(session_id, start=False).pk for _ in range(12)]
        assert ids(packet_of(session_id).runs) == runs[:1:-1]

    def test_finds_the_active_run_behind_its_children(self, desk: Desk) -> None:
        session_id = desk.open()
        parent = desk.run(session_id)
        for _ in range(12):
            desk.run(session_id, parent_run_id=parent.pk)
        packet = packet_of(session_id)
        assert parent.pk not in ids(packet.runs)
        assert packet.active_run == parent

    def test_finds_the_active_run_behind_any_number_of_others(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_SURVEY_LENGTH", 3)
        session_id = desk.open()
        active = desk.run(session_id)
        for _ in range(5):
            desk.run(session_id, start=False)
        assert packet_of(session_id).active_run == active

    def test_has_the_newest_interrupted_run_beside_a_newer_one(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.run(session_id, now=NOON)
        second = desk.run(session_id, now=later(400))
        third = desk.run(session_id, now=later(800))
        packet = packet_of(session_id, now=later(900))
        assert (packet.interrupted_run, packet.active_run) == (second, third)

    def test_takes_no_child_for_the_interrupted_run(self, desk: Desk) -> None:
        session_id = desk.open()
        parent = desk.run(session_id, lease_seconds=3600)
        desk.run(session_id, parent_run_id=parent.pk, lease_seconds=10)
        packet = packet_of(session_id, now=later(60))
        assert (packet.active_run, packet.interrupted_run) == (parent, None)

    def test_takes_a_waiting_run_for_active(self, desk: Desk) -> None:
        session_id = desk.open()
        run = desk.run(session_id)
        desk.runs.wait(run_id=run.pk, reason="approval", now=NOON)
        assert packet_of(session_id).active_run == run

    def test_takes_a_lapsed_run_for_interrupted(self, desk: Desk) -> None:
        session_id = desk.open()
        run = desk.run(session_id)
        packet = packet_of(session_id, now=later(300))
        assert (packet.active_run, packet.interrupted_run) == (None, run)

    def test_is_empty_for_an_empty_session(self, desk: Desk) -> None:
        packet = packet_of(desk.open())
        assert not any([packet.runs, packet.tool_history, packet.open_tool_calls])
        assert packet.active_run is packet.interrupted_run is None
        assert packet.working_memory.value["goal"] == ""
        assert packet.truncated is False


class TestItsSize:
    @pytest.fixture(autouse=True)
    def small_pages(self, settings: Any) -> None:
        settings.MAX_PAGE_BYTES = 5 * LARGE

    def test_is_shared_by_all_its_lists(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, user("x" * LARGE))
        for _ in range(4):
            desk.run(session_id, input="x" * LARGE, start=False)
            desk.call(session_id, arguments="x" * LARGE)
        packet = packet_of(session_id)
        held: list[Any] = [*packet.runs, *packet.tool_history, *packet.open_tool_calls]
        held += packet.window.messages
        assert sum(each.size for each in held) <= 5 * LARGE
        assert len(packet.window.messages) == 1
        assert len(packet.open_tool_calls) == 3
        assert packet.truncated is True

    def test_keeps_the_newest_message_and_the_run_to_go_on_with(self, desk: Desk) -> None:
        session_id = desk.open()
        run = desk.run(session_id, input="x" * 9 * LARGE)
        desk.append(session_id, user(), assistant("x" * 9 * LARGE))
        packet = packet_of(session_id)
        assert packet.active_run == run
        assert [message.sequence for message in packet.window.messages] == [2]
        assert packet.runs == []
        assert packet.truncated is True

    def test_counts_what_a_run_ended_with(self, desk: Desk) -> None:
        session_id = desk.open()
        for _ in range(2):
            run = desk.run(session_id)
            desk.runs.complete(run_id=run.pk, output="x" * 4 * LARGE, now=NOON)
        packet = packet_of(session_id)
        assert ids(packet.runs) == [run.pk]
        assert packet.truncated is True

    def test_keeps_all_ids_of_the_open_calls(self, desk: Desk) -> None:
        session_id = desk.open()
        calls = [desk.call(session_id, arguments="x" * 4 * LARGE).pk for _ in range(3)]
        packet = packet_of(session_id)
        assert ids(packet.open_tool_calls) == calls[:1]
        assert packet.open_call_ids == calls


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads a plan of SQLite")
class TestItsPlans:
    """Nothing is scanned; and what is looked up by its session alone is read in the order of an
    index, so that the limit of its subquery ends it."""

    ORDERED = ("tool_call_by_session", "tool_call_open", "run_by_session")

    def steps(self, desk: Desk) -> list[str]:
        session_id = desk.open(working_memory={"goal": "G"})
        desk.run(session_id, now=NOON)
        desk.run(session_id, now=later(400), lease_seconds=3600)
        desk.append(session_id, {"role": "system", "content": "Rules."}, calling("c1", "c2"))
        desk.append(session_id, *[user()] * 200, result("c1"))
        session = row(session_id)
        with CaptureQueriesContext(connection) as captured:
            read_packet(session=session, last_n=50, now=later(500))
        assert len(captured) == 5  # survey, late result's call; messages, tool calls, runs
        with connection.cursor() as cursor:
            plans = [
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}").fetchall()
                for query in captured
            ]
        return [step for plan in plans for *_, step in plan]

    def test_read_by_an_index_whatever_the_session_holds(self, desk: Desk) -> None:
        steps = self.steps(desk)
        assert not [step for step in steps if step.startswith("SCAN")]
        assert not [step for step in steps if "TEMP B-TREE" in step]
        by_session = [step for step in steps if "(session_id=?)" in step]
        owned = [step for step in by_session if not step.startswith("SEARCH sessions_app_session")]
        assert owned
        assert all(any(name in step for name in self.ORDERED) for step in owned), owned
