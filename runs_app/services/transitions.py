"""The one door through which a run's status changes, and what changes with it."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db.models import Min

from sessions_app.actors import Actor
from sessions_app.errors import (
    InvalidTransition,
    NotFound,
    RunActive,
    RunEnded,
    RunInterrupted,
)
from sessions_app.models import Session
from sessions_app.services.fencing import renew_active
from sessions_app.services.lifecycle import record_event
from sessions_app.services.locking import reschedule, touch
from sessions_app.services.tool_calls import ABANDONED, close_open_calls
from sessions_app.states import Subject, ToolCallStatus
from sessions_app.usage import Usage

from ..models import Run
from ..querysets import RunQuerySet
from ..states import FINAL, RUN_TRANSITIONS, STARTED, UNFINISHED, RunStatus

# What becomes of a run's open calls; an interrupted run's stay, the next attempt may answer them.
_CALLS_BECOME = {
    RunStatus.COMPLETED: (ToolCallStatus.FAILED, ABANDONED),
    RunStatus.FAILED: (ToolCallStatus.FAILED, ABANDONED),
    RunStatus.CANCELLED: (ToolCallStatus.CANCELLED, "run_cancelled"),
}
# What becomes of its unfinished child runs.
_CHILDREN_BECOME = {
    RunStatus.COMPLETED: RunStatus.CANCELLED,
    RunStatus.FAILED: RunStatus.CANCELLED,
    RunStatus.CANCELLED: RunStatus.CANCELLED,
    RunStatus.INTERRUPTED: RunStatus.INTERRUPTED,
}


def load(session: Session, run_id: str) -> Run:
    """A run of the locked session, with what the session row knows better.

    Raises:
        NotFound: it is no run of this session.
    """
    run = Run.objects.filter(session=session, pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    return as_known(session, run)


def move(
    session: Session,
    run: Run,
    to: RunStatus,
    *,
    actor: Actor,
    reason: str = "",
    now: datetime,
    at: datetime | None = None,
    activity: bool = True,
) -> None:
    """Change the status, keep the session's mirror true, and write down who did it.

    ``at`` is when the run ended, if that was earlier; a run that has ended keeps its time.

    Raises:
        InvalidTransition: the table has no such arrow.
    """
    origin = RunStatus(run.status)
    if to not in RUN_TRANSITIONS[origin]:
        raise _invalid(run, f"A run that is {origin} cannot become {to}.")
    run.session_version = touch(session, now=now, activity=activity)
    run.status = to
    if to not in UNFINISHED:
        run.ended_at = run.ended_at or at or now
    session.failed_run_count += to == RunStatus.FAILED
    run.save()
    mirror(session, run)
    if activity:
        reschedule(session)
    record_run_event(session, run, origin, actor=actor, reason=reason, now=now)


def record_run_event(
    session: Session, run: Run, origin: str | None, *, actor: Actor, reason: str, now: datetime
) -> None:
    """Write the event of a run's transition to the status that it has now."""
    record_event(
        session,
        subject=Subject.RUN,
        subject_id=run.run_id,
        from_status=origin,
        to_status=run.status,
        actor=actor,
        reason=reason,
        version=run.session_version,
        now=now,
    )


def begin_attempt(session: Session, run: Run, *, actor: Actor, now: datetime) -> None:
    """Start the run, or go on with it: one attempt more, and a fresh lease.

    Raises:
        RunActive: another top-level run is started in the session.
        InvalidTransition: the parent run has ended.
    """
    if run.parent_run is not None:
        require_unfinished_parent(run.parent_run)
    elif session.active_run_id not in (None, run.run_id):
        raise run_active(session)
    run.attempt += 1
    run.started_at = run.started_at or now
    run.ended_at = run.wait_reason = None
    run.heartbeat_at = now
    run.lease_expires_at = now + timedelta(seconds=run.lease_seconds)
    move(session, run, RunStatus.RUNNING, actor=actor, now=now)


def end(
    session: Session,
    run: Run,
    to: RunStatus,
    *,
    actor: Actor,
    reason: str = "",
    now: datetime,
    at: datetime | None = None,
    activity: bool = True,
) -> None:
    """End the run (or interrupt it), after all runs below it, and close what they left open."""
    for child in _below(session, run):
        _end_one(
            session,
            child,
            _CHILDREN_BECOME[to],
            actor=actor,
            reason="the parent run ended",
            now=now,
            at=at,
            activity=activity,
        )
    _end_one(session, run, to, actor=actor, reason=reason, now=now, at=at, activity=activity)


def _end_one(
    session: Session,
    run: Run,
    to: RunStatus,
    *,
    actor: Actor,
    reason: str,
    now: datetime,
    at: datetime | None,
    activity: bool,
) -> None:
    if to == RunStatus.CANCELLED:
        run.cancel_reason = reason
    run.size = run.content_size
    move(session, run, to, actor=actor, reason=reason, now=now, at=at, activity=activity)
    if to in _CALLS_BECOME:
        status, error_type = _CALLS_BECOME[to]
        close_open_calls(session, status, error_type=error_type, now=now, run_id=run.run_id)


