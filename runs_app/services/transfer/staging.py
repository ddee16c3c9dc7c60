"""A file read from its first line to its last, and checked, before anything is locked."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import IO, Any

from sessions_app.chain import link
from sessions_app.errors import InvalidRequest
from sessions_app.models import Message, Session, SessionEvent, ToolCall, WorkingMemoryRevision
from sessions_app.services.cuts import note_compaction
from sessions_app.services.drafts import HEAD_ROLES, Draft
from sessions_app.states import OPEN_TOOL_CALLS

from ...models import Run
from . import family, history, links
from .lines import END, FORMAT, KINDS, VERSION
from .parts import Parts
from .reading import Fields, at_line, read_objects
from .scratch import Scratch

# By so much another server's clock may be ahead.
_CLOCKS_DIFFER = timedelta(days=1)
# What the session's line says of the rest; where it says it, it must be so.
_COUNTED = (
    "last_sequence",
    "message_count",
    "tool_call_count",
    "open_tool_call_count",
    "run_count",
    "working_memory_version",
)
_SESSION_LINE = 2


@dataclass(frozen=True, slots=True)
class Staged:
    """A session that may be stored: its row, whose account is nobody's yet, and on disk the rest.

    Whoever makes it closes it.
    """

    session: Session
    scratch: Scratch

    def close(self) -> None:
        self.scratch.close()


def stage(file: IO[bytes], *, now: datetime) -> Staged:
    """Read and check a whole file; it is left where it ended.

    Raises:
        InvalidJSON, InvalidRequest: the first line that is wrong, as ``line``; nothing is kept.
    """
    scratch = Scratch(Run, Message, ToolCall, WorkingMemoryRevision, SessionEvent)
    links.make_tables(scratch)
    history.make_table(scratch)
    try:
        return _Reader(scratch, read_objects(file), now).read()
    except BaseException:
        scratch.close()
        raise


class _Reader:
    """Reads one file. Rows are counted as they come, whatever their session's line says."""

    def __init__(
        self, scratch: Scratch, lines: Iterator[tuple[int, Fields]], now: datetime
    ) -> None:
        self.scratch, self.lines, self.now = scratch, lines, now
        self.counted: Counter[str] = Counter()
        self.last = dict.fromkeys(("message", "memory_revision", "event"), 0)
        self.head_sequence = self.live_messages = self.open_calls = self.added_version = 0
        self.event_digest: str | None = None
        self.compaction: Message | None = None
        self.number = 0

    def read(self) -> Staged:
        imported_from = self._read_header()
        session, claims = self._read_session(imported_from)
        self._read_parts()
        links.check(self.scratch)
        self._count(session, claims)
        family.settle(self.scratch, session, now=self.now)
        history.check(self.scratch, session)
        return Staged(session, self.scratch)

    def _next(self, what: str) -> Fields:
        found = next(self.lines, None)
        if found is None:
            with at_line(self.number + 1):
                raise InvalidRequest.at("", f"the file ends before {what}")
        self.number, fields = found
        return fields

    def _read_header(self) -> str:
        fields = self._next("it begins")
        with at_line(self.number):
            fields.one_of("object", (FORMAT,))
            fields.number("version", low=VERSION, high=VERSION)
            imported_from = fields.id("session_id", "sess")
            fields.end()
        return imported_from

    def _read_session(self, imported_from: str) -> tuple[Session, dict[str, int | None]]:
        fields = self._next("its session")
        with at_line(self.number):
            fields.one_of("object", ("session",))
            old = fields.id("session_id", "sess")
            if old != imported_from:
                raise fields.refusal("session_id", "is not that of line 1")
            new = self.scratch.rename(old, "/session_id")
            latest = self.now + _CLOCKS_DIFFER
            self.parts = Parts(self.scratch, session_id=new, latest=latest)
            session = self.parts.session(fields)
            session.imported_from = imported_from
            claims = {name: fields.maybe_number(name) for name in _COUNTED}
            fields.end()
        return session, claims

    def _read_parts(self) -> None:
        """All up to the last line; the kinds come in their order."""
        readers: dict[str, Callable[[Fields], Any]] = {
            "run": self._run,
            "message": self._message,
            "tool_call": self._tool_call,
            "memory_revision": self._memory_revision,
            "event": self._event,
        }
        allowed = [*KINDS, END]
        while True:
            fields = self._next("its last line, which says how much it holds")
            with at_line(self.number):
                kind = fields.one_of("object", allowed)
                if kind != "run" and allowed[0] == "run":
                    family.resolve(self.scratch)
                allowed = allowed[allowed.index(kind) :]
                if kind == END:
                    self._end(fields)
                    break
                row = readers[kind](fields)
                fields.end()
                self.counted[kind] += 1
                self.scratch.add(self.number, row)
        for number, _ in self.lines:
            with at_line(number):
                raise InvalidRequest.at("", "comes after the last one")

    def _end(self, fields: Fields) -> None:
        for kind, name in KINDS.items():
            if (said := fields.number(name)) != self.counted[kind]:
                reason = f"is {said}, and the file holds {self.counted[kind]}"
                raise fields.refusal(name, reason)
        fields.end()

    def _run(self, fields: Fields) -> Run:
        return self.parts.run(fields)

    def _message(self, fields: Fields) -> Message:
        message, draft = self.parts.message(fields)
        self._follows(fields, "message", "sequence", message.sequence)
        is_live = message.removed_at is None and message.superseded_at is None
        self.live_messages += is_live
        if self.head_sequence == message.sequence - 1 and _opens(message, draft):
            self.head_sequence = message.sequence
        if is_live and message.through_sequence is not None:
            self.compaction = message
        self._goes_on(fields, message)
        links.note(self.scratch, self.number, message, draft, is_live=is_live)
        return message

    def _goes_on(self, fields: Fields, message: Message) -> None:
        """Versions only rise: who follows the session is told of its messages in their order."""
        added = message.added_version or message.session_version
        if added < self.added_version:
            raise fields.refusal("session_version", "is lower than that of the message before")
        self.added_version = added

    def _tool_call(self, fields: Fields) -> ToolCall:
        call = self.parts.tool_call(fields)
        self.open_calls += call.status in OPEN_TOOL_CALLS
        return call

    def _memory_revision(self, fields: Fields) -> WorkingMemoryRevision:
        revision = self.parts.memory_revision(fields)
        self._follows(fields, "memory_revision", "version", revision.version)
        if revision.sequence > self.last["message"]:
            raise fields.refusal("sequence", "there is no such message")
        return revision

    def _event(self, fields: Fields) -> SessionEvent:
        event = self.parts.event(fields)
        self._follows(fields, "event", "sequence", event.sequence)
        history.note(self.scratch, event)
        event.digest = self.event_digest = link(self.event_digest, event)
        return event

    def _follows(self, fields: Fields, kind: str, name: str, number: int) -> None:
        """From 1 on, without a gap: so they are given, and never given again."""
        self.last[kind] += 1
        if number != self.last[kind]:
            raise fields.refusal(name, f"must be {self.last[kind]}, for there is no gap")

    def _count(self, session: Session, claims: dict[str, int | None]) -> None:
        session.last_sequence = self.last["message"]
        session.head_sequence = self.head_sequence
        note_compaction(session, self.compaction)
        session.message_count = self.live_messages
        session.tool_call_count = self.counted["tool_call"]
        session.open_tool_call_count = self.open_calls
        session.run_count = self.counted["run"]
        session.working_memory_version = self.last["memory_revision"]
        session.event_count, session.event_digest = self.last["event"], self.event_digest
        with at_line(_SESSION_LINE):
            for name, said in claims.items():
                found = getattr(session, name)
                if said is not None and said != found:
                    raise InvalidRequest.at(f"/{name}", f"is {said}, and the file holds {found}")


def _opens(message: Message, draft: Draft | None) -> bool:
    """As an append decides it; of a message that was removed its role is all that is left. What was
    superseded closes nothing."""
    if message.superseded_at is not None:
        return True
    return message.role in HEAD_ROLES if draft is None else draft.opens_session
