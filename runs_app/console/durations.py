"""What a run is at this moment, and how long it took."""

from datetime import datetime

from sessions_app.console.durations import duration
from sessions_app.console.values import NOTHING

from ..models import Run
from ..states import UNFINISHED, RunStatus, effective_status


def run_status(run: Run, *, now: datetime) -> RunStatus:
    return effective_status(run.status, deadline=run.deadline, now=now)


def end_of(run: Run, *, now: datetime) -> datetime | None:
    """When the run ended; one that nobody has settled yet ended at its deadline."""
    if run.ended_at is None and run_status(run, now=now) == RunStatus.INTERRUPTED:
        return run.deadline
    return run.ended_at


def is_live(run: Run, *, now: datetime) -> bool:
    return run_status(run, now=now) in UNFINISHED


def took(run: Run, *, now: datetime) -> str:
    """From the start to the end, or to this moment."""
    if run.started_at is None:
        return NOTHING
    return duration((end_of(run, now=now) or now) - run.started_at)
