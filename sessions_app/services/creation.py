"""New sessions, and changes of what a client may change in one."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

from django.db import IntegrityError, transaction
from django.db.models import CharField, Model

from ..actors import Actor
from ..errors import AlreadyExists, DatabaseBusy, InvalidRequest, NotFound
from ..ids import new_id
from ..jsontext import clean_text
from ..models import Session
from ..states import SessionStatus, Subject, effective_status
from ..writes import insert
from .lifecycle import record_event
from .locking import lock_named, reschedule, touch
from .memory import add_revision, complete_memory, encode_memory, merge_patch
from .metadata import add_terms, encode_metadata, index_metadata, index_text

MAX_IDLE_TIMEOUT = 315_360_000  # ten years
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class NewSession:
    """What a client says of a session that it creates."""

    agent_id: str | None = None
    user_id: str | None = None
    title: str | None = None
    external_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    working_memory: Mapping[str, Any] | None = None
    idle_timeout_seconds: int | None = None
    parent_session_id: str | None = None
    if_exists: Literal["error", "return"] = "error"


class SessionChanges(dict[str, Any]):
    """The fields of a PATCH: a key that is absent is unchanged (report CON-08)."""


def create(new: NewSession, *, actor: Actor, now: datetime) -> tuple[Session, bool]:
    """Insert a session, or find the one that has the external id already.

    Two clients that create the same one at once: the unique constraint decides, in a savepoint,
    and the loser finds the winner's (report CON-04).

    Raises:
        AlreadyExists: with the existing session's id.
        NotFound: the parent session is not the account's.
    """
    if new.external_id is None:
        return _insert(_build(new, actor, now), new, actor), True
    return _insert_or_find(new, actor, now)


def change(session: Session, changes: SessionChanges, *, now: datetime) -> None:
    """Apply a PATCH (row locked, ACTIVE). It is no activity: expiry counts from the last one.

    Raises:
        InvalidRequest: agent or user is named already, by another name.
    """
    if not changes:
        return
    touch(session, now=now, activity=False)
    for name in ("agent_id", "user_id"):
        if name in changes:
            _name_once(session, name, changes[name])
    if "title" in changes:
        session.title = clean_string("title", changes["title"])
        index_text(session)
    if "idle_timeout_seconds" in changes:
        session.idle_timeout_seconds = _check_timeout(changes["idle_timeout_seconds"])
        reschedule(session)
    if "metadata" in changes:
        patch = changes["metadata"]
        merged = {} if patch is None else merge_patch(session.metadata.value, patch)
        session.metadata = encode_metadata(merged)
        index_metadata(session)


def clean_string(name: str, value: str | None, *, model: type[Model] = Session) -> str | None:
    """A string as its column can hold it.

    Raises:
        InvalidRequest: longer than the column.
    """
    longest = cast(CharField, model._meta.get_field(name)).max_length
    if value is not None and longest is not None and len(value) > longest:
        raise InvalidRequest.at(f"/{name}", f"longer than {longest} characters")
    return None if value is None else clean_text(value)


def _build(new: NewSession, actor: Actor, now: datetime) -> Session:
    if actor.user is None:
        raise InvalidRequest("A session needs an account to belong to.")
    session = Session(
        session_id=new_id("sess"),
        account=actor.user,
        external_id=clean_string("external_id", new.external_id),
        agent_id=clean_string("agent_id", new.agent_id),
        user_id=clean_string("user_id", new.user_id),
        title=clean_string("title", new.title),
        metadata=encode_metadata(new.metadata),
        idle_timeout_seconds=_check_timeout(new.idle_timeout_seconds),
        parent_session_id=_check_parent(new.parent_session_id, actor),
        created_at=now,
        updated_at=now,
        last_activity_at=now,
    )
    index_text(session)
    reschedule(session)
    return session


def _insert(session: Session, new: NewSession, actor: Actor) -> Session:
    """What belongs to the session goes before it, since the session's row counts it: keys between
    tables are checked at the transaction's end."""
    now = session.created_at
    if new.metadata:
        add_terms(session)
    if new.working_memory is not None:
        whole = complete_memory(new.working_memory, pointer="/working_memory")
        add_revision(session, encode_memory(whole), actor=actor, run_id=None, version=1, now=now)
    record_event(
        session,
        subject=Subject.SESSION,
        subject_id=session.session_id,
        from_status=None,
        to_status=SessionStatus.ACTIVE,
        actor=actor,
        reason="",
        version=session.version,
        now=now,
    )
    insert([session])
    return session


def _insert_or_find(new: NewSession, actor: Actor, now: datetime) -> tuple[Session, bool]:
    """Insert the session, or answer the one that has its external id.

    The winner of a race may be deleted, and its name free again, before the loser finds it. What is
    found is locked: a deletion must find, and empty, the idempotency record that this call leaves.
    """
    for _ in range(_ATTEMPTS):
        session = _build(new, actor, now)
        if existing := lock_named(session.account_id, str(session.external_id)):
            return _resolve(existing, new, now)
        with suppress(IntegrityError), transaction.atomic():
            return _insert(session, new, actor), True
    raise DatabaseBusy("Sessions with this external_id come and go at the same time.")


def _resolve(existing: Session, new: NewSession, now: datetime) -> tuple[Session, bool]:
    if new.if_exists == "return":
        return existing, False
    raise AlreadyExists(
        f"The external_id {new.external_id!r} names the session {existing.session_id}.",
        session_id=existing.session_id,
        current_status=effective_status(existing.status, expires_at=existing.expires_at, now=now),
    )


def _check_parent(parent_session_id: str | None, actor: Actor) -> str | None:
    if parent_session_id is None:
        return None
    parents = Session.objects.writable_by(actor).exclude(status=SessionStatus.DELETED)
    if not parents.filter(pk=parent_session_id).exists():
        raise NotFound(f"There is no session {parent_session_id}.")
    return parent_session_id


def _check_timeout(seconds: int | None) -> int | None:
    if seconds is not None and not 1 <= seconds <= MAX_IDLE_TIMEOUT:
        raise InvalidRequest.at(
            "/idle_timeout_seconds", f"must be null or from 1 to {MAX_IDLE_TIMEOUT}"
        )
    return seconds


def _name_once(session: Session, name: str, value: str | None) -> None:
    current = getattr(session, name)
    if current and value != current:
        raise InvalidRequest.at(f"/{name}", f"is {current!r} already and cannot change")
    setattr(session, name, clean_string(name, value))
