"""What runs_app does when a session's life or a write asks for it; see `sessions_app.signals`."""

from datetime import datetime
from typing import Any

from django.dispatch import receiver

from sessions_app.actors import Actor
from sessions_app.models import Session
from sessions_app.signals import run_lapsed, run_written, session_ended
from sessions_app.states import SessionStatus
from sessions_app.usage import Usage

from .services import settling
from .services.writing import admit
from .states import RunStatus

_RUNS_BECOME = {
    SessionStatus.CLOSED: RunStatus.CANCELLED,
    SessionStatus.DELETED: RunStatus.CANCELLED,
    SessionStatus.EXPIRED: RunStatus.INTERRUPTED,
}


@receiver(session_ended, dispatch_uid="runs_app.settle_all")
def settle_runs(
    *,
    session: Session,
    status: SessionStatus,
    actor: Actor,
    reason: str,
    now: datetime,
    at: datetime,
    **_: Any,
) -> None:
    """A session that is left by close or delete cancels its runs; expiry interrupts them."""
    settling.settle_all(session, _RUNS_BECOME[status], actor=actor, reason=reason, now=now, at=at)


@receiver(run_lapsed, dispatch_uid="runs_app.interrupt_lapsed")
def interrupt_runs(*, session: Session, now: datetime, **_: Any) -> None:
    """A deadline has passed."""
    settling.interrupt_lapsed(session, now=now)


@receiver(run_written, dispatch_uid="runs_app.admit")
def admit_write(
    *, session: Session, run_id: str, attempt: int | None, usage: Usage, now: datetime, **_: Any
) -> None:
    """A write names a run."""
    admit(session, run_id, attempt=attempt, usage=usage, now=now)
