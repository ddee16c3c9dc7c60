"""The resume packet: all that a returning agent needs, read in one go."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Case, F, QuerySet, Value, When

from sessions_app.jsontext import JSONText
from sessions_app.models import Session, ToolCall
from sessions_app.prepared import Given, GivenList, Prepared
from sessions_app.querysets import ToolCallQuerySet
from sessions_app.rows import ToolCallRow
from sessions_app.services.memory import current_memory_part, surveyed_memory
from sessions_app.services.survey import Entry, Survey, by_part, part, union
from sessions_app.services.window import (
    Window,
    head_length,
    read_window,
    window_parts,
    window_values,
)

from ..models import Run
from ..querysets import current_status
from ..states import STARTED, RunStatus

HISTORY_LENGTH = 20
RUNS_LENGTH = 10
OPEN_CALLS_LENGTH = 100
# Child runs crowd the newest ten, so the active and the interrupted run are looked for further.
_SURVEY_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Packet:
    """See the contract, "Resume packet". ``open_call_ids`` are the session's, whatever was cut;
    ``truncated`` tells that the size limit left out messages, runs or tool calls."""

    session: Session
    working_memory: JSONText
    window: Window
    open_call_ids: list[str]
    open_tool_calls: list[ToolCallRow]
    tool_history: list[ToolCallRow]
    runs: list[Run]
    active_run: Run | None
    interrupted_run: Run | None
    truncated: bool


def read_packet(
    *, session: Session, last_n: int, now: datetime, max_tokens: int | None = None
) -> Packet:
    """Read the packet of a session that was read first, and that bounds all the rest.

    The whole stays within ``MAX_PAGE_BYTES``, but for the active run, the interrupted one and the
    newest unit of messages, which are always there. Sizes are read before rows, so that nothing
    is loaded in vain.
    """
    survey = _read_survey(session, last_n, now)
    runs = _Runs(survey)
    room = settings.MAX_PAGE_BYTES - runs.size_of_the_two
    window = read_window(session, last_n=last_n, max_tokens=max_tokens, budget=room, survey=survey)
    budget = _Budget(room - sum(message.size for message in window.messages))
    still_open = sorted((call_id, size) for call_id, size, *_ in survey["open"])
    history = sorted(((call_id, size) for call_id, size, *_ in survey["history"]), reverse=True)
    shown_open = budget.take(still_open)
    shown_runs = budget.take(runs.listed)
    shown_history = budget.take(history)
    call_of = _load_calls(session, shown_open, shown_history)
    run_of = _load_runs({*shown_runs, runs.active, runs.interrupted} - {None})
    return Packet(
        session=session,
        working_memory=surveyed_memory(survey),
        window=window,
        open_call_ids=[call_id for call_id, _ in still_open],
        open_tool_calls=[call_of[call_id] for call_id in shown_open if call_id in call_of],
        tool_history=[call_of[call_id] for call_id in shown_history if call_id in call_of],
        runs=[run_of[run_id] for run_id in shown_runs if run_id in run_of],
        active_run=run_of.get(runs.active),
        interrupted_run=run_of.get(runs.interrupted),
        truncated=window.truncated or budget.exceeded,
    )


class _Shape(NamedTuple):
    """What the session can have, by its own row: of nothing else the survey has a part."""

    head: int
    compacted: bool
    calls: bool
    open_calls: bool
    runs: int
    active_run: bool
    memory: bool


def _read_survey(session: Session, last_n: int, now: datetime) -> Survey:
    """All by which the packet's rows are chosen."""
    shape = _Shape(
        head=head_length(session),
        compacted=session.compaction_sequence is not None,
        calls=session.tool_call_count > 0,
        open_calls=session.open_tool_call_count > 0,
        runs=_SURVEY_LENGTH if session.run_count else 0,
        active_run=session.active_run_id is not None,
        memory=session.working_memory_version > 0,
    )
    values = {
        "memory_version": session.working_memory_version,
        "active_run_id": session.active_run_id,
        "now": now,
    }
    rows = _survey.all(shape, **window_values(session, last_n), **values) if any(shape) else []
    return by_part(rows)


