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
from ..jsontext import JSONText, clean_text
from ..models import Session
from ..states import SessionStatus, Subject, effective_status
from ..writes import insert, new_row
from .lifecycle import record_event
from .locking import lock_named, reschedule, touch
from .memory import add_revision, complete_memory, encode_memory, merge_patch
from .metadata import add_terms, encode_metadata, index_metadata, index_text
from .notes import note_session
from .search import index_title, reindex_title

MAX_IDLE_TIMEOUT = 315_360_000  # ten years
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class NewSession:
    """What a client says of a session that it creates; by `title_is_said` what a loader knows."""

    agent_id: str | None = None
    user_id: str | None = None
    title: str | None = None
    title_is_said: bool = False
    external_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    working_memory: Mapping[str, Any] | None = None
    idle_timeout_seconds: int | None = None
    parent_session_id: str | None = None
    if_exists: Literal["error", "return"] = "error"


class SessionChanges(dict[str, Any]):
    """The fields of a PATCH: a key that is absent is unchanged (report CON-08).

    ``metadata`` is merged, ``whole_metadata`` takes the place of all that there was.
    """


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


def insert_copy(session: Session, *, actor: Actor, now: datetime) -> None:
    """Insert a session that was made elsewhere, as one of the actor's account.

    It keeps its parent only if that is the account's own.

    Raises:
        AlreadyExists: the account has a session of its external id.
    """
    session.account_id = _account_of(actor)
    parent = session.parent_session_id
    if parent is not None and not _is_own(parent, actor):
        session.parent_session_id = session.forked_at_sequence = None
    index_text(session)
    add_terms(session)
    if session.external_id is None:
        _store(session)
        return
    for _ in range(_ATTEMPTS):
        if existing := lock_named(session.account_id, session.external_id):
            raise _taken(existing, now)
        with suppress(IntegrityError), transaction.atomic():
            _store(session)
            return
    raise _busy()


def change(session: Session, changes: SessionChanges, *, now: datetime) -> None:
    """Apply a PATCH (row locked, ACTIVE). It is no activity: expiry counts from the last one.

    Raises:
        InvalidRequest: agent or user is named already, by another name.
    """
    if not changes:
        return
    note_session(session, version=touch(session, now=now, activity=False))
    for name in ("agent_id", "user_id"):
        if name in changes:
            _name_once(session, name, changes[name])
    if "title" in changes:
        title = clean_string("title", changes["title"])
        # Who sends back what he has read has not named it.
        session.title_is_said &= title == session.title
        session.title = title
        index_text(session)
        reindex_title(session)
    if "idle_timeout_seconds" in changes:
        session.idle_timeout_seconds = _check_timeout(changes["idle_timeout_seconds"])
        reschedule(session)
    if "metadata" in changes:
        patch = changes["metadata"]
        _set_metadata(session, {} if patch is None else merge_patch(session.metadata.value, patch))
    if "whole_metadata" in changes:
        _set_metadata(session, changes["whole_metadata"])


def _set_metadata(session: Session, metadata: Any) -> None:
    session.metadata = encode_metadata(metadata)
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
    session = new_row(
        Session,
        session_id=new_id("sess"),
        account_id=_account_of(actor),
        external_id=clean_string("external_id", new.external_id),
        agent_id=clean_string("agent_id", new.agent_id),
        user_id=clean_string("user_id", new.user_id),
        title=clean_string("title", new.title),
        title_is_said=bool(new.title) and new.title_is_said,
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


def _account_of(actor: Actor) -> int:
    if actor.user is None:
        raise InvalidRequest("A session needs an account to belong to.")
    return actor.user.pk


def _insert(session: Session, new: NewSession, actor: Actor) -> Session:
    memory = None
    if new.working_memory is not None:
        memory = encode_memory(complete_memory(new.working_memory, pointer="/working_memory"))
    return insert_session(session, memory, actor=actor)


def insert_session(
    session: Session, memory: JSONText | None, *, actor: Actor, reason: str = ""
) -> Session:
    """Store a session that is complete but for its working memory.

    What belongs to the session goes before it, since the session's row counts it: keys between
    tables are checked at the transaction's end.
    """
    now = session.created_at
    if session.metadata.text != "{}":
        add_terms(session)
    if memory is not None:
        add_revision(session, memory, actor=actor, run_id=None, version=1, now=now)
    record_event(
        session,
        subject=Subject.SESSION,
        subject_id=session.session_id,
        from_status=None,
        to_status=SessionStatus.ACTIVE,
        actor=actor,
        reason=reason,
        version=session.version,
        now=now,
    )
    _store(session)
    return session


def _store(session: Session) -> None:
    insert([session])
    index_title(session)


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
    raise _busy()


def _busy() -> DatabaseBusy:
    return DatabaseBusy("Sessions with this external_id come and go at the same time.")


def _resolve(existing: Session, new: NewSession, now: datetime) -> tuple[Session, bool]:
    if new.if_exists == "return":
        return existing, False
    raise _taken(existing, now)


def _taken(existing: Session, now: datetime) -> AlreadyExists:
    return AlreadyExists(
        f"The external_id {existing.external_id!r} names the session {existing.session_id}.",
        session_id=existing.session_id,
        current_status=effective_status(existing.status, expires_at=existing.expires_at, now=now),
    )


def _check_parent(parent_session_id: str | None, actor: Actor) -> str | None:
    if parent_session_id is None:
        return None
    if not _is_own(parent_session_id, actor):
        raise NotFound(f"There is no session {parent_session_id}.")
    return parent_session_id


def _is_own(session_id: str, actor: Actor) -> bool:
    own = Session.objects.writable_by(actor).exclude(status=SessionStatus.DELETED)
    return own.filter(pk=session_id).exists()


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
