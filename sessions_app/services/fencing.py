"""Writes on behalf of a run: only its current attempt may write, and writing is a sign of life.

Source: lifecycle page, "Fencing"; report CON-06 (a worker whose run had been taken over went on
writing, and both workers' tool calls were mixed for good).
"""

from datetime import datetime, timedelta

from ..errors import InvalidRequest, RunSuperseded
from ..models import Session
from ..signals import run_written
from ..usage import Usage


def fence(
    session: Session,
    *,
    run_id: str | None,
    attempt: int | None,
    now: datetime,
    usage: Usage | None = None,
) -> None:
    """Let a write of this run through, and renew its lease in the row that is locked anyway.

    A run that is not the session's active one (a child, a queued one, one that has ended), and
    any usage, is runs_app's to judge and to keep.

    Raises:
        RunSuperseded, RunEnded, RunInterrupted, NotFound: nothing may be written for it.
        InvalidRequest: ``attempt`` without ``run_id``, or one that was never given out.
    """
    if run_id is None:
        if attempt is not None:
            raise InvalidRequest.at("/attempt", "needs run_id")
        return
    is_active = run_id == session.active_run_id
    if is_active:
        check_attempt(run_id, current=session.active_run_attempt or 0, given=attempt)
        renew_active(session, now=now)
    if usage or not is_active:
        run_written.send(
            Session,
            session=session,
            run_id=run_id,
            attempt=attempt,
            usage=usage or Usage(),
            now=now,
        )


def check_attempt(run_id: str, *, current: int, given: int | None) -> None:
    """Refuse a worker that has been superseded; an attempt left out is not checked.

    Raises:
        RunSuperseded: an older attempt.
        InvalidRequest: one that was never given out.
    """
    if given is None or given == current:
        return
    if given > current:
        raise InvalidRequest.at("/attempt", f"the run's current attempt is {current}")
    raise RunSuperseded(
        f"Attempt {given} of {run_id} was superseded by attempt {current}.",
        run_id=run_id,
        attempt=current,
    )


def renew_active(session: Session, *, now: datetime) -> None:
    """Note a sign of life of the active run. Its deadline moves, unless it waits: no lease then."""
    session.active_run_seen_at = now
    if session.active_run_lease_seconds is not None:
        session.active_run_deadline = now + timedelta(seconds=session.active_run_lease_seconds)
