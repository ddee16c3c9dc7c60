"""The one door through which a session's status changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.utils import timezone

from ..actors import Actor
from ..chain import link
from ..errors import InvalidRequest, InvalidTransition
from ..ids import new_id
from ..jsontext import clean_text
from ..models import Session, SessionEvent
from ..signals import run_lapsed, session_ended
from ..states import SESSION_TRANSITIONS, SessionStatus, Subject, ToolCallStatus
from ..writes import insert, new_row
from .locking import locked_session, reschedule, touch
from .tool_calls import close_open_calls

MAX_REASON = 1000
_TIME_OF = {
    SessionStatus.CLOSED: "closed_at",
    SessionStatus.EXPIRED: "expired_at",
    SessionStatus.DELETED: "deleted_at",
}


def move(
    session: Session,
    to: SessionStatus,
    *,
    actor: Actor,
    reason: str,
    now: datetime,
    at: datetime | None = None,
) -> None:
    """Change the status, and write down who did it and why. ``at`` is when it took effect.

    Leaving ACTIVE settles the session's unfinished runs first, then its open tool calls; an
    expired session keeps its calls open, for a resumed run may still answer them.

    Raises:
        InvalidTransition: the table has no such arrow.
    """
    origin = SessionStatus(session.status)
    if to not in SESSION_TRANSITIONS[origin]:
        raise InvalidTransition(
            f"A session that is {origin} cannot become {to}.",
            session_id=session.session_id,
            current_status=origin,
        )
    version = touch(session, now=now, activity=False)
    if origin == SessionStatus.ACTIVE:
        session_ended.send(
            Session, session=session, status=to, actor=actor, reason=reason, now=now, at=at or now
        )
    if to in (SessionStatus.CLOSED, SessionStatus.DELETED):
        close_open_calls(session, ToolCallStatus.CANCELLED, error_type="session_ended", now=now)
    session.status = to
    for status, field in _TIME_OF.items():
        setattr(session, field, (at or now) if status == to else None)
    if to == SessionStatus.ACTIVE:
        session.last_activity_at = now
    if to != SessionStatus.EXPIRED:
        reschedule(session)
    elif session.expires_at is not None:
        session.expires_at = min(session.expires_at, at or now)
    record_event(
        session,
        subject=Subject.SESSION,
        subject_id=session.session_id,
        from_status=origin,
        to_status=to,
        actor=actor,
        reason=reason,
        version=version,
        now=now,
    )


@contextmanager
def settled_session(
    session_id: str,
    *,
    actor: Actor,
    now: datetime | None = None,
    if_match: int | None = None,
) -> Iterator[tuple[Session, datetime]]:
    """Lock the session and settle what has lapsed: how every write begins. Yields the moment, too.

    Without ``now`` it is the clock's, read once the lock is held.

    Raises:
        NotFound, SessionDeleted, VersionMismatch: see `locked_session`.
    """
    with locked_session(session_id, actor=actor, if_match=if_match) as session:
        moment = now or timezone.now()
        settle(session, now=moment)
        yield session, moment


def settle(session: Session, *, now: datetime) -> None:
    """Write down what time has done to the session: runs interrupted first, then expiry.

    The deadlines are compared in the locked row, so a session in time pays nothing.
    Source: lifecycle page, "What lapsed is settled by the next successful write or by the sweep".
    """
    if session.status != SessionStatus.ACTIVE:
        return
    if any(
        deadline is not None and deadline <= now
        for deadline in (session.active_run_deadline, session.other_run_deadline)
    ):
        run_lapsed.send(Session, session=session, now=now)
    if session.expires_at is not None and session.expires_at <= now:
        move(
            session,
            SessionStatus.EXPIRED,
            actor=Actor.system(),
            reason="idle timeout",
            now=now,
            at=session.expires_at,
        )


def record_event(
    session: Session,
    *,
    subject: Subject,
    subject_id: str,
    from_status: str | None,
    to_status: str | None,
    actor: Actor,
    reason: str,
    version: int,
    now: datetime,
) -> None:
    """Append one lifecycle event to the session's own gapless sequence, and to its chain."""
    session.event_count += 1
    # Plain strings: the driver takes long to find out what an enum is.
    event = new_row(
        SessionEvent,
        event_id=new_id("evt"),
        session_id=session.session_id,
        sequence=session.event_count,
        subject=subject.value,
        subject_id=subject_id,
        from_status=from_status and str(from_status),
        to_status=to_status and str(to_status),
        actor_type=actor.type.value,
        actor_id=actor.id,
        reason=reason,
        session_version=version,
        created_at=now,
    )
    event.digest = session.event_digest = link(session.event_digest, event)
    insert([event])


def clean_reason(reason: str | None) -> str:
    """A reason as it is stored.

    Raises:
        InvalidRequest: longer than 1,000 characters.
    """
    if reason is not None and len(reason) > MAX_REASON:
        raise InvalidRequest.at("/reason", f"longer than {MAX_REASON} characters")
    return clean_text(reason or "")