@Prepared
def _survey(given: type[Given], shape: _Shape) -> QuerySet[Any, Any]:
    parts = window_parts(given, shape.head, shape.calls, shape.compacted)
    if shape.calls:
        parts.append(_call_part("history", _seen_calls(given).order_by("-id"), HISTORY_LENGTH))
    if shape.open_calls:
        oldest = _seen_calls(given).open().order_by("id")
        parts.append(_call_part("open", oldest, OPEN_CALLS_LENGTH))
    if shape.runs:
        newest = Run.objects.filter(session=given("session_id")).order_by("-run_id")
        parts.append(_run_part(given, run_id__in=newest.values("run_id")[: shape.runs]))
    if shape.active_run:
        parts.append(_run_part(given, run_id=given("active_run_id")))
    if shape.memory:
        parts.append(current_memory_part(given))
    return union(parts)


def _seen_calls(given: type[Given]) -> ToolCallQuerySet:
    """Not those of messages that came after the session was read: the window does not hold them."""
    calls = ToolCall.objects.filter(session=given("session_id"))
    return calls.exclude(message_sequence__gt=given("last"))


def _call_part(name: str, calls: ToolCallQuerySet, length: int) -> QuerySet[Any, Any]:
    first = ToolCall.objects.filter(id__in=calls.values("id")[:length])
    return part(name, first, key=F("id"), number=F("size"))


def _run_part(given: type[Given], **which: Any) -> QuerySet[Any, Any]:
    """Runs by what is needed to choose among them: only of top-level ones, the status."""
    status = Case(When(parent_run=None, then=current_status(given("now"))), default=Value(""))
    runs = Run.objects.filter(**which).effective()
    return part("run", runs, key=F("run_id"), number=F("size"), text=status)


def _load_calls(
    session: Session, still_open: Sequence[str], history: Sequence[str]
) -> dict[str, ToolCallRow]:
    """The calls by their ids. Each list was all that there is between its ends, so that it is read
    as a range; a call that has ended since is no longer among the open ones."""
    ends: dict[str, str] = {}
    for name, ids in (("open", still_open), ("history", history)):
        if ids:
            ends |= {f"{name}_from": min(ids), f"{name}_to": max(ids)}
    shape = (bool(still_open), bool(history))
    rows = _calls_between.all(*shape, session_id=session.session_id, **ends) if ends else []
    return {call.id: call for call in rows}


@Prepared
def _calls_between(
    given: type[Given], still_open: bool, history: bool
) -> QuerySet[ToolCall, ToolCallRow]:
    calls = ToolCall.objects.filter(session=given("session_id"))
    parts = []
    if still_open:
        parts.append(calls.open().filter(id__range=(given("open_from"), given("open_to"))))
    if history:
        parts.append(calls.filter(id__range=(given("history_from"), given("history_to"))))
    return union([rows.rows() for rows in parts])


def _load_runs(run_ids: Collection[str | None]) -> dict[str | None, Run]:
    """The runs by their ids; a purge may have taken them."""
    return {run.run_id: run for run in _runs_by_id.all(run_ids=run_ids)} if run_ids else {}


@Prepared
def _runs_by_id(given: type[Given]) -> QuerySet[Run]:
    return Run.objects.filter(run_id__in=[GivenList("run_ids")]).effective()


class _Runs:
    """The newest runs, by what they are now; none is loaded yet."""

    def __init__(self, survey: Survey) -> None:
        # The active one may be there twice.
        newest = sorted(set(survey["run"]), reverse=True)
        self.listed = [(run_id, size) for run_id, size, *_ in newest[:RUNS_LENGTH]]
        self.active = _first(newest, STARTED)
        self.interrupted = _first(newest, {RunStatus.INTERRUPTED})
        the_two = {self.active, self.interrupted}
        self.size_of_the_two = sum(size for run_id, size, *_ in newest if run_id in the_two)


class _Budget:
    """Bytes that several lists share."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.exceeded = False

    def take(self, sizes: Sequence[tuple[str, int]]) -> list[str]:
        """The ids, from the first on, for whose rows there is room."""
        taken = []
        for row_id, size in sizes:
            if size > self.left:
                self.exceeded = True
                break
            self.left -= size
            taken.append(row_id)
        return taken


def _first(runs: Iterable[Entry], statuses: Collection[str]) -> str | None:
    """The first run with one of these statuses."""
    return next((run_id for run_id, _, _, status in runs if status in statuses), None)
