"""New runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from django.conf import settings

from sessions_app.actors import Actor
from sessions_app.errors import InvalidRequest, NotFound
from sessions_app.ids import new_id
from sessions_app.jsontext import JSONText
from sessions_app.models import Session
from sessions_app.services.creation import clean_string
from sessions_app.services.locking import touch
from sessions_app.services.metadata import encode_metadata

from ..models import Run
from ..states import RunStatus
from . import transitions

MIN_LEASE, MAX_LEASE = 10, 86_400
MAX_WAIT = 315_360_000  # ten years


@dataclass(frozen=True, slots=True)
class NewRun:
    """What a client says of a run that it creates."""

    input: Any = None
    agent_id: str | None = None
    model: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    if_active: Literal["reject", "cancel", "queue"] = "reject"
    lease_seconds: int | None = None
    start: bool = True
    retry_of: str | None = None
    parent_run_id: str | None = None


def create(session: Session, new: NewRun, *, actor: Actor, now: datetime) -> Run:
    """Insert a run into the locked, ACTIVE session, and start it if it is its turn.

    Raises:
        RunActive, NotFound, InvalidTransition, InvalidRequest: see `RunManager.create`.
    """
    run = _build(session, new, now)
    starts = new.start and _make_way(session, run, new, actor=actor, now=now)
    run.session_version = touch(session, now=now)
    session.run_count += 1
    run.save(force_insert=True)
    if run.parent_run_id is None:
        session.newest_run_id = run.run_id
    transitions.mirror(session, run)
    transitions.record_run_event(session, run, None, actor=actor, reason="", now=now)
    if starts:
        transitions.begin_attempt(session, run, actor=actor, now=now)
    return run


def wait_seconds(given: int | None) -> int:
    """How long a run may wait.

    Raises:
        InvalidRequest: out of bounds.
    """
    seconds = settings.WAITING_TTL_DAYS * 86_400 if given is None else given
    if not 1 <= seconds <= MAX_WAIT:
        raise InvalidRequest.at("/timeout_seconds", f"must be from 1 to {MAX_WAIT}")
    return seconds


def _build(session: Session, new: NewRun, now: datetime) -> Run:
    lease = settings.DEFAULT_LEASE_SECONDS if new.lease_seconds is None else new.lease_seconds
    if not MIN_LEASE <= lease <= MAX_LEASE:
        raise InvalidRequest.at("/lease_seconds", f"must be from {MIN_LEASE} to {MAX_LEASE}")
    text = None if new.input is None else JSONText.of(new.input, pointer="/input")
    agent_id = session.agent_id if new.agent_id is None else new.agent_id
    run = Run(
        run_id=new_id("run"),
        session=session,
        agent_id=clean_string("agent_id", agent_id, model=Run),
        model=clean_string("model", new.model, model=Run),
        input=text,
        metadata=encode_metadata(new.metadata),
        lease_seconds=lease,
        lease_expires_at=now + timedelta(hours=settings.PENDING_TTL_HOURS),
        created_at=now,
    )
    run.size = run.content_size
    if new.retry_of is not None:
        run.retry_of = _find(session, new.retry_of, "/retry_of")
    if new.parent_run_id is not None:
        run.parent_run = _parent(session, new.parent_run_id)
    return run


def _parent(session: Session, run_id: str) -> Run:
    """Above a run there are two at most: so many leases `RunQuerySet.effective` compares."""
    parent = _find(session, run_id, "/parent_run_id")
    if parent.parent_run is not None and parent.parent_run.parent_run_id is not None:
        raise InvalidRequest.at(
            "/parent_run_id", "that run is two levels below a top-level run, and none may be deeper"
        )
    transitions.require_unfinished_parent(parent)
    return parent


def _make_way(session: Session, run: Run, new: NewRun, *, actor: Actor, now: datetime) -> bool:
    """Tell whether the run may start now, after cancelling the active one if that was asked for."""
    if session.active_run_id is None or run.parent_run is not None or new.if_active == "queue":
        return session.active_run_id is None or run.parent_run is not None
    if new.if_active == "reject":
        raise transitions.run_active(session)
    transitions.end(
        session,
        transitions.load(session, session.active_run_id),
        RunStatus.CANCELLED,
        actor=actor,
        reason="a new run took its place",
        now=now,
    )
    return True


def _find(session: Session, run_id: str, pointer: str) -> Run:
    run = Run.objects.filter(session=session, pk=run_id).first()
    if run is None:
        raise NotFound(f"{pointer}: the session has no run {run_id}.")
    return run
