"""A session as a file and back: equal but for ids, or refused whole (report IMP-01)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.conf import settings as django_settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs_app.models import Run
from runs_app.services.transfer import contents
from sessions_app.errors import AlreadyExists, DossierError, InvalidJSON, InvalidRequest
from sessions_app.models import Message, Session, ToolCall
from sessions_app.services import Outcome, SessionChanges
from sessions_app.services.window import read_window
from sessions_app.states import ToolCallStatus
from sessions_app.usage import Usage
from tests.domain import Desk, assistant, calling, dump, later, result, row, user
from tests.exports import comparable, exported, imported, joined, objects
from tests.races.invariants import broken

pytestmark = pytest.mark.django_db

_ROOT = Path(__file__).resolve().parents[2]
_RECORDED = [
    *_ROOT.glob("tests/real/sessions/*.json"),
    *_ROOT.parent.glob("shared/data/sessions/*.json"),
]


def rules() -> dict[str, Any]:
    def select(query: str) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    return broken(select)


def assert_comes_back(desk: Desk, session_id: str) -> Session:
    """Export, import, export: the same file; and the one of the import's import again."""
    before = exported(session_id)
    copy = imported(desk, before)
    after = exported(copy.session_id)
    assert comparable(after) == comparable(before)
    assert comparable(exported(imported(desk, after).session_id)) == comparable(before)
    assert exported(session_id) == before
    assert rules() == {}
    return row(copy.session_id)


@pytest.fixture
def golden(desk: Desk) -> str:
    """A session with everything in it that can be there."""
    session_id = desk.open(
        title="Ünïcode \u202e 漢字",
        agent_id="coder",
        user_id="ada",
        metadata={"b": 2**70, "a": [1.5, None], "nul": "a\u0000b"},
        working_memory={"goal": "g", "extra": {"z": 1, "a": 2}},
        idle_timeout_seconds=3600,
    )
    desk.append(session_id, {"role": "system", "content": "Rules."}, user("Hi", name="ada"))
    first = desk.run(session_id, input={"n": 2**64}, metadata={"turn": 1}, model="m")
    said = calling("c1", "c1", "c2", arguments='{"deep": 1e2}', client_message_id="m1")
    usage = {"input_tokens": 10**12, "cost_usd": "0.000000001", "theirs": None}
    created = "2026-02-10T23:11:57+02:00"
    more = {"usage": usage, "created_at": created, "refusal": "", "reasoning_content": "hm"}
    desk.append(session_id, said | more, run_id=first.run_id)
    desk.append(session_id, result("c1", None), result("c1", [], is_error=True))
    child = desk.run(session_id, parent_run_id=first.run_id)
    call = desk.call(session_id, name="pytest", run_id=child.run_id, arguments=[1, "\u0000"])
    error = {"type": "ExitCode", "message": "1 failed"}
    outcome = Outcome(status=ToolCallStatus.FAILED, error=error, duration_ms=8)
    desk.sessions.finish_tool_call(id=call.id, outcome=outcome, now=later(1))
    null = Outcome(status=ToolCallStatus.SUCCEEDED, result=None, has_result=True)
    desk.sessions.finish_tool_call(id=desk.call(session_id).id, outcome=null, now=later(1))
    desk.runs.fail(run_id=first.run_id, error={"type": "t", "message": "m"}, usage=Usage(3, 4))
    desk.run(session_id, retry_of=first.run_id, start=False)
    desk.sessions.patch_memory(session_id=session_id, patch={"plan": ["a"]}, now=later(2))
    late = {"type": "tool_result", "tool_use_id": "c2", "content": "late"}
    thought = {"type": "thinking", "thinking": "…"}
    desk.append(session_id, user([late]), assistant([thought], status="incomplete"), now=later(3))
    item = {"type": "function_call", "call_id": "i1", "name": "f", "arguments": "not JSON"}
    answer = {"type": "function_call_output", "call_id": "i1", "output": {"ok": True}}
    desk.append(session_id, {"item": item}, {"item": answer}, {"item": {"type": "reasoning"}})
    desk.append(session_id, calling("gone"), calling("settled"), calling("open"))
    settled = ToolCall.objects.get(tool_call_id="settled")
    desk.sessions.settle_tool_call(id=settled.id, reason="nobody will")
    gone = ToolCall.objects.get(tool_call_id="gone")
    desk.sessions.settle_tool_call(id=gone.id, reason="nobody will")
    desk.sessions.remove_message(session_id=session_id, sequence=int(gone.message_sequence or 0))
    desk.append(session_id, user("twice", client_message_id="m2"))
    desk.sessions.pop_messages(session_id=session_id)
    desk.sessions.update(session_id=session_id, changes=SessionChanges(title="Another"))
    return session_id


