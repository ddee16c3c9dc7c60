"""The resume packet: all that a returning agent needs, read in one go."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.conf import settings
from django.utils import timezone

from sessions_app.actors import Actor
from sessions_app.jsontext import JSONText
from sessions_app.models import Session, ToolCall
from sessions_app.services import SessionManager
from sessions_app.services.window import Window, read_window

from ..models import Run
from ..states import STARTED, RunStatus, effective_status

HISTORY_LENGTH = 20
RUNS_LENGTH = 10
OPEN_CALLS_LENGTH = 100

Row = TypeVar("Row", ToolCall, Run)


@dataclass(frozen=True, slots=True)
class Packet:
    """See the contract, "Resume packet". Lists are newest first, but for the window."""

    session: Session
    working_memory: JSONText
    window: Window
    open_tool_calls: list[ToolCall]
    tool_history: list[ToolCall]
    runs: list[Run]
    active_run: Run | None
    interrupted_run: Run | None


def read_packet(
    *, session_id: str, actor: Actor, last_n: int, now: datetime | None = None
) -> Packet:
    """Read the packet without changing anything.

    The session is read first, and bounds what is read of its messages. The whole stays within
    ``MAX_PAGE_BYTES``: what the window leaves is shared by runs and tool calls, newest first.

    Raises:
        NotFound, SessionDeleted: as for the session.
    """
    moment = now or timezone.now()
    session, memory = SessionManager(actor).read_memory(session_id=session_id)
    window = read_window(session, last_n=last_n)
    budget = settings.MAX_PAGE_BYTES - sum(message.size for message in window.messages)
    runs = list(Run.objects.filter(session=session).effective().order_by("-run_id")[:RUNS_LENGTH])
    calls = ToolCall.objects.filter(session=session)
    history = list(calls.order_by("-id")[:HISTORY_LENGTH])
    still_open = list(calls.open().order_by("id")[:OPEN_CALLS_LENGTH])
    mine = [run for run in runs if run.parent_run_id is None]
    return Packet(
        session=session,
        working_memory=memory,
        window=window,
        open_tool_calls=_within(still_open, budget),
        tool_history=_within(history, budget),
        runs=_within(runs, budget),
        active_run=_first(mine, STARTED, moment),
        interrupted_run=_first(mine, {RunStatus.INTERRUPTED}, moment),
    )


def _first(runs: Sequence[Run], statuses: Collection[RunStatus], now: datetime) -> Run | None:
    for run in runs:
        if effective_status(run.status, deadline=run.deadline, now=now) in statuses:
            return run
    return None


def _within(rows: Sequence[Row], budget: int) -> list[Row]:
    """As many of the rows, from the first on, as the budget holds."""
    kept = []
    for row in rows:
        budget -= row.size
        if budget < 0:
            break
        kept.append(row)
    return kept
