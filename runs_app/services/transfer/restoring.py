"""A staged session stored: the last part of an import, and the only one that holds a lock."""

from collections.abc import Iterable, Iterator
from copy import copy
from datetime import datetime
from typing import TypeVar

from django.db.models import Model

from sessions_app.actors import Actor
from sessions_app.models import Message, Session, SessionEvent, ToolCall, WorkingMemoryRevision
from sessions_app.services.creation import insert_copy
from sessions_app.services.lifecycle import record_event
from sessions_app.services.locking import reschedule
from sessions_app.services.messages import insert_copies
from sessions_app.services.search import index_restored
from sessions_app.states import SessionStatus
from sessions_app.writes import flush, insert

from ...models import Run
from . import history
from .staging import Staged

Row = TypeVar("Row", bound=Model)

# So much is on its way to the database at once.
_MOST_ROWS, _MOST_BYTES = 1_000, 1 << 20


def restore(staged: Staged, *, actor: Actor, now: datetime) -> Session:
    """Store the session as the actor's own, and that it was imported (inside a write transaction).

    Raises:
        AlreadyExists: the account has a session of its external id.
    """
    session = copy(staged.session)
    if session.status == SessionStatus.ACTIVE:
        reschedule(session)
    _record(session, staged, actor=actor, now=now)
    insert_copy(session, actor=actor, now=now)
    scratch = staged.scratch
    for model in (Run, ToolCall, WorkingMemoryRevision, SessionEvent):
        for rows in _portions(scratch.rows(model)):
            insert(rows)
            flush()
    for messages in _portions(scratch.rows(Message)):
        insert_copies(session, messages)
        flush()
    index_restored(session)
    return session


def _record(session: Session, staged: Staged, *, actor: Actor, now: datetime) -> None:
    """Events of this server's own, after those of the file."""
    for number, fact in enumerate(history.facts(staged.scratch, session), start=1):
        record_event(
            session,
            **fact._asdict(),
            actor=actor,
            reason=f"imported from {session.imported_from}",
            version=session.version,
            now=now,
        )
        if number % _MOST_ROWS == 0:
            flush()


def _portions(rows: Iterable[Row]) -> Iterator[list[Row]]:
    portion: list[Row] = []
    size = 0
    for row in rows:
        portion.append(row)
        size += getattr(row, "size", 0)
        if len(portion) == _MOST_ROWS or size >= _MOST_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