def _below(session: Session, run: Run) -> list[Run]:
    """The unfinished runs below this one, the deepest first.

    Level by level, and however deep: rows that other hands wrote keep no limit.
    """
    levels = [[run]]
    while levels[-1]:
        levels.append(list(unfinished_of(session).filter(parent_run__in=levels[-1])))
    return [child for level in reversed(levels[1:]) for child in level]


def renew(session: Session, run: Run, *, now: datetime) -> None:
    """Note a sign of life; a running run's deadline moves with it, a waiting one's stands.

    The active run's is kept in the session row alone, for the next append to find.
    """
    session.last_activity_at = now
    if session.active_run_id == run.run_id:
        renew_active(session, now=now)
    else:
        run.heartbeat_at = now
        if run.status == RunStatus.RUNNING:
            run.lease_expires_at = now + timedelta(seconds=run.lease_seconds)
        run.save(update_fields=["heartbeat_at", "lease_expires_at"])
        session.other_run_deadline = _earliest_other_deadline(session)
    reschedule(session)


def report_usage(session: Session, run: Run, usage: Usage | None) -> None:
    """Usage at a run's end replaces the run's total, and the session gets the difference."""
    if usage is not None:
        (Usage.of(session) + (usage - Usage.of(run))).store(session)
        usage.store(run)


def mirror(session: Session, run: Run) -> None:
    """Keep true what the session row says of its runs."""
    if run.parent_run_id is None:
        if run.status in STARTED:
            _mirror_active(session, run)
        elif session.active_run_id == run.run_id:
            _mirror_active(session, None)
        if session.newest_run_id == run.run_id:
            session.newest_run_status = run.status
            queued = run.status == RunStatus.PENDING
            session.newest_run_deadline = run.lease_expires_at if queued else None
    session.other_run_deadline = _earliest_other_deadline(session)


def refuse_unless(run: Run, statuses: Collection[RunStatus]) -> None:
    """Refuse a call that fits other statuses only.

    Raises:
        InvalidTransition: the run has another one.
    """
    if run.status not in statuses:
        expected = " or ".join(sorted(statuses))
        raise _invalid(run, f"The run {run.run_id} is {run.status}, not {expected}.")


def refuse_ended(run: Run, *, allowed: Iterable[RunStatus] = ()) -> None:
    """Refuse a write of a run that has ended, with its current state.

    Raises:
        RunEnded: for good.
        RunInterrupted: cut off, and ``allowed`` does not name that.
    """
    state = {"run_id": run.run_id, "current_status": run.status, "attempt": run.attempt}
    if run.status in FINAL:
        raise RunEnded(f"The run {run.run_id} is {run.status}.", ended_at=run.ended_at, **state)
    if run.status == RunStatus.INTERRUPTED and RunStatus.INTERRUPTED not in allowed:
        raise RunInterrupted(f"The run {run.run_id} was interrupted.", next="resume", **state)


def run_active(session: Session) -> RunActive:
    return RunActive(
        f"The run {session.active_run_id} is active in {session.session_id}.",
        active_run_id=session.active_run_id,
        session_id=session.session_id,
    )


def require_unfinished_parent(parent: Run) -> None:
    """A child run lives inside its parent.

    Raises:
        InvalidTransition: the parent has ended.
    """
    if parent.status not in UNFINISHED:
        raise _invalid(parent, f"The parent run {parent.run_id} is {parent.status}.")


def _invalid(run: Run, detail: str) -> InvalidTransition:
    return InvalidTransition(
        detail, run_id=run.run_id, current_status=run.status, attempt=run.attempt
    )


def _mirror_active(session: Session, run: Run | None) -> None:
    running = run is not None and run.status == RunStatus.RUNNING
    session.active_run_id = run.run_id if run else None
    session.active_run_attempt = run.attempt if run else None
    session.active_run_lease_seconds = run.lease_seconds if run and running else None
    session.active_run_deadline = run.lease_expires_at if run else None
    session.active_run_seen_at = run.heartbeat_at if run else None


def unfinished_of(session: Session) -> RunQuerySet:
    return Run.objects.filter(session=session, status__in=UNFINISHED).order_by("run_id")


def as_known(session: Session, run: Run) -> Run:
    """The run, with what the session row knows better while it is active."""
    run.session = session
    if session.active_run_id == run.run_id and session.active_run_deadline is not None:
        run.lease_expires_at = session.active_run_deadline
        run.heartbeat_at = session.active_run_seen_at
    return run


def _earliest_other_deadline(session: Session) -> datetime | None:
    others = unfinished_of(session).exclude(pk=session.active_run_id)
    return others.order_by().aggregate(earliest=Min("lease_expires_at"))["earliest"]