class TestARoundTrip:
    @pytest.mark.parametrize("end", ["", "close", "expire", "resume"])
    def test_gives_back_everything(self, desk: Desk, golden: str, end: str) -> None:
        if end == "resume":
            desk.sessions.close(session_id=golden, now=later(4))
        if end:
            getattr(desk.sessions, end)(session_id=golden, reason="done", now=later(5))
        copy, source = assert_comes_back(desk, golden), row(golden)
        same = {"status", "head_sequence", "failed_run_count", "newest_run_status", "search_text"}
        same |= {"expires_at", "last_activity_at", "newest_run_deadline", "other_run_deadline"}
        for name in same:
            assert getattr(copy, name) == getattr(source, name), name
        columns = ("body", "text", "size", "role", "type", "client_message_id", "created_at")
        of = [Message.objects.filter(session=each).order_by("sequence") for each in (copy, source)]
        assert [*of[0].values_list(*columns)] == [*of[1].values_list(*columns)]
        told = ("arguments", "result", "size", "status", "started_at", "created_at")
        calls = [ToolCall.objects.filter(session=each).order_by("id") for each in (copy, source)]
        assert [*calls[0].values_list(*told)] == [*calls[1].values_list(*told)]
        runs = [Run.objects.filter(session=each).order_by("run_id") for each in (copy, source)]
        assert [*runs[0].values_list("size")] == [*runs[1].values_list("size")]

    def test_gives_back_what_was_forked_rewound_and_compacted(self, desk: Desk) -> None:
        session_id = desk.open()
        head = {"role": "system", "content": "Rules."}
        desk.append(session_id, head, user("a"), calling("c1"), result("c1"), calling("c2"))
        desk.sessions.rewind(session_id=session_id, to_sequence=4)
        desk.append(session_id, user("b"), user("c"))
        desk.sessions.compact(session_id=session_id, through_sequence=4, summary="So far.")
        desk.append(session_id, user("d"))
        desk.sessions.remove_message(session_id=session_id, sequence=6)
        fork = desk.sessions.fork(session_id=session_id)
        for each in (session_id, fork.session_id):
            copy, source = assert_comes_back(desk, each), row(each)
            assert source.compaction_sequence == 8
            for name in ("head_sequence", "compaction_sequence", "compacted_through"):
                assert getattr(copy, name) == getattr(source, name), name
            windows = [read_window(found, last_n=50) for found in (source, copy)]
            told = [[message.body for message in window.messages] for window in windows]
            assert told[0] == told[1]

    @pytest.mark.parametrize(("told", "kept"), [(True, True), (False, False), (..., True)])
    def test_keeps_who_gave_the_title(self, desk: Desk, golden: str, told: Any, kept: bool) -> None:
        """A file of before does not tell: then nobody sees it who may not read."""
        lines = objects(exported(golden))
        _changed("session", title_is_said=told)(lines)
        assert imported(desk, joined(lines)).title_is_said is kept

    def test_keeps_versions_in_their_order(self, desk: Desk, golden: str) -> None:
        lines = objects(exported(golden))
        last = max(number for number, each in enumerate(lines) if each["object"] == "message")
        lines[last] |= {"session_version": 1, "added_version": None}
        with pytest.raises(InvalidRequest) as refused:
            imported(desk, joined(lines))
        assert refused.value.data["line"] == last + 1

    @pytest.mark.parametrize("path", _RECORDED, ids=lambda path: path.stem)
    def test_gives_back_what_agents_recorded(self, desk: Desk, path: Path) -> None:
        messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
        session_id = desk.open(title=path.stem)
        desk.append(session_id, *messages)
        assert_comes_back(desk, session_id)

    @settings(
        max_examples=20,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(
        steps=st.lists(st.tuples(st.sampled_from(range(9)), st.integers(0, 5)), max_size=14),
        words=st.text(max_size=6),
    )
    def test_gives_back_whatever_was_done(
        self, desk: Desk, steps: list[tuple[int, int]], words: str
    ) -> None:
        session_id = desk.open(metadata={"w": words})
        play = _Play(desk, session_id, words)
        for number, (kind, choice) in enumerate(steps):
            play.step(kind, choice, later(number))
        # Past every lease: an import would change a run that is started.
        with time_machine.travel(later(1000), tick=False):
            assert_comes_back(desk, session_id)

    def test_names_the_items_that_had_the_names(self, desk: Desk) -> None:
        session_id = desk.open()
        same = {"role": "user", "content": "Hello", "id": "msg_same"}
        desk.append(session_id, user("0"))
        desk.append(session_id, same)
        desk.sessions.rewind(session_id=session_id, to_sequence=1)
        desk.append(session_id, same, same)
        copy = assert_comes_back(desk, session_id)
        for each in (session_id, copy.pk):
            found = Message.objects.filter(session=each).order_by("sequence")
            named = [*found.values_list("item_id", flat=True)]
            assert named == [None, "msg_same", "msg_same", None]

    def test_of_nothing_but_a_session(self, desk: Desk) -> None:
        assert_comes_back(desk, desk.open())

    def test_of_an_import_goes_on_where_the_session_was(self, desk: Desk, golden: str) -> None:
        copy = imported(desk, exported(golden))
        assert copy.imported_from == golden
        version, last = copy.version, copy.last_sequence
        open_call = ToolCall.objects.get(session=copy, tool_call_id="open")
        desk.append(copy.session_id, result("open"), user("next"))
        assert (row(copy.session_id).version, row(copy.session_id).last_sequence) == (
            version + 1,
            last + 2,
        )
        open_call.refresh_from_db()
        assert open_call.status == "SUCCEEDED"
        again = desk.append(copy.session_id, user("twice", client_message_id="m2"))
        assert again.created_count == 0
        queued = Run.objects.get(session=copy, status="PENDING")
        assert desk.runs.start(run_id=queued.run_id).attempt == 1
        assert row(golden).last_sequence == last
        assert rules() == {}


class _Play:
    """What may be done to a session, by a number that chooses what and one that chooses how."""

    def __init__(self, desk: Desk, session_id: str, words: str) -> None:
        self.desk, self.session_id, self.words = desk, session_id, words

    def step(self, kind: int, choice: int, now: Any) -> None:
        actions: list[Callable[[int, Any], Any]] = [
            self._say,
            self._call,
            self._answer,
            self._run,
            self._remove,
            self._record,
            self._remember,
            self._end_run,
            self._leave,
        ]
        try:
            actions[kind](choice, now)
        except DossierError:
            return  # what cannot be done is not done

    def _say(self, choice: int, now: Any) -> None:
        role = ("system", "user", "assistant")[choice % 3]
        self.desk.append(self.session_id, {"role": role, "content": self.words}, now=now)

    def _call(self, choice: int, now: Any) -> None:
        run = Run.objects.filter(session=self.session_id, status="RUNNING").first()
        ids = [f"c{number % 2}" for number in range(choice)]
        claim = {"run_id": run and run.run_id} if choice % 2 else {}
        self.desk.append(self.session_id, calling(*ids), now=now, **claim)

    def _answer(self, choice: int, now: Any) -> None:
        answer = result(f"c{choice % 2}", self.words, is_error=choice > 3)
        self.desk.append(self.session_id, answer, now=now)

    def _run(self, choice: int, now: Any) -> None:
        started = Run.objects.filter(session=self.session_id, status="RUNNING").first()
        parent = started.run_id if started and choice % 2 else None
        how = ("reject", "cancel", "queue")[choice % 3]
        self.desk.run(self.session_id, parent_run_id=parent, if_active=how, now=now)

    def _end_run(self, choice: int, now: Any) -> None:
        run = Run.objects.filter(session=self.session_id).order_by("-run_id").first()
        if run and choice % 2:
            self.desk.runs.cancel(run_id=run.run_id, reason=self.words, now=now)
        elif run:
            self.desk.runs.complete(run_id=run.run_id, output=self.words, now=now)

    def _remove(self, choice: int, now: Any) -> None:
        self.desk.sessions.pop_messages(session_id=self.session_id, turn=choice == 0, now=now)

    def _record(self, choice: int, now: Any) -> None:
        named = {"tool_call_id": f"c{choice % 2}"} if choice > 2 else {}
        call = self.desk.call(self.session_id, now=now, **named)
        if choice % 2:
            self.desk.sessions.settle_tool_call(id=call.id, reason="r", now=now)

    def _remember(self, choice: int, now: Any) -> None:
        patch = {"goal": self.words, "extra": {str(choice): choice}}
        self.desk.sessions.patch_memory(session_id=self.session_id, patch=patch, now=now)

    def _leave(self, choice: int, now: Any) -> None:
        end = ("close", "expire", "resume")[choice % 3]
        getattr(self.desk.sessions, end)(session_id=self.session_id, now=now)


class TestAStartedRun:
    def test_is_interrupted_by_an_import_and_what_hangs_on_it(self, desk: Desk) -> None:
        session_id = desk.open(idle_timeout_seconds=60)
        run = desk.run(session_id, lease_seconds=300)
        desk.run(session_id, parent_run_id=run.run_id, start=False)
        desk.run(session_id, if_active="queue")
        desk.append(session_id, calling("c1"), run_id=run.run_id)
        file = exported(session_id)
        with time_machine.travel(later(30), tick=False):
            copy = imported(desk, file)
        runs = Run.objects.filter(session=copy).order_by("run_id")
        assert [(each.status, each.ended_at) for each in runs] == [
            ("INTERRUPTED", later(30)),
            ("INTERRUPTED", later(30)),
            ("PENDING", None),
        ]
        assert (copy.active_run_id, copy.open_tool_call_count) == (None, 1)
        assert copy.expires_at == later(60)
        events = [*copy.events.order_by("-sequence").values_list("from_status", "to_status")[:3]]
        assert events == [
            ("PENDING", "INTERRUPTED"),
            ("RUNNING", "INTERRUPTED"),
            ("ACTIVE", "ACTIVE"),
        ]
        assert rules() == {}
        with time_machine.travel(later(31), tick=False):
            assert desk.runs.resume(run_id=runs[0].run_id).attempt == 2

    def test_that_lapsed_is_exported_as_what_it_is(self, desk: Desk) -> None:
        session_id = desk.open(idle_timeout_seconds=60)
        desk.run(session_id, lease_seconds=30)
        with time_machine.travel(later(600), tick=False):
            lines = objects(exported(session_id))
            copy = assert_comes_back(desk, session_id)
        run = next(line for line in lines if line["object"] == "run")
        assert (run["status"], run["ended_at"]) == ("INTERRUPTED", "2026-03-01T12:00:30.000000Z")
        assert (lines[1]["status"], copy.status) == ("EXPIRED", "EXPIRED")
        assert copy.expired_at == later(60)


class TestAnImport:
    def test_belongs_to_whoever_makes_it(self, desk: Desk) -> None:
        parent = desk.open()
        session_id = desk.open(parent_session_id=parent, external_id="mine")
        other = Desk()
        copy = imported(other, exported(session_id))
        assert copy.account_id == other.user.pk
        # Another's session is nobody's parent here; one's own still is.
        assert copy.parent_session_id is None
        desk.sessions.update(session_id=session_id, changes=SessionChanges(title="x"))
        with pytest.raises(AlreadyExists) as refused:
            imported(desk, exported(session_id))
        assert refused.value.data["session_id"] == session_id
        lines = objects(exported(session_id))
        lines[1]["external_id"] = "another"
        assert imported(desk, joined(lines)).parent_session_id == parent

    def test_counts_for_itself(self, desk: Desk, golden: str) -> None:
        lines = objects(exported(golden))
        for name in ("message_count", "tool_call_count", "run_count", "last_sequence"):
            del lines[1][name]
        copy, source = imported(desk, joined(lines)), row(golden)
        assert (copy.message_count, copy.run_count) == (source.message_count, source.run_count)
        assert rules() == {}


def _changed(kind: str, number: int = 0, **members: Any) -> Callable[[list[Any]], int]:
    """Members of the nth line of a kind, changed; ``...`` takes one away. Tells the line."""

    def change(lines: list[Any]) -> int:
        found = [index for index, line in enumerate(lines) if line["object"] == kind]
        line = lines[found[number]]
        line.update(members)
        for name in [name for name, value in members.items() if value is ...]:
            del line[name]
        return found[number] + 1

    return change


def _without(kind: str, number: int = 0, blamed: int = 0) -> Callable[[list[Any]], int]:
    """The nth line of a kind left out, for which another is to blame, so many further on."""

    def change(lines: list[Any]) -> int:
        found = [index for index, line in enumerate(lines) if line["object"] == kind]
        del lines[found[number]]
        return found[number] + 1 + blamed

    return change


def _twice(kind: str, number: int = 0) -> Callable[[list[Any]], int]:
    def change(lines: list[Any]) -> int:
        found = [index for index, line in enumerate(lines) if line["object"] == kind][number]
        lines.insert(found, lines[found])
        return found + 2

    return change


def _event_first(lines: list[Any]) -> int:
    lines.insert(2, next(line for line in lines if line["object"] == "event"))
    return 4


_OTHER = "run_" + "0" * 26
_YEARS = "2226-01-01T00:00:00Z"
_BAD: dict[str, Callable[[list[Any]], int]] = {
    "another format": _changed("dossier.export", object="chat"),
    "a newer version": _changed("dossier.export", version=2),
    "a version that is none": _changed("dossier.export", version=True),
    "a session of another name": _changed("session", session_id="sess_" + "0" * 26),
    "an owner": _changed("session", account="root"),
    "a deleted session": _changed("session", status="DELETED", deleted_at=...),
    "a status without its time": _changed("session", status="CLOSED"),
    "a future activity": _changed("session", last_activity_at=_YEARS),
    "a time without an offset": _changed("session", created_at="2026-01-01T00:00:00"),
    "a time before all": _changed("session", created_at="0001-01-01T00:00:00Z"),
    "too much metadata": _changed("session", metadata={"x": "y" * 20_000}),
    "a title that is neither said nor given": _changed("session", title_is_said="x"),
    "a title that is too long": _changed("session", title="x" * 501),
    "counts that do not add up": _changed("session", message_count=1),
    "calls that do not add up": _changed("session", open_tool_call_count=0),
    "a version that nothing can follow": _changed("session", version=2**63 - 1),
    "usage of words": _changed("session", usage={"input_tokens": "many"}),
    "usage of another kind": _changed("session", usage=None),
    "a gap in the messages": _changed("message", 3, sequence=9),
    "a message twice": _twice("message", 3),
    "a message left out": _without("message", 3),
    "a role that is none": _changed("message", 1, role="king"),
    "a message without a body": _changed("message", 1, message=...),
    "a body that is none": _changed("message", 1, message={"role": "user", "content": 5}),
    "a name that is not its body's": _changed("message", 1, client_message_id="x"),
    "a type that is not its body's": _changed("message", 1, type="reasoning"),
    "a run of another session": _changed("message", 1, run_id=_OTHER),
    "a version of the future": _changed("message", 1, session_version=10**6),
    "a run twice": _twice("run"),
    "a parent of another session": _changed("run", 1, parent_run_id=_OTHER),
    "a run without its time": _changed("run", 0, ended_at=None),
    "an unfinished run without a lease": _changed("run", 2, lease_expires_at=None),
    "an error of another kind": _changed("run", 0, error=["x"]),
    "a call twice": _twice("tool_call"),
    "a call that no message makes": _changed("tool_call", 0, message_sequence=1),
    "a call of another name": _changed("tool_call", 0, tool_call_id="ghost"),
    "an answer before its call": _changed("tool_call", 0, result_sequence=1),
    "an answer that is nowhere": _changed("tool_call", 0, result_sequence=8),
    "an answer without its content": _changed("tool_call", 0, result=...),
    "an open call that has ended": _changed("tool_call", 0, status="RUNNING"),
    "a status of calls that is none": _changed("tool_call", 0, status="OPEN"),
    "an unknown memory": _changed("memory_revision", 0, working_memory={"mood": "good"}),
    "a gap in the memory": _changed("memory_revision", 1, version=3),
    "a memory of a later time": _changed("memory_revision", 1, sequence=99),
    "an event of another kind": _changed("event", 0, subject="world"),
    "an event of another session": _changed("event", 0, subject_id="sess_" + "0" * 26),
    "an event of a message for a run": _changed("event", 0, subject="run"),
    "an event of another status": _changed("event", 0, to_status="RUNNING"),
    "a deletion": _changed("event", 0, to_status="DELETED"),
    "an event that does not go on": _changed("event", 1, from_status="COMPLETED"),
    "an event by nobody": _changed("event", 0, actor={"type": "god", "id": ""}),
    "an event left out": _without("event", 0),
    "the last line left out": _without("dossier.end"),
    "a wrong last line": _changed("dossier.end", messages=3),
    "another line after the last": _twice("dossier.end"),
    "a line that is unknown": _changed("event", 0, object="attachment"),
    "lines out of order": _event_first,
}


def test_items_are_found_by_their_ids_in_the_copy(desk: Desk) -> None:
    """Also one that is called as what stands for what was said before."""
    session_id = desk.open()
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}
    desk.append(session_id, user(), {"item": item}, assistant(id="msg_1"))
    copy = assert_comes_back(desk, session_id)
    found = Message.objects.filter(session=copy).order_by("sequence")
    assert list(found.values_list("item_id", flat=True)) == [None, "cmp_1", "msg_1"]


