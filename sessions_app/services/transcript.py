"""A page of a conversation as people read it: every message, also what was removed or superseded,
with the tool calls that its messages made or answered."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Case, F, Q, QuerySet, When

from ..fields import JSONTextField
from ..models import Message, Session, ToolCall
from ..querysets import how_many_fit

# Four kilobytes of Markdown take 35 ms, and a page must open in less than a second.
PAGE_MESSAGES = 30
PAGE_BYTES = 1024 * 1024
# What a page shows of a call without being asked; a larger one is fetched by itself.
SHOWN_CALL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class TranscriptPage:
    """Messages oldest first, and the calls that they made or answered, oldest first."""

    messages: Sequence[Message]
    calls: Sequence[ToolCall]
    has_earlier: bool
    has_later: bool


def read_transcript(
    session: Session,
    *,
    before: int | None = None,
    after: int | None = None,
    role: str | None = None,
) -> TranscriptPage:
    """The newest messages, or those just before or just after a sequence.

    As many as a page holds, by number and by bytes: sizes are read first.
    """
    found = Message.objects.filter(session=session)
    found = found.matching(after=after, before=before, role=role)
    forwards = after is not None
    ordered = found.order_by("sequence" if forwards else "-sequence")
    sizes = list(ordered.values_list("sequence", "size")[: PAGE_MESSAGES + 1])
    fitting = how_many_fit([size for _, size in sizes[:PAGE_MESSAGES]], PAGE_BYTES)
    shown = sorted(sequence for sequence, _ in sizes[:fitting])
    more = len(sizes) > len(shown)
    return TranscriptPage(
        messages=list(_messages(session, shown, role)),
        calls=_calls(session, shown),
        has_earlier=more if not forwards else True,
        has_later=more if forwards else before is not None and before <= session.last_sequence,
    )


def _messages(session: Session, shown: Sequence[int], role: str | None) -> QuerySet[Message]:
    if not shown:
        return Message.objects.none()
    found = Message.objects.filter(session=session, sequence__range=(shown[0], shown[-1]))
    return found.matching(role=role).defer("text").order_by("sequence")


def _calls(session: Session, shown: Sequence[int]) -> list[ToolCall]:
    """Two queries, one for each index: an OR of the two columns would use neither."""
    if not (shown and session.tool_call_count):
        return []
    span = (shown[0], shown[-1])
    mine = ToolCall.objects.filter(session=session)
    made = with_small_values(mine.filter(message_sequence__range=span))
    answered = with_small_values(mine.filter(result_sequence__range=span))
    return sorted({call.id: call for call in (*made, *answered)}.values(), key=lambda call: call.id)


def with_small_values(calls: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
    """Calls with their arguments and results as far as a page shows them at once."""
    small = Q(size__lte=SHOWN_CALL_BYTES)
    values = {
        f"shown_{name}": Case(When(small, then=F(name)), output_field=JSONTextField(null=True))
        for name in ("arguments", "result")
    }
    return calls.defer("arguments", "result").annotate(**values)
