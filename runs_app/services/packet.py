"""The resume packet: all that a returning agent needs, read in one go."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from sessions_app.jsontext import JSONText
from sessions_app.models import Session, ToolCall
from sessions_app.services.memory import current_memory
from sessions_app.services.window import Window, read_window

from ..models import Run
from ..states import STARTED, RunStatus, effective_status

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
    open_tool_calls: list[ToolCall]
    tool_history: list[ToolCall]
    runs: list[Run]
    active_run: Run | None
    interrupted_run: Run | None
    truncated: bool


def read_packet(*, session: Session, last_n: int, now: datetime | None = None) -> Packet:
    """Read the packet of a session that was read first, and that bounds all the rest.

    The whole stays within ``MAX_PAGE_BYTES``, but for the active run, the interrupted one and the
    newest unit of messages, which are always there. Sizes are read before rows, so that nothing
    is loaded in vain.
    """
    survey = _Survey(session, now or timezone.now())
    room = settings.MAX_PAGE_BYTES - survey.size_of_the_two
    window = read_window(session, last_n=last_n, budget=room)
    budget = _Budget(room - sum(message.size for message in window.messages))
    calls = ToolCall.objects.filter(session=session)
    still_open, history = _call_sizes(session)
    shown_open = budget.take(still_open)
    shown_runs = budget.take(survey.listed)
    shown_history = budget.take(history)
    call_of = calls.in_bulk({*shown_open, *shown_history})
    run_of = survey.load(shown_runs)
    return Packet(
        session=session,
        working_memory=current_memory(session),
        window=window,
        open_call_ids=[call_id for call_id, _ in still_open],
        open_tool_calls=[call_of[call_id] for call_id in shown_open if call_id in call_of],
        tool_history=[call_of[call_id] for call_id in shown_history if call_id in call_of],
        runs=[run_of[run_id] for run_id in shown_runs if run_id in run_of],
        active_run=run_of.get(survey.active),
        interrupted_run=run_of.get(survey.interrupted),
        truncated=window.truncated or budget.exceeded,
    )


class _Survey:
    """The newest runs by what is needed to choose among them; none is loaded yet."""

    def __init__(self, session: Session, now: datetime) -> None:
        self.runs = Run.objects.filter(session=session).effective()
        outlines = self.runs.values_list(
            "run_id",
            "size",
            "parent_run",
            "status",
            "deadline",  # type: ignore[misc]
        )
        rows = list(outlines.order_by("-run_id")[:_SURVEY_LENGTH]) if session.run_count else []
        self.listed = [(run_id, size) for run_id, size, *_ in rows[:RUNS_LENGTH]]
        if session.active_run_id not in (None, *(run_id for run_id, *_ in rows)):
            rows += outlines.filter(pk=session.active_run_id)
        status_of = {
            run_id: effective_status(status, deadline=deadline, now=now)
            for run_id, _, parent, status, deadline in rows
            if parent is None
        }
        self.active = _first(status_of, STARTED)
        self.interrupted = _first(status_of, {RunStatus.INTERRUPTED})
        size_of = {run_id: size for run_id, size, *_ in rows}
        self.size_of_the_two = sum(size_of.get(key, 0) for key in (self.active, self.interrupted))

    def load(self, run_ids: Iterable[str]) -> dict[str | None, Run]:
        """These runs and the two."""
        keys = {*run_ids, self.active, self.interrupted} - {None}
        return {run.run_id: run for run in self.runs.filter(pk__in=keys)}


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


def _call_sizes(session: Session) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The oldest open calls and the newest calls, by id and size.

    Not those of messages that came after the session was read: the window does not hold them.
    """
    calls = ToolCall.objects.filter(session=session)
    calls = calls.exclude(message_sequence__gt=session.last_sequence)
    still_open = calls.open().order_by("id").values_list("id", "size")[:OPEN_CALLS_LENGTH]
    newest = calls.order_by("-id").values_list("id", "size")[:HISTORY_LENGTH]
    return (
        list(still_open) if session.open_tool_call_count else [],
        list(newest) if session.tool_call_count else [],
    )


def _first(status_of: dict[str, RunStatus], statuses: Collection[RunStatus]) -> str | None:
    """The newest run with one of these statuses."""
    return next((run_id for run_id, status in status_of.items() if status in statuses), None)
