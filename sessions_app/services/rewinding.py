"""Rewinding: the newest messages leave the history, and the working memory is what it was before.

Nothing is lost, and no sequence is used again: what was superseded stays readable, with the tool
calls that it made. Runs go on as they are: whoever rewinds may be the one that works.
"""

from datetime import datetime

from ..actors import Actor
from ..jsontext import JSONText
from ..models import Message, Session
from ..querysets import AS_ADDED
from ..states import Subject
from .cuts import (
    compaction_at,
    memory_at,
    note_compaction,
    require_stored,
    safe_cut,
    standing_at,
)
from .lifecycle import record_event
from .locking import touch
from .memory import add_revision, empty_memory
from .search import forget
from .tool_calls import supersede


def rewind(
    session: Session, to_sequence: int, *, actor: Actor, reason: str, now: datetime
) -> tuple[int, bool]:
    """Supersede what came after a place (row locked, ACTIVE); returns the newest message that is
    left, and whether there was anything to take away.

    Raises:
        InvalidRequest: the history has not come so far.
    """
    require_stored(session, to_sequence, pointer="/to_sequence")
    cut = standing_at(session, safe_cut(session, to_sequence))
    later = Message.objects.filter(session=session, sequence__gt=cut, superseded_at=None)
    first = later.order_by("sequence").values_list("message_id", flat=True).first()
    if first is None:
        return cut, False
    memory = memory_at(session, cut)
    version = touch(session, now=now)
    forget(session, later.values_list("message_id", flat=True))
    changes = {"superseded_at": now, "session_version": version, "added_version": AS_ADDED}
    session.message_count -= later.live().update(**changes)
    later.update(**changes)  # removed ones, which do not count
    supersede(session, after=cut, now=now)
    if session.compaction_sequence is not None and session.compaction_sequence > cut:
        note_compaction(session, compaction_at(session, cut))
    if cut <= session.head_sequence:  # the head is open again: the next message may be part of it
        session.head_sequence = session.last_sequence
    if session.working_memory_version != (memory.version if memory else 0):
        text = memory.memory if memory else JSONText.of(empty_memory())
        add_revision(session, text, actor=actor, run_id=None, version=version, now=now)
    record_event(
        session,
        subject=Subject.CONTENT,
        subject_id=first,
        from_status=None,
        to_status="SUPERSEDED",
        actor=actor,
        reason=reason,
        version=version,
        now=now,
    )
    return cut, True