class TestABadFile:
    @pytest.mark.parametrize("change", _BAD.values(), ids=_BAD)
    def test_is_refused_whole_and_its_line_named(
        self, desk: Desk, golden: str, change: Callable[[list[Any]], int]
    ) -> None:
        lines = objects(exported(golden))
        number = change(lines)
        before = dump()
        with pytest.raises(InvalidRequest) as refused:
            imported(desk, joined(lines))
        assert refused.value.data == {"line": number}, refused.value.detail
        assert refused.value.detail.startswith(f"Line {number}: ")
        assert dump() == before

    def test_whose_result_has_no_call_is_refused(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, calling("c1"), result("c1"))
        lines = [line for line in objects(exported(session_id)) if line["object"] != "tool_call"]
        lines[-1]["tool_calls"] = 0
        for name in ("tool_call_count", "open_tool_call_count"):
            del lines[1][name]
        with pytest.raises(InvalidRequest, match=r"^Line 3: .*makes a call 'c1'"):
            imported(desk, joined(lines))
        lines[2]["message"]["tool_calls"] = []
        with pytest.raises(InvalidRequest, match=r"^Line 4: .*answers a call 'c1'"):
            imported(desk, joined(lines))

    @pytest.mark.parametrize("parents", [(None, 0, 1, 2), (1, 0), (0,)], ids=str)
    def test_whose_runs_stand_too_deep_or_in_a_circle_is_refused(
        self, desk: Desk, parents: tuple[int | None, ...]
    ) -> None:
        session_id = desk.open()
        for _ in parents:
            desk.run(session_id, if_active="queue", start=False)
        lines = objects(exported(session_id))
        runs = [line for line in lines if line["object"] == "run"]
        for run, parent in zip(runs, parents, strict=True):
            run["parent_run_id"] = None if parent is None else runs[parent]["run_id"]
        with pytest.raises(InvalidRequest, match=r"^Line [36]: /parent_run_id"):
            imported(desk, joined(lines))

    @pytest.mark.parametrize(
        ("spoil", "line"),
        [
            (lambda file: b"", 1),
            (lambda file: b"\xef\xbb\xbf" + file, 1),
            (lambda file: b"%PDF-1.7\n" + file, 1),
            (lambda file: file[:-60], 5),
            (lambda file: file.replace(b"words", b"w\xff\xfeds"), 3),
            (lambda file: file.replace(b"words", b"w\x00ds"), 3),
            (lambda file: file.replace(b"words", b"\\ud83d"), 3),
            (lambda file: file.replace(b'"role":', b'"role":"user","role":'), 3),
            (lambda file: file.replace(b'"words"', b"[" * 200 + b"]" * 200), 3),
            (lambda file: file.replace(b'"words"', b"NaN"), 3),
            (lambda file: file.replace(b"words", b"w" * 5000), 3),
            (lambda file: file.replace(b'"message":{', b'"x":1,"message":{'), 3),
            (lambda file: b"[]\n" + file, 1),
        ],
    )
    def test_of_other_bytes_is_refused(
        self, desk: Desk, settings: Any, spoil: Callable[[bytes], bytes], line: int
    ) -> None:
        settings.MAX_BODY_BYTES = 1000
        session_id = desk.open()
        desk.append(session_id, user("words"))
        file = exported(session_id)
        with pytest.raises((InvalidJSON, InvalidRequest)) as refused:
            imported(desk, spoil(file))
        assert refused.value.data == {"line": line}, refused.value.detail
        assert Session.objects.count() == 1

    def test_is_none_for_its_blank_lines(self, desk: Desk) -> None:
        file = exported(desk.open())
        copy = imported(desk, b"\n" + file.replace(b"\n", b"\r\n") + b" \n")
        assert comparable(exported(copy.session_id)) == comparable(file)

    def test_may_hold_an_escaped_nul_as_any_json_may(self, desk: Desk) -> None:
        session_id = desk.open()
        desk.append(session_id, user("words"))
        copy = imported(desk, exported(session_id).replace(b"words", b"w\\u0000"))
        assert Message.objects.get(session=copy).body.value["content"] == "w\ufffd"


class TestALongSession:
    def test_is_read_in_portions_by_its_size(self, desk: Desk, monkeypatch: Any) -> None:
        session_id = desk.open()
        for number in range(12):
            desk.append(session_id, user(f"{number}" * 1000), calling(f"c{number}"))
        monkeypatch.setattr(contents, "_MOST_BYTES", 3_000)
        whole = exported(session_id)
        monkeypatch.setattr(contents, "_MOST_BYTES", 1 << 20)
        with CaptureQueriesContext(connection) as few:
            assert exported(session_id) == whole
        # The session, its two kinds of rows by size, its memory and its events.
        assert len(few) <= 12
        assert django_settings.MAX_IMPORT_BYTES == 2 * 1024**3
