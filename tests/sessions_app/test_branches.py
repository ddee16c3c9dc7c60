"""Whatever is appended, rewound, compacted and forked, in whatever order: the counters are what is
counted, and the window is one that a model accepts."""

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.errors import InvalidRequest, OrphanToolResult
from sessions_app.models import Message, ToolCall
from sessions_app.services import NewFork
from sessions_app.services.window import read_window
from sessions_app.usage import Usage
from tests.domain import Desk, assistant, calling, result, row, user
from tests.races.invariants import broken

pytestmark = pytest.mark.django_db

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "sessions"
OWN = Path(__file__).parents[1] / "real" / "sessions"
HEAD_ROLES = {"system", "developer"}

numbers = st.integers(0, 30)
KINDS = ["system", "say", "call", "answer", "answer", "settle", "remove", "pop", "remember"]
KINDS += ["rewind", "compact", "fork", "fork and go on"]
steps = st.lists(st.tuples(st.sampled_from(KINDS), numbers), min_size=5, max_size=18)


class Story:
    """A session, to which things happen; what is not possible is refused, and changes nothing."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.session_id = desk.open()
        self.forks = 0

    def play(self, kind: str, number: int) -> None:
        getattr(self, f"_{kind.replace(' ', '_')}")(number)

    def _system(self, number: int) -> None:
        self._append({"role": "system", "content": "Rules."})

    def _say(self, number: int) -> None:
        said = assistant(f"It is {number}.", usage={"output_tokens": number})
        self._append(*[user(f"What is {number}?"), said][: 1 + number % 2])

    def _call(self, number: int) -> None:
        # Few ids, which are used again.
        self._append(calling(*["abc"[(number + each) % 3] for each in range(1 + number % 3)]))

    def _answer(self, number: int) -> None:
        with suppress(OrphanToolResult):  # of no call, or of one that was superseded
            self._append(result("abc"[number % 3]))

    def _settle(self, number: int) -> None:
        if call := ToolCall.objects.filter(session=self.session_id).open().first():
            self.desk.sessions.settle_tool_call(id=call.id)

    def _remove(self, number: int) -> None:
        called = ToolCall.objects.filter(session=self.session_id).exclude(message_sequence=None)
        removable = Message.objects.filter(session=self.session_id, removed_at=None)
        removable = removable.exclude(sequence__in=called.values("message_sequence"))
        if found := list(removable.order_by("sequence")):
            sequence = found[number % len(found)].sequence
            self.desk.sessions.remove_message(session_id=self.session_id, sequence=sequence)

    def _pop(self, number: int) -> None:
        if row(self.session_id).message_count:
            self.desk.sessions.pop_messages(session_id=self.session_id)

    def _remember(self, number: int) -> None:
        patch = {"goal": str(number)}
        self.desk.sessions.patch_memory(session_id=self.session_id, patch=patch)

    def _rewind(self, number: int) -> None:
        to = self._place(number)
        _, cut, _ = self.desk.sessions.rewind(session_id=self.session_id, to_sequence=to)
        assert cut <= to

    def _compact(self, number: int) -> None:
        place = self._place(number)
        with suppress(InvalidRequest):  # nothing that it could stand for
            message = self.desk.sessions.compact(
                session_id=self.session_id, through_sequence=place, summary="So far."
            )
            assert message.body.value["through_sequence"] <= place

    def _fork(self, number: int) -> None:
        self._forked(number)

    def _fork_and_go_on(self, number: int) -> None:
        self.session_id = self._forked(number)

    def _forked(self, number: int) -> str:
        new = NewFork(at_sequence=self._place(number))
        made = self.desk.sessions.fork(session_id=self.session_id, new=new)
        self.forks += 1
        check(made.session_id)
        return made.session_id

    def _place(self, number: int) -> int:
        return number % (int(row(self.session_id).last_sequence) + 1)

    def _append(self, *messages: dict[str, Any]) -> None:
        self.desk.append(self.session_id, *messages)


def check(session_id: str) -> None:
    """What no statement of the database can say; the rest is `broken`."""
    session = row(session_id)
    stored = list(Message.objects.filter(session=session).order_by("sequence"))
    counted = sum(
        (Usage.from_client(m.body.value.get("usage"), pointer="") for m in stored), Usage()
    )
    assert Usage.of(session) == counted or any(m.removed_at for m in stored) or session.run_count
    for last_n in (1, 2, 3, 5, 1000):
        check_window(session, stored, last_n)


def check_window(session: Any, stored: list[Message], last_n: int) -> None:
    window = read_window(session, last_n=last_n)
    found = [message.sequence for message in window.messages]
    assert len(set(found)) == len(found)
    live = {m.sequence for m in stored if m.removed_at is None and m.superseded_at is None}
    assert live.issuperset(found)
    standing = [message for message in stored if message.superseded_at is None]
    opening = [m.sequence for m in takewhile(lambda m: m.role in HEAD_ROLES, standing)]
    head = [sequence for sequence in opening if sequence in live]
    summaries = [m for m in stored if m.through_sequence is not None and m.sequence in live]
    covered = summaries[-1].through_sequence or 0 if summaries else 0
    opens = head + [m.sequence for m in summaries[-1:]]
    assert found[: len(opens)] == opens
    rest = found[len(opens) :]
    assert rest == sorted(rest)
    assert len(rest) <= last_n
    assert window.omitted_before == session.message_count - len(found)
    pairs = ToolCall.objects.filter(session=session, result_sequence__isnull=False)
    for call in pairs:
        assert (call.message_sequence in found) == (call.result_sequence in found)
    compacted = {m.sequence for m in summaries}
    body = {each for each in live if each > covered} - {*opening} - compacted
    brought = {each for each in rest if each <= covered}
    if last_n == 1000:  # nothing is missing, and nothing comes back but calls with late results
        assert set(rest) - brought == body
    assert all(
        pairs.filter(message_sequence=each).exists() or pairs.filter(result_sequence=each).exists()
        for each in brought
    )


def rules() -> dict[str, Any]:
    with connection.cursor() as cursor:

        def select(query: str) -> list[tuple[Any, ...]]:
            cursor.execute(query)
            return cursor.fetchall()

        return broken(select)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(played=steps)
def test_counters_and_windows_are_right_after_any_steps(
    desk: Desk, played: list[tuple[str, int]]
) -> None:
    story = Story(desk)
    for kind, number in played:
        story.play(kind, number)
    check(story.session_id)
    assert rules() == {}


def recordings() -> Iterator[Any]:
    for folder in (OWN, RECORDED):
        for file in sorted(folder.glob("*.json")) if folder.is_dir() else ():
            yield pytest.param(file, id=file.stem)


@pytest.mark.parametrize("file", [*recordings()])
def test_recorded_sessions_can_be_cut_anywhere(desk: Desk, file: Path) -> None:
    messages = json.loads(file.read_text(encoding="utf-8"))["messages"]
    story = Story(desk)
    for start in range(0, len(messages), 7):
        desk.append(story.session_id, *messages[start : start + 7])
    last = len(messages)
    for place in range(0, last + 1, 1 + last // 12):
        story.play("fork", place)
    story.play("compact", last // 3)
    check(story.session_id)
    story.play("rewind", 2 * last // 3)
    check(story.session_id)
    story.play("fork and go on", last // 2)
    story.play("compact", last // 4)
    story.play("say", 3)
    check(story.session_id)
    assert rules() == {}
