"""The tool history: calls that messages announce and answer, and calls recorded by themselves."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..errors import InvalidTransition, OrphanToolResult
from ..ids import new_id
from ..jsontext import JSONText
from ..models import Message, Session, ToolCall
from ..prepared import Given, GivenList, Prepared
from ..querysets import ToolCallQuerySet
from ..rows import ToolCallRow
from ..states import FINAL_TOOL_CALLS, OPEN_TOOL_CALLS, TOOL_CALL_TRANSITIONS, ToolCallStatus
from ..writes import insert, new_row
from .drafts import Draft
from .notes import note_calls
from .pairing import CallDraft, ResultDraft
from .search import forget as forget_words

# The error type of a call whose run ended without its result.
ABANDONED = "abandoned"
# That of an open call whose message a rewind took out of the history.
SUPERSEDED = "superseded"

_MAX_IDS_IN_A_STATEMENT = 1000


@dataclass(slots=True)
class Linker:
    """Ties the calls and results of new messages to the session's tool history, in order.

    It holds what the database knew before, so that a result in a batch can answer a call of the
    same batch; `store` writes both in one statement.
    """

    session: Session
    version: int
    now: datetime
    # By tool_call_id, each in the order in which it is taken.
    unanswered: dict[str, deque[ToolCall]]
    recorded: dict[str, deque[ToolCall]]
    made_count: int = 0
    changed: dict[str, ToolCall] = field(default_factory=dict)

    @classmethod
    def load(
        cls, session: Session, drafts: Sequence[Draft], *, version: int, now: datetime
    ) -> "Linker":
        """Read the earlier calls that these drafts may touch: a query only where one may exist."""
        answered = {result.tool_call_id for draft in drafts for result in draft.results}
        announced = {call.tool_call_id for draft in drafts for call in draft.calls}
        unanswered: Iterable[ToolCall] = ()
        recorded: Iterable[ToolCall] = ()
        if answered and session.tool_call_count:
            unanswered = _with_ids(_unanswered, session, answered)
        if announced and session.open_tool_call_count:
            recorded = _with_ids(_recorded, session, announced)
        return cls(session, version, now, _by_tool_call_id(unanswered), _by_tool_call_id(recorded))

    def add(self, message: Message, draft: Draft) -> None:
        """Take one stored message's results and calls into the history.

        Raises:
            OrphanToolResult: a result answers no unanswered call (report PAIR-04).
        """
        for result in draft.results:
            self._answer(message, result)
        announced = [self._announce(message, call) for call in draft.calls]
        # Before those of earlier messages, and the first of them first.
        for call in reversed(announced):
            self.unanswered.setdefault(str(call.tool_call_id), deque()).appendleft(call)

    def store(self) -> None:
        """Write the new calls and the changed ones, and count them in the session."""
        _store(self.changed.values())
        self.session.tool_call_count += self.made_count

    def _announce(self, message: Message, draft: CallDraft) -> ToolCall:
        call = self._take_recorded(draft) or self._make(message, draft)
        call.message_sequence = message.sequence
        # What an adopted call was recorded without: then it ends with the message's run.
        call.run_id = call.run_id or message.run_id
        if call.arguments is None and draft.arguments is not None:
            call.arguments, call.size = draft.arguments, call.size + len(draft.arguments)
        self.changed[call.id] = call
        return call

    def _take_recorded(self, draft: CallDraft) -> ToolCall | None:
        """A call that the agent recorded as started before it stored the message that made it."""
        waiting = self.recorded.get(draft.tool_call_id)
        return waiting.popleft() if waiting else None

    def _make(self, message: Message, draft: CallDraft) -> ToolCall:
        call = new_row(
            ToolCall,
            id=new_id("call"),
            session_id=self.session.session_id,
            run_id=message.run_id,
            tool_call_id=draft.tool_call_id,
            name=draft.name,
            arguments=draft.arguments,
            size=len(draft.arguments or ""),
            created_at=self.now,
            session_version=self.version,
        )
        self.session.open_tool_call_count += 1
        self.made_count += 1
        return call

    def _answer(self, message: Message, result: ResultDraft) -> None:
        waiting = self.unanswered.get(result.tool_call_id)
        if not waiting:
            raise OrphanToolResult(
                f"{result.pointer}: no unanswered call has the id {result.tool_call_id[:80]!r}.",
                tool_call_id=result.tool_call_id,
                pointer=result.pointer,
            )
        call = waiting.popleft()
        call.result_sequence = message.sequence
        finish(
            self.session,
            call,
            ToolCallStatus.FAILED if result.is_error else ToolCallStatus.SUCCEEDED,
            result=result.content,
            version=self.version,
            now=self.now,
        )
        self.changed[call.id] = call


@Prepared
def _unanswered(given: type[Given], by_id: bool) -> ToolCallQuerySet:
    mine = ToolCall.objects.filter(session=given("session_id")).unanswered_in_chat()
    return mine.filter(tool_call_id__in=[GivenList("ids")]) if by_id else mine


@Prepared
def _recorded(given: type[Given], by_id: bool) -> ToolCallQuerySet:
    """That no message has announced yet."""
    mine = ToolCall.objects.filter(session=given("session_id"), message_sequence=None)
    mine = mine.open().order_by("id")
    return mine.filter(tool_call_id__in=[GivenList("ids")]) if by_id else mine


def _with_ids(
    calls: Prepared[ToolCall], session: Session, tool_call_ids: set[str]
) -> list[ToolCall]:
    """Those that have one of these ids; all, where there are more ids than a statement holds."""
    if len(tool_call_ids) > _MAX_IDS_IN_A_STATEMENT:
        return calls.all(False, session_id=session.session_id)
    return calls.all(True, session_id=session.session_id, ids=tool_call_ids)


def _store(calls: Iterable[ToolCall]) -> None:
    """Insert new calls and update the others, all in one statement."""
    insert(list(calls), or_update=_LINKED_FIELDS)


def _by_tool_call_id(calls: Iterable[ToolCall]) -> dict[str, deque[ToolCall]]:
    found: dict[str, deque[ToolCall]] = {}
    for call in calls:
        found.setdefault(str(call.tool_call_id), deque()).append(call)
    return found


_LINKED_FIELDS = (
    "run_id",
    "arguments",
    "message_sequence",
    "result_sequence",
    "status",
    "result",
    "size",
    "started_at",
    "finished_at",
    "duration_ms",
    "error_type",
    "error_message",
    "session_version",
)


def finish(
    session: Session,
    call: ToolCall,
    status: ToolCallStatus,
    *,
    result: JSONText | None,
    version: int,
    now: datetime,
) -> None:
    """Give a call its result, and its status unless it already has a final one.

    A late result of a cancelled call is stored and the status stays: a tool that ran is never
    forgotten (lifecycle page, "Tool call").
    """
    call.session_version = version
    if result is not None:
        call.result = result
        call.size = len(call.arguments or "") + len(result)
    if call.status not in FINAL_TOOL_CALLS:
        move_call(session, call, status)
        call.started_at = call.started_at or call.created_at
        call.finished_at = now
        if call.duration_ms is None:
            call.duration_ms = max(0, round((now - call.started_at).total_seconds() * 1000))


def reopen(session: Session, calls: Iterable[ToolCall], *, version: int) -> None:
    """Make calls whose result was removed unanswered again.

    A status that the result did not give (cancelled, abandoned, settled) stays, and so does that
    of a call that was superseded: nobody waits for it.
    """
    changed = list(calls)
    for call in changed:
        given_by_result = call.error_type != ABANDONED and call.status != ToolCallStatus.CANCELLED
        given_by_result = given_by_result and call.superseded_at is None
        call.result, call.result_sequence = None, None
        call.size = len(call.arguments or "")
        call.session_version = version
        if given_by_result:
            call.status = ToolCallStatus.PENDING
            call.finished_at, call.duration_ms = None, None
            call.error_type, call.error_message = None, None
            session.open_tool_call_count += 1
    _store(changed)
    note_calls(session, changed, version=version)


def forget(session: Session, calls: Iterable[ToolCall]) -> None:
    """Remove the calls of a removed message."""
    removed = list(calls)
    session.tool_call_count -= len(removed)
    session.open_tool_call_count -= sum(call.status in OPEN_TOOL_CALLS for call in removed)
    ids = [call.id for call in removed]
    if ids:
        forget_words(session, ids)
        ToolCall.objects.filter(pk__in=ids).delete()


def close_open_calls(
    session: Session,
    status: ToolCallStatus,
    *,
    error_type: str,
    now: datetime,
    run_id: str | None = None,
    after: int | None = None,
) -> None:
    """End the open calls of a run that ended, of a session that leaves ACTIVE, or of the messages
    ``after`` a sequence.

    Source: report RUN-09 (a cancelled run's pending approval blocked the conversation for good).
    """
    if not session.open_tool_call_count:
        return
    calls = ToolCall.objects.filter(session=session).open()
    if run_id is not None:
        calls = calls.filter(run=run_id)
    if after is not None:
        calls = calls.filter(message_sequence__gt=after)
    ids = list(calls.values_list("id", flat=True))
    session.open_tool_call_count -= calls.update(
        status=status, error_type=error_type, finished_at=now, session_version=session.version
    )
    note_calls(session, ids, version=session.version)


def supersede(session: Session, *, after: int, now: datetime) -> None:
    """Let the calls of the messages after a sequence go with them; what was done stays known."""
    close_open_calls(session, ToolCallStatus.CANCELLED, error_type=SUPERSEDED, now=now, after=after)
    if session.tool_call_count:
        calls = ToolCall.objects.filter(session=session, message_sequence__gt=after)
        calls = calls.filter(superseded_at=None)
        ids = list(calls.values_list("id", flat=True))
        calls.update(superseded_at=now, session_version=session.version)
        note_calls(session, ids, version=session.version)


def move_call(session: Session, call: ToolCall, to: ToolCallStatus) -> None:
    """Change a call's status, and count whether it is still open.

    Raises:
        InvalidTransition: the status is final.
    """
    if to not in TOOL_CALL_TRANSITIONS[ToolCallStatus(call.status)]:
        raise InvalidTransition(
            f"The tool call {call.id} is {call.status} and cannot become {to}.",
            current_status=call.status,
            tool_call=call.id,
        )
    session.open_tool_call_count -= to in FINAL_TOOL_CALLS
    call.status = to


def error_of(call: ToolCall | ToolCallRow) -> dict[str, Any] | None:
    """The contract's ``error`` object."""
    if call.error_type is None and call.error_message is None:
        return None
    return {"type": call.error_type, "message": call.error_message}
