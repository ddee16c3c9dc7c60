"""Compaction: a summary stands in the context for what was said up to some place.

It is a message like any other, behind all that are there; the context begins with it, and goes on
with what it does not cover (`window`). The originals stay in the history, and in force again when
it is taken away (report CMP-01: histories that were replaced by an empty summary).
"""

from datetime import datetime

from django.db.models import Min

from ..errors import InvalidRequest
from ..folding import folded_text
from ..jsontext import JSONText
from ..models import Message, Session, ToolCall
from ..usage import NO_USAGE
from .cuts import note_compaction, require_stored, safe_cut
from .drafts import Draft
from .messages import append

COMPACTION = "compaction"


def check_summary(summary: str) -> str:
    """A summary that says something.

    Raises:
        InvalidRequest: it is blank.
    """
    if not summary.strip():
        raise InvalidRequest.at("/summary", "must not be blank")
    return summary


def compact(session: Session, through_sequence: int, summary: str, *, now: datetime) -> Message:
    """Append the summary of what stands up to a place (row locked, ACTIVE), and begin the context
    with it.

    The place moves down, so that no call is parted from its result, and none that somebody still
    waits for is covered. ``through_sequence`` of the message is where it came to.

    Raises:
        InvalidRequest: the history has not come so far, or nothing is left to stand for.
    """
    require_stored(session, through_sequence, pointer="/through_sequence")
    cut = safe_cut(session, _before_open_calls(session, through_sequence))
    covered = Message.objects.filter(session=session, through_sequence=None).live()
    if not covered.filter(sequence__gt=session.head_sequence, sequence__lte=cut).exists():
        raise InvalidRequest.at(
            "/through_sequence",
            "up to there no message can be summarised: those that open the session stay, a call "
            "goes with its result only, and one that is still open not at all",
        )
    (message,) = append(
        session,
        [_draft(summary, cut)],
        run_id=None,
        attempt=None,
        expected_last_sequence=None,
        now=now,
    ).messages
    note_compaction(session, message)
    return message


def _before_open_calls(session: Session, at: int) -> int:
    if not session.open_tool_call_count:
        return at
    still_open = ToolCall.objects.filter(session=session, message_sequence__lte=at).open()
    first = still_open.aggregate(first=Min("message_sequence"))["first"]
    return at if first is None else first - 1


def _draft(summary: str, through_sequence: int) -> Draft:
    """As a user's message, which every provider takes in this place."""
    body = JSONText.of({"role": "user", "content": summary, "through_sequence": through_sequence})
    return Draft(
        role="user",
        type=COMPACTION,
        body=body,
        text=folded_text(body.value["content"]),
        client_message_id=None,
        usage=NO_USAGE,
        through_sequence=through_sequence,
    )
