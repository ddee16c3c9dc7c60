"""A write into the session on behalf of a run, as far as the session row cannot judge it."""

from datetime import datetime

from sessions_app.models import Session
from sessions_app.services.fencing import check_attempt
from sessions_app.services.locking import touch
from sessions_app.usage import Usage

from ..states import RunStatus
from . import transitions


def admit(
    session: Session, run_id: str, *, attempt: int | None, usage: Usage, now: datetime
) -> None:
    """Check the attempt, take the write as a sign of life, and count the usage.

    Raises:
        NotFound: no run of this session.
        RunSuperseded, RunEnded, RunInterrupted: nothing may be written for it.
    """
    run = transitions.load(session, run_id)
    check_attempt(run_id, current=run.attempt, given=attempt)
    transitions.refuse_ended(run)
    if run.status != RunStatus.PENDING and run_id != session.active_run_id:
        transitions.renew(session, run, now=now)
    if usage:
        (Usage.of(run) + usage).store(run)
        run.session_version = touch(session, now=now)
        run.save(update_fields=[*Usage.columns(), "session_version"])
