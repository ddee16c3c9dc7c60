"""Forks: a new session that begins as a copy of another one up to some place in its history.

The copies are made inside the database, in statements that are as few for ten thousand messages as
for ten. Nothing is shared afterwards: deleting either session takes nothing from the other (report
FORK-01). Runs stay where they are; what they did comes along without their name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any

from django.db.models import Model, TextField
from django.db.models.functions import Cast

from ..actors import Actor
from ..ids import new_id
from ..models import Message, Session, ToolCall
from ..states import Subject
from ..usage import NO_USAGE, Usage
from ..writes import copy, new_row
from .creation import clean_string, insert_session
from .cuts import (
    compaction_at,
    memory_at,
    note_compaction,
    require_stored,
    safe_cut,
    standing_at,
)
from .lifecycle import record_event
from .locking import reschedule, touch
from .metadata import encode_metadata, index_text
from .search import copy_messages

# What one statement copies. SQLite holds it in memory: it reads the table that it writes to.
_BYTES_AT_ONCE = 4 * 1024 * 1024
_BODIES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class NewFork:
    """What a client says of a fork; None: the whole history, and title and metadata as they are."""

    at_sequence: int | None = None
    title: str | None = None
    metadata: Mapping[str, Any] | None = None


def fork(parent: Session, new: NewFork, *, actor: Actor, now: datetime) -> Session:
    """Insert the fork of a session whose row is locked; its status does not matter.

    Messages keep their sequences, so what was removed or superseded before the cut is in the
    fork as it is in the original.

    Raises:
        InvalidRequest: ``at_sequence`` lies behind the last message.
        PayloadTooLarge: see `encode_metadata`.
    """
    at = parent.last_sequence if new.at_sequence is None else new.at_sequence
    require_stored(parent, at, pointer="/at_sequence")
    cut = standing_at(parent, safe_cut(parent, at))
    made = _build(parent, new, cut, now)
    memory = memory_at(parent, cut)
    said, done = _count_history(parent, made)
    insert_session(
        made,
        memory.memory if memory else None,
        actor=actor,
        reason=f"forked from {parent.session_id} at {cut}",
    )
    _copy(Message, "msg", said, made)
    copy_messages(parent, made)
    _copy(ToolCall, "call", done, made)
    record_event(
        parent,
        subject=Subject.CONTENT,
        subject_id=made.session_id,
        from_status=None,
        to_status="FORKED",
        actor=actor,
        reason=f"forked at {cut}",
        version=touch(parent, now=now, activity=False),
        now=now,
    )
    return made


def _build(parent: Session, new: NewFork, cut: int, now: datetime) -> Session:
    is_kept = new.title is None
    title = parent.title if is_kept else clean_string("title", new.title)
    given = parent.metadata if new.metadata is None else encode_metadata(new.metadata)
    made = new_row(
        Session,
        session_id=new_id("sess"),
        account_id=parent.account_id,
        agent_id=parent.agent_id,
        user_id=parent.user_id,
        title=title,
        title_is_said=is_kept and parent.title_is_said,
        metadata=given,
        last_sequence=cut,
        head_sequence=min(parent.head_sequence, cut),
        idle_timeout_seconds=parent.idle_timeout_seconds,
        parent_session_id=parent.session_id,
        forked_at_sequence=cut,
        created_at=now,
        updated_at=now,
        last_activity_at=now,
    )
    index_text(made)
    reschedule(made)
    return made


def _count_history(parent: Session, made: Session) -> tuple[list[Any], list[Any]]:
    """Count what the fork begins with in its row; returns of its messages and calls what `_copy`
    takes."""
    cut = made.last_sequence
    messages = Message.objects.filter(session=parent, sequence__lte=cut).order_by("sequence")
    said = list(messages.values_list("message_id", "size", "removed_at", "superseded_at"))
    made.message_count = sum(not (removed or superseded) for _, _, removed, superseded in said)
    done: list[tuple[str, int, datetime | None]] = []
    if parent.tool_call_count:
        calls = ToolCall.objects.filter(session=parent, message_sequence__lte=cut).order_by("id")
        done = list(calls.values_list("id", "size", "finished_at"))
        made.tool_call_count = len(done)
        made.open_tool_call_count = sum(finished is None for _, _, finished in done)
    if parent.compaction_sequence is not None:
        note_compaction(made, compaction_at(parent, cut))
    _usage_until(parent, cut).store(made)
    return said, done


def _copy(model: type[Model], prefix: str, rows: Sequence[tuple[Any, ...]], made: Session) -> None:
    for portion in _portions(rows):
        copy(
            model,
            {key: new_id(prefix) for key in portion},
            session_id=made.session_id,
            run_id=None,
            session_version=made.version,
            added_version=None,
        )


def _portions(rows: Sequence[tuple[Any, ...]]) -> Iterator[list[str]]:
    """The keys of rows (key, size, …), in portions of so many bytes."""
    portions = (total // _BYTES_AT_ONCE for total in accumulate(size for _, size, *_ in rows))
    numbered = zip(portions, (key for key, *_ in rows), strict=True)
    for _, portion in groupby(numbered, key=itemgetter(0)):
        yield [key for _, key in portion]


def _usage_until(parent: Session, cut: int) -> Usage:
    """What the messages up to the cut cost. Each says it of itself; what a run reported at its end
    is the run's, which is not copied."""
    if not (parent.run_count or Usage.of(parent)):
        return NO_USAGE
    said = Message.objects.filter(session=parent, sequence__lte=cut)
    said = said.alias(as_text=Cast("body", TextField())).filter(as_text__contains='"usage"')
    total = NO_USAGE
    for body in said.values_list("body", flat=True).iterator(chunk_size=_BODIES_AT_ONCE):
        usage = Usage.from_client(body.value.get("usage"), pointer="/usage")
        total = total if usage is NO_USAGE else total + usage
    return total
