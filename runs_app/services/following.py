"""The changes of a session with what they are about: what who follows it is told."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import QuerySet

from sessions_app.models import Message, Session, SessionEvent, ToolCall, WorkingMemoryRevision
from sessions_app.prepared import Given, Prepared
from sessions_app.querysets import ToolCallQuerySet, how_many_fit
from sessions_app.rows import MessageRow
from sessions_app.services.changes import MEMORY, Change, Reached, read_changes
from sessions_app.states import Subject

from ..models import Run

Row = TypeVar("Row")

# As many changes are looked for at once, and so many bytes of messages are loaded.
MOST_CHANGES = 100
MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Told:
    """A change, with what it is about as that is now: the session, a message, a run, a tool call,
    a revision of the memory; None if it is gone. ``reached`` is how far the reader is with it.

    A message that was added comes with the calls that it made or answered, without their arguments
    and results, which the messages hold. ``is_last``: of the session as it was read, that is all.
    """

    subject: str
    thing: Session | MessageRow | Run | ToolCall | WorkingMemoryRevision | None
    event: SessionEvent | None
    calls: Sequence[ToolCall]
    reached: Reached
    is_last: bool


def tell(session: Session, reached: Reached) -> Iterator[Told]:
    """The next changes of a session that was read before, one after the other, and at least one.

    Whoever has enough stops, and goes on with what the last one has ``reached``. New messages are
    loaded together, as far as they are small; what else may be large, one by one.
    """
    found = read_changes(session, reached, most=MOST_CHANGES)
    changes = found[: how_many_fit([change.size for change in found], MOST_BYTES)]
    loaded, is_full = _Loaded(session, changes), len(found) == MOST_CHANGES
    for change in changes:
        reached = reached.by(change)
        yield loaded.told(change, reached, is_last=change is found[-1] and not is_full)


class _Loaded:
    """What some changes are about, as far as it is read together."""

    def __init__(self, session: Session, changes: Sequence[Change]) -> None:
        self._session = session
        added = [change.key for change in changes if change.is_message]
        events = [change.key for change in changes if change.is_event]
        self._messages = {row.sequence: row for row in self._between(_messages, added)}
        self._events = {event.sequence: event for event in self._between(_events, events)}
        self._calls: dict[int | None, list[ToolCall]] = defaultdict(list)
        if session.tool_call_count:
            for call in self._between(_made, added):
                self._calls[call.message_sequence].append(call)
            for call in self._between(_answered, added):
                self._calls[call.result_sequence].append(call)
        self._runs: dict[str, Run | None] = {}

    def _between(self, query: Prepared[Row], keys: Sequence[int]) -> list[Row]:
        if not keys:
            return []
        return query.all(session_id=self._session.session_id, first=keys[0], last=keys[-1])

    def told(self, change: Change, reached: Reached, *, is_last: bool) -> Told:
        return Told(
            subject=change.subject,
            thing=self._thing(change),
            event=self._events.get(change.key) if change.is_event else None,
            calls=self._calls.get(change.key, ()) if change.is_message else (),
            reached=reached,
            is_last=is_last,
        )

    def _thing(self, change: Change) -> Any:
        name, key = change.subject_id, {"session_id": self._session.session_id}
        if change.is_message:
            return self._messages.get(change.key)
        if change.subject == Subject.CONTENT:
            return _message.first(message_id=name, **key)
        if change.subject == Subject.RUN:
            if name not in self._runs:
                self._runs[name] = _run.first(run_id=name, **key)
            return self._runs[name]
        if change.subject == Subject.TOOL_CALL:
            return _call.first(id=name, **key)
        if change.subject == MEMORY:
            return _revision.first(version=change.key, **key)
        return self._session


def _between(given: type[Given], rows: Any, sequence: str) -> Any:
    ends = {f"{sequence}__range": (given("first"), given("last"))}
    return rows.filter(session=given("session_id"), **ends)


@Prepared
def _messages(given: type[Given]) -> QuerySet[Message, MessageRow]:
    return _between(given, Message.objects.all(), "sequence").rows()


@Prepared
def _message(given: type[Given]) -> QuerySet[Message, MessageRow]:
    mine = Message.objects.filter(session=given("session_id"))
    return mine.filter(message_id=given("message_id")).rows()


@Prepared
def _events(given: type[Given]) -> QuerySet[SessionEvent]:
    return _between(given, SessionEvent.objects.all(), "sequence")


def _light_calls(given: type[Given], sequence: str) -> ToolCallQuerySet:
    calls = _between(given, ToolCall.objects.all(), sequence)
    return calls.defer("arguments", "result").order_by("id")


@Prepared
def _made(given: type[Given]) -> ToolCallQuerySet:
    return _light_calls(given, "message_sequence")


@Prepared
def _answered(given: type[Given]) -> ToolCallQuerySet:
    return _light_calls(given, "result_sequence")


@Prepared
def _call(given: type[Given]) -> ToolCallQuerySet:
    return ToolCall.objects.filter(session=given("session_id"), id=given("id"))


@Prepared
def _run(given: type[Given]) -> QuerySet[Run]:
    return Run.objects.filter(session=given("session_id"), run_id=given("run_id")).effective()


@Prepared
def _revision(given: type[Given]) -> QuerySet[WorkingMemoryRevision]:
    return WorkingMemoryRevision.objects.filter(
        session=given("session_id"), version=given("version")
    )
