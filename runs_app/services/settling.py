"""What time, or the end of a session, does to its runs."""

from datetime import datetime
from typing import cast

from sessions_app.actors import Actor
from sessions_app.models import Session
from sessions_app.states import SessionStatus

from ..models import Run
from ..states import UNFINISHED, RunStatus
from .transitions import as_known, end, load, unfinished_of


def interrupt_lapsed(session: Session, *, now: datetime) -> None:
    """Interrupt the session's runs whose deadline has passed, each at its deadline.

    The earliest first: a child run that lapsed before its parent keeps its own time.
    """
    lapsed = [(_deadline(session, run), run.run_id) for run in unfinished_of(session)]
    for deadline, run_id in sorted(pair for pair in lapsed if pair[0] <= now):
        current = load(session, run_id)
        if current.status in UNFINISHED:  # else a parent's end was its own
            end(
                session,
                current,
                RunStatus.INTERRUPTED,
                actor=Actor.system(),
                reason="no sign of life before the deadline",
                now=now,
                at=deadline,
                activity=False,
            )


def settle_all(
    session: Session, to: RunStatus, *, actor: Actor, reason: str, now: datetime, at: datetime
) -> None:
    """End every unfinished run of a session that leaves ACTIVE."""
    for run in unfinished_of(session).filter(parent_run=None):
        end(
            session,
            load(session, run.run_id),
            to,
            actor=actor,
            reason=reason,
            now=now,
            at=at,
            activity=False,
        )


def _deadline(session: Session, run: Run) -> datetime:
    """A run does not outlive its session: an expiry that came first ended it then."""
    lease = cast(datetime, as_known(session, run).lease_expires_at)  # a check constraint
    active = session.status == SessionStatus.ACTIVE
    return min(lease, session.expires_at) if active and session.expires_at else lease
