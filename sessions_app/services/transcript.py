"""A page of a conversation as people read it: every message, also what was removed or superseded,
with the tool calls that its messages made or answered."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import Case, F, Max, Q, QuerySet, When

from ..fields import JSONTextField
from ..models import Message, Session, ToolCall
from ..querysets import how_many_fit

# Four kilobytes of Markdown take 35 ms, and a page must open in less than a second.
PAGE_MESSAGES = 30
PAGE_BYTES = 1024 * 1024
# What a page shows of a call without being asked; a larger one is fetched by itself.
SHOWN_CALL_BYTES = 64 * 1024
# Of the calls of one message the first; and what a page reads of all calls together.
MESSAGE_CALLS = 50
CALLS_BYTES = 1024 * 1024
_ALL = 2**62  # no sequence comes so far


@dataclass(frozen=True, slots=True)
class Placed:
    """Calls by the sequence of the message with which they are shown, oldest first: of the one that
    made them, else of the one that answers them. ``left_out`` counts those for which a message has
    no room."""

    made: dict[int, list[ToolCall]] = field(default_factory=lambda: defaultdict(list))
    answered: dict[int, list[ToolCall]] = field(default_factory=lambda: defaultdict(list))
    left_out: dict[int, int] = field(default_factory=lambda: defaultdict(int))


@dataclass(frozen=True, slots=True)
class TranscriptPage:
    """Messages oldest first, and the calls that they made or answered."""

    messages: Sequence[Message]
    calls: Placed
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
    shown, more = _choose(session, before=before, after=after, role=role)
    forwards = after is not None
    return TranscriptPage(
        messages=_messages(session, shown),
        calls=_calls(session, shown),
        has_earlier=more if not forwards else True,
        has_later=more if forwards else before is not None and before <= session.last_sequence,
    )


def _choose(
    session: Session, *, before: int | None = None, after: int | None = None, role: str | None
) -> tuple[list[int], bool]:
    """The sequences that fill a page, and whether there are more of them in that direction."""
    found = Message.objects.filter(session=session).matching(after=after, before=before, role=role)
    ordered = found.order_by("-sequence" if after is None else "sequence")
    sizes = list(ordered.values_list("sequence", "size")[: PAGE_MESSAGES + 1])
    fitting = how_many_fit([size for _, size in sizes[:PAGE_MESSAGES]], PAGE_BYTES)
    return sorted(sequence for sequence, _ in sizes[:fitting]), len(sizes) > fitting


class Seen(NamedTuple):
    """How far a page has come with what has changed: all of a session's version, or of those of its
    messages that changed then, the ones up to a sequence."""

    version: int
    sequence: int = _ALL


@dataclass(frozen=True, slots=True)
class TranscriptNews:
    """What a page lacks: the messages after it, and those on it that are others now.

    ``page`` has both, and before them the one that stands last on the page. ``seen`` is how far the
    page has come if there are more changes than these; else None.
    """

    page: TranscriptPage
    changed: frozenset[int]
    seen: Seen | None


def read_news(
    session: Session, *, first: int, last: int, since: Seen, role: str | None = None
) -> TranscriptNews:
    """For a page that shows ``first`` to ``last`` as they were at ``since``.

    The session must have been read before: what is written meanwhile comes again the next time.
    """
    new, has_later = _choose(session, after=last, role=role)
    shown = Message.objects.filter(session=session).matching(before=last + 1, role=role)
    newest = shown.order_by("-sequence").values_list("sequence", flat=True)[:1]
    changes = _changes(shown.filter(sequence__gte=first), _made(session, first, last), since)
    brought = changes[:PAGE_MESSAGES]
    changed = frozenset(change.sequence for change in brought)
    wanted = sorted({*newest, *changed, *new})
    page = TranscriptPage(_messages(session, wanted), _calls(session, wanted), True, has_later)
    return TranscriptNews(page, changed, brought[-1] if len(changes) > len(brought) else None)


def _made(session: Session, first: int, last: int) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(session=session, message_sequence__range=(first, last))


def _changes(shown: QuerySet[Message], calls: QuerySet[ToolCall], since: Seen) -> list[Seen]:
    """The messages that are another now, or of whose calls one is, one more than a page gets.

    Oldest change first: whatever a page did not get is newer than what it got.
    """
    calls = calls.filter(
        session_version__gte=since.version, message_sequence__in=shown.values("sequence")
    )
    late = calls.values(at=F("message_sequence")).annotate(version=Max("session_version"))
    # Others were not changed, but are as new as the page may have got them meanwhile.
    taken_back = shown.filter(Q(removed_at__isnull=False) | Q(superseded_at__isnull=False))
    changed = taken_back.values(at=F("sequence"), version=F("session_version"))
    beyond = Q(version__gt=since.version) | Q(version=since.version, at__gt=since.sequence)
    found = changed.filter(beyond).union(late.filter(beyond)).order_by("version", "at")
    return [Seen(each["version"], each["at"]) for each in found[: PAGE_MESSAGES + 1]]


def _messages(session: Session, shown: Sequence[int]) -> list[Message]:
    found = Message.objects.filter(session=session, sequence__in=shown)
    return list(found.defer("text").order_by("sequence"))


def _calls(session: Session, shown: Sequence[int]) -> Placed:
    """Two queries, one for each index: an OR of the two columns would use neither. What went in and
    came out is read for those alone that are shown: one message can make a thousand calls."""
    if not (shown and session.tool_call_count):
        return Placed()
    mine = _without_values(ToolCall.objects.filter(session=session))
    found = {
        call.id: call
        for calls in (
            mine.filter(message_sequence__in=shown),
            mine.filter(result_sequence__in=shown),
        )
        for call in calls
    }
    placed = _place(sorted(found.values(), key=lambda call: call.id), frozenset(shown))
    _read_values(
        [call for at in (placed.made, placed.answered) for calls in at.values() for call in calls]
    )
    return placed


def _place(calls: Iterable[ToolCall], shown: frozenset[int]) -> Placed:
    placed = Placed()
    for call in calls:
        for at, place in (
            (call.message_sequence, placed.made),
            (call.result_sequence, placed.answered),
        ):
            if at in shown:
                if len(place[at]) < MESSAGE_CALLS:
                    place[at].append(call)
                    break
                placed.left_out[at] += 1
    return placed


def _read_values(calls: Sequence[ToolCall]) -> None:
    """As far as a page can bear them: the others are fetched by themselves."""
    small = [call for call in calls if call.size <= SHOWN_CALL_BYTES]
    fitting = how_many_fit([call.size for call in small], CALLS_BYTES)
    chosen = [call.id for call in small[:fitting]]
    rows = ToolCall.objects.filter(pk__in=chosen).values_list("pk", "arguments", "result")
    values = {pk: pair for pk, *pair in rows}
    for call in calls:
        call.was_read = call.id in values  # type: ignore[attr-defined]
        call.shown_arguments, call.shown_result = values.get(call.id, (None, None))  # type: ignore[attr-defined]


def _without_values(calls: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
    return calls.defer("arguments", "result")


def with_small_values(calls: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
    """Calls with their arguments and results as far as a page shows them at once."""
    small = Q(size__lte=SHOWN_CALL_BYTES)
    values = {
        f"shown_{name}": Case(When(small, then=F(name)), output_field=JSONTextField(null=True))
        for name in ("arguments", "result")
    }
    return _without_values(calls).annotate(**values)
