"""Where a history may be cut, and what was in force there: for fork, rewind and compaction.

A cut is a sequence: what stands up to it is on one side, all else on the other. No cut parts a
call from its result, so that both sides are transcripts that a model accepts (report PAIR-01).
"""

from django.db.models import BigIntegerField, Min, Subquery, Value
from django.db.models.functions import Coalesce

from ..errors import InvalidRequest
from ..models import Message, Session, ToolCall, WorkingMemoryRevision

_PAIRS_AT_ONCE = 500


def require_stored(session: Session, sequence: int, *, pointer: str) -> None:
    """Refuse a place that the history has not reached.

    Raises:
        InvalidRequest: by ``pointer``.
    """
    if sequence > session.last_sequence:
        raise InvalidRequest.at(pointer, f"the session's last sequence is {session.last_sequence}")


def safe_cut(session: Session, at: int) -> int:
    """The last place up to ``at`` that parts no call from its result; 0 is before all messages.

    Two queries at most, however far down it is: results are walked through from there.
    """
    if not session.tool_call_count:
        return at
    calls = ToolCall.objects.filter(session=session, superseded_at=None)
    across = calls.filter(message_sequence__lte=at, result_sequence__gt=at)
    first = across.aggregate(first=Min("message_sequence"))["first"]
    if first is None:
        return at
    cut = first - 1
    # What lies across the new place has its result between the two.
    pairs = calls.filter(result_sequence__lte=at).order_by("-result_sequence")
    rows = pairs.values_list("message_sequence", "result_sequence")
    for call, result in rows.iterator(chunk_size=_PAIRS_AT_ONCE):
        if call is None or result is None or result <= cut:  # none of a pair is null
            break
        cut = min(cut, call - 1)
    return cut


def standing_at(session: Session, at: int) -> int:
    """The newest message up to there that was not superseded; 0: none."""
    kept = Message.objects.filter(session=session, sequence__lte=at, superseded_at=None)
    return kept.order_by("-sequence").values_list("sequence", flat=True).first() or 0


def memory_at(session: Session, cut: int) -> WorkingMemoryRevision | None:
    """The working memory when the history had come to the cut: the newest revision before the next
    message that was not superseded. So at the end it is the current one, and what an agent noted
    about its last messages belongs to them. None: nothing was ever written."""
    if not session.working_memory_version:
        return None
    later = Message.objects.filter(session=session, sequence__gt=cut, superseded_at=None)
    following = Subquery(later.order_by("sequence").values("sequence")[:1])
    end = Value(session.last_sequence + 1, output_field=BigIntegerField())
    revisions = WorkingMemoryRevision.objects.filter(session=session)
    found = revisions.filter(sequence__lt=Coalesce(following, end))
    return found.order_by("-version").first()


def compaction_at(session: Session, at: int) -> Message | None:
    """The newest compaction up to there that is neither removed nor superseded."""
    made = Message.objects.filter(session=session, through_sequence__isnull=False)
    return made.live().filter(sequence__lte=at).order_by("-sequence").first()


def note_compaction(session: Session, message: Message | None) -> None:
    """Keep in the session's row by which message its context begins; None: by none."""
    session.compaction_sequence = message.sequence if message else None
    session.compacted_through = message.through_sequence if message else None
