"""The window: the newest messages of a session that form a transcript a model will accept.

Newest first, in units: a call and all results that answer its message's calls are one unit, in
the window whole or not at all, at the place of the unit's newest message. So no result stands
without its call, and no answered call without its result; a result that came late brings its old
call with it. System and developer messages that open the session stay, beyond the budget.
Source: contract, "Resume packet"; report PAIR-01. Everything read is bounded by the window.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import accumulate, takewhile
from operator import attrgetter
from typing import Any

from django.conf import settings
from django.db.models import BigIntegerField, F, Q, QuerySet, Subquery, Sum
from django.db.models import Window as RunningWindow
from django.db.models.functions import Cast, Coalesce

from ..models import Message, Session, ToolCall
from ..prepared import GIVEN_LIMIT, Given, GivenList, Prepared
from ..querysets import MessageQuerySet
from ..rows import MessageRow
from .survey import Survey, by_part, part, union


@dataclass(frozen=True, slots=True)
class Window:
    """Messages oldest first.

    From ``first_sequence`` to ``last_sequence`` nothing is missing, so whoever wants more reads
    what is before ``first_sequence``. Of that, the window holds only what opens the session, and
    calls that late results brought along. Both are null when not even the newest unit fits.
    ``truncated`` tells that bytes, not ``last_n``, ended it.
    """

    messages: list[MessageRow]
    first_sequence: int | None
    last_sequence: int | None
    omitted_before: int
    estimated_tokens: int
    truncated: bool


# A rough and stable measure: English and code run at about four bytes of JSON a token.
BYTES_PER_TOKEN = 4
# A session that is opened by more than this is cut there: a packet has an end.
MAX_HEAD = 1000
# Sizes and links of so many more messages are read at once, so that a unit that begins before
# the newest ``last_n`` costs no further query unless it is longer than that.
_MARGIN = 64
# So many messages behind the survey are asked for in one statement, which names each three times:
# databases bound the values of one. A message may have ten thousand results.
_AT_ONCE = 1024

_SIZE = {"number": F("sequence"), "other": F("size")}
_PAIR = {"number": F("message_sequence"), "other": F("result_sequence")}
_SEQUENCE = attrgetter("sequence")


def read_window(
    session: Session, *, last_n: int, budget: int | None = None, survey: Survey | None = None
) -> Window:
    """Read the window of at most ``last_n`` messages, besides those that open the session.

    ``session`` was read first: what was appended since is not part of it. ``budget`` is how many
    bytes it may hold (``MAX_PAGE_BYTES``); the newest unit may exceed it. ``survey`` is what a
    larger one found of `window_parts`.
    """
    room = settings.MAX_PAGE_BYTES if budget is None else budget
    if not (session.head_sequence or session.tool_call_count):
        return _read_plain(session, last_n, room)
    if survey is None:
        shape = (head_length(session), session.tool_call_count > 0)
        survey = by_part(_survey.all(*shape, **window_values(session, last_n)))
    head, head_size, head_was_cut = _fit_head(survey, room)
    body = _Body(session, survey)
    newest = body.newest[:last_n]
    chosen, was_cut = _choose(body, newest, last_n=last_n, budget=room - head_size)
    gapless = list(takewhile(chosen.__contains__, newest))
    messages = _load(session, head, gapless, chosen.difference(gapless))
    return _window(session, messages, gapless, truncated=was_cut or head_was_cut)


def _read_plain(session: Session, last_n: int, budget: int) -> Window:
    """Where each message is a unit, the database can tell which fit: one statement."""
    values = window_values(session, last_n) | {"limit": last_n - 1, "budget": budget}
    rows = _fitting.all(**values) if session.message_count else []
    messages = sorted(rows, key=_SEQUENCE)
    expected = min(last_n, session.message_count)
    found = [message.sequence for message in messages]
    return _window(session, messages, found, truncated=len(found) < expected)


def _window(
    session: Session, messages: list[MessageRow], gapless: Collection[int], *, truncated: bool
) -> Window:
    omitted = session.message_count - len(messages)
    covered = gapless if omitted else [message.sequence for message in messages]
    return Window(
        messages=messages,
        first_sequence=min(covered, default=None),
        last_sequence=max(covered, default=None),
        omitted_before=omitted,
        estimated_tokens=sum(message.size for message in messages) // BYTES_PER_TOKEN,
        truncated=truncated,
    )


def head_length(session: Session) -> int:
    """How many of the messages that open the session a survey has, at most; 0: there are none."""
    return MAX_HEAD + 1 if session.head_sequence else 0


def window_values(session: Session, last_n: int) -> dict[str, Any]:
    """What `window_parts` are given."""
    return {
        "session_id": session.session_id,
        "head": session.head_sequence,
        "body": session.head_sequence + 1,
        "last": session.last_sequence,
        "limit": last_n + _MARGIN - 1,
    }


def window_parts(given: type[Given], head_length: int, has_calls: bool) -> list[QuerySet[Any, Any]]:
    """What a window is chosen by: sizes of messages, and which answers what. None, where each
    message is a unit of its own.

    The pairs are those whose result is in the range: then the call is, too, or it comes before.
    """
    if not (head_length or has_calls):
        return []
    live = Message.objects.filter(session=given("session_id")).live()
    newest = _newest(live, given)
    parts = [part("body", live.filter(sequence__range=newest), **_SIZE)]
    if head_length:
        opening = live.filter(sequence__range=(1, given("head")))
        end = opening.order_by("sequence").values("sequence")[head_length - 1 : head_length]
        first = (1, Coalesce(Subquery(end), given("head")))
        parts.append(part("head", live.filter(sequence__range=first), **_SIZE))
    if has_calls:
        calls = ToolCall.objects.filter(session=given("session_id"), result_sequence__range=newest)
        parts.append(part("pair", calls, **_PAIR))
    return parts


def _newest(live: MessageQuerySet, given: type[Given]) -> tuple[Any, Any]:
    """The range of the newest messages, the row behind ``limit`` others the first of them.

    It has two ends: PostgreSQL takes half a range whose end it does not know for a third of the
    table.
    """
    body = live.filter(sequence__range=(given("body"), given("last")))
    lowest = body.order_by("-sequence").values("sequence")[GIVEN_LIMIT : GIVEN_LIMIT + 1]
    return Coalesce(Subquery(lowest), given("body")), given("last")


@Prepared
def _fitting(given: type[Given]) -> QuerySet[Message, MessageRow]:
    """The newest messages whose sizes add up to no more than the budget, but one in any case."""
    live = Message.objects.filter(session=given("session_id")).live()
    total = RunningWindow(Sum("size"), order_by=F("sequence").desc())
    newest = live.filter(sequence__range=_newest(live, given)).annotate(total=total)
    budget = Cast(given("budget"), BigIntegerField())
    return newest.filter(Q(total__lte=budget) | Q(total=F("size"))).rows()


@Prepared
def _links(given: type[Given]) -> QuerySet[Any, Any]:
    """Sizes and pairs of some messages. What is asked of sequences by ``IN`` is asked by nothing
    else of that column: beside ``IS NOT NULL`` SQLite walks through the whole session instead."""
    among: Any = [GivenList("sequences")]
    live = Message.objects.filter(session=given("session_id")).live()
    calls = ToolCall.objects.filter(session=given("session_id"))
    return union(
        [
            part("body", live.filter(sequence__in=among), **_SIZE),
            part("pair", calls.filter(message_sequence__in=among), **_PAIR),
            part("pair", calls.filter(result_sequence__in=among), **_PAIR),
        ]
    )


@Prepared
def _survey(given: type[Given], *shape: Any) -> QuerySet[Any, Any]:
    return union(window_parts(given, *shape))


def _fit_head(survey: Survey, budget: int) -> tuple[list[int], int, bool]:
    """The sequences that open the session, their size, and whether some were left out."""
    sizes = dict(sorted((sequence, size) for _, sequence, size, _ in survey["head"]))
    totals = [total for total in accumulate(sizes.values()) if total <= budget][:MAX_HEAD]
    return list(sizes)[: len(totals)], max(totals, default=0), len(totals) < len(sizes)


def _load(
    session: Session, head: Collection[int], gapless: Collection[int], strays: Collection[int]
) -> list[MessageRow]:
    """These messages, oldest first: all up to the head's end, all of a range, and some between."""
    if not (head or gapless):
        return []
    rows = _rows.all(
        bool(head),
        bool(strays),
        session_id=session.session_id,
        head=max(head, default=0),
        first=min(gapless, default=0),
        last=max(gapless, default=0),
        strays=strays,
    )
    return sorted(rows, key=_SEQUENCE)


