"""Taking messages away again: their content goes, their places stay."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Count, Sum

from ..actors import Actor
from ..errors import HasResult, NotFound, PayloadTooLarge
from ..jsontext import JSONText
from ..models import Message, Session, ToolCall
from ..querysets import AS_ADDED, MessageQuerySet
from ..states import Subject
from .cuts import compaction_at, note_compaction
from .lifecycle import record_event
from .locking import touch
from .search import forget as forget_words
from .titles import forget_title
from .tool_calls import forget, reopen

_PURGED = JSONText("{}")


def remove(session: Session, sequence: int, *, actor: Actor, now: datetime) -> None:
    """Purge one message's content; its row keeps its place. Again: nothing happens.

    Raises:
        NotFound: the session has no such message.
        HasResult: it made a call that has a result.
    """
    message = Message.objects.filter(session=session, sequence=sequence).first()
    if message is None:
        raise NotFound(f"There is no message {sequence}.")
    if message.removed_at is not None:
        return
    calls = ToolCall.objects.filter(session=session, message_sequence=sequence)
    if calls.filter(result__isnull=False).exists():
        raise HasResult(f"Message {sequence} made a tool call that has a result.")
    _purge(session, [message], actor=actor, now=now)


def pop(session: Session, *, turn: bool, actor: Actor, now: datetime) -> list[Message]:
    """Remove the newest message, or all down to and including the last user message.

    Returns them as they were, oldest first.

    Raises:
        NotFound: there is none.
        PayloadTooLarge: the turn does not fit into one answer.
    """
    live = Message.objects.filter(session=session).live().order_by("-sequence")
    down_to = _last_user_message(live) if turn else live.first()
    if down_to is None:
        raise NotFound("There is no user message." if turn else "There is no message.")
    doomed = live.filter(sequence__gte=down_to.sequence).order_by("sequence")
    if turn:
        _require_answerable(doomed)
    popped = list(doomed)
    _purge(session, popped, actor=actor, now=now)
    return popped


def _require_answerable(turn: MessageQuerySet) -> None:
    """Refuse what one answer, which its key's record holds too, cannot: a page at most, or one
    message, whatever its size."""
    whole = turn.aggregate(size=Sum("size"), number=Count("pk"))
    if whole["number"] > 1 and whole["size"] > settings.MAX_PAGE_BYTES:
        raise PayloadTooLarge(
            f"The turn holds more than {settings.MAX_PAGE_BYTES} bytes: pop its messages one by "
            "one.",
            limit=settings.MAX_PAGE_BYTES,
        )


def _last_user_message(live: MessageQuerySet) -> Message | None:
    """The newest message in which a user speaks: one that only carries tool results does not."""
    # A few at a time: what is passed over is popped with the rest, but what is older stays.
    said = live.filter(role="user", through_sequence=None)
    for message in said.iterator(chunk_size=10):
        if not _only_answers(message.body.value.get("content")):
            return message
    return None


def _only_answers(content: Any) -> bool:
    if not isinstance(content, list) or not content:
        return False
    return all(part["type"] == "tool_result" for part in content)


def _purge(session: Session, messages: Sequence[Message], *, actor: Actor, now: datetime) -> None:
    version = touch(session, now=now)
    sequences = [message.sequence for message in messages]
    calls = ToolCall.objects.filter(session=session)
    forget(session, calls.filter(message_sequence__in=sequences))
    reopen(session, calls.filter(result_sequence__in=sequences), version=version)
    session.message_count -= sum(message.superseded_at is None for message in messages)
    ids = [message.message_id for message in messages]
    forget_words(session, ids)
    forget_title(session, messages)
    Message.objects.filter(pk__in=ids).update(
        body=_PURGED,
        size=len(_PURGED),
        text="",
        removed_at=now,
        added_version=AS_ADDED,
        session_version=version,
    )
    if session.compaction_sequence in sequences:
        note_compaction(session, compaction_at(session, session.last_sequence))
    for message in messages:
        record_event(
            session,
            subject=Subject.CONTENT,
            subject_id=message.message_id,
            from_status=None,
            to_status="REMOVED",
            actor=actor,
            reason="",
            version=version,
            now=now,
        )