@Prepared
def _rows(given: type[Given], head: bool, strays: bool) -> QuerySet[Message, MessageRow]:
    live = Message.objects.filter(session=given("session_id")).live()
    parts = [live.filter(sequence__range=(given("first"), given("last")))]
    if head:
        parts.append(live.filter(sequence__range=(1, given("head"))))
    if strays:
        parts.append(live.filter(sequence__in=[GivenList("strays")]))
    return union([rows.rows() for rows in parts])


def _choose(
    body: "_Body", newest: Iterable[int], *, last_n: int, budget: int
) -> tuple[set[int], bool]:
    """Units from the newest on until one does not fit, and whether that was for its bytes."""
    chosen: set[int] = set()
    for sequence in newest:
        if sequence in chosen:
            continue
        unit = body.unit_of(sequence, at_most=last_n - len(chosen))
        if unit is None:
            break
        budget -= body.size_of(unit)
        if chosen and budget < 0:
            return chosen, True
        chosen |= unit
    return chosen, False


class _Body:
    """What is known of the messages after the head: their sizes, and which belong together.

    A message may answer calls of several others, and make calls itself: belonging is transitive.
    """

    def __init__(self, session: Session, survey: Survey) -> None:
        self.session = session
        self.sizes: dict[int, int | None] = {}  # None: not to be seen
        self.neighbours: dict[int, set[int]] = defaultdict(set)
        self._take(survey)
        self.newest = sorted(self.sizes, reverse=True)

    def unit_of(self, sequence: int, *, at_most: int) -> set[int] | None:
        """The messages that stand or fall with this one; None if they are more than that."""
        if sequence not in self.neighbours:
            return {sequence} if at_most else None
        unit: set[int] = set()
        reached = {sequence}
        while reached:
            self._learn(reached - self.sizes.keys())
            found = {number for number in reached if self.sizes[number] is not None}
            unit |= found
            if len(unit) > at_most:
                return None
            reached = {other for number in found for other in self.neighbours[number]} - unit
            reached -= {number for number in reached if self.sizes.get(number, 0) is None}
        return unit

    def size_of(self, unit: Iterable[int]) -> int:
        return sum(self.sizes[sequence] or 0 for sequence in unit)

    def _learn(self, sequences: Collection[int]) -> None:
        """Look behind the survey: of what is in its range, all is known."""
        self.sizes |= dict.fromkeys(sequences)
        head = self.session.head_sequence
        before = [number for number in sequences if head < number < self.newest[-1]]
        for start in range(0, len(before), _AT_ONCE):
            portion = before[start : start + _AT_ONCE]
            rows = _links.all(session_id=self.session.session_id, sequences=portion)
            self._take(by_part(rows))

    def _take(self, survey: Survey) -> None:
        self.sizes |= {sequence: size for _, sequence, size, _ in survey["body"]}
        for _, call, result, _ in survey["pair"]:
            if result is not None:
                self.neighbours[call].add(result)
                self.neighbours[result].add(call)
