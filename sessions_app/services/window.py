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

from django.conf import settings

from ..models import Message, Session, ToolCall
from ..querysets import MessageQuerySet


@dataclass(frozen=True, slots=True)
class Window:
    """Messages oldest first.

    From ``first_sequence`` to ``last_sequence`` nothing is missing, so whoever wants more reads
    what is before ``first_sequence``. Of that, the window holds only what opens the session, and
    calls that late results brought along. Both are null when not even the newest unit fits.
    ``truncated`` tells that bytes, not ``last_n``, ended it.
    """

    messages: list[Message]
    first_sequence: int | None
    last_sequence: int | None
    omitted_before: int
    estimated_tokens: int
    truncated: bool


# A rough and stable measure: English and code run at about four bytes of JSON a token.
BYTES_PER_TOKEN = 4
# A session that is opened by more than this is cut there: a packet has an end.
MAX_HEAD = 1000
# Sizes and calls of so many more messages are read at once, so that a unit that begins before
# the newest ``last_n`` costs no further query unless it is longer than that.
_MARGIN = 64


def read_window(session: Session, *, last_n: int, budget: int | None = None) -> Window:
    """Read the window of at most ``last_n`` messages, besides those that open the session.

    ``session`` was read first: what was appended since is not part of it. ``budget`` is how many
    bytes it may hold (``MAX_PAGE_BYTES``); the newest unit may exceed it.
    """
    live = Message.objects.filter(session=session).live()
    room = settings.MAX_PAGE_BYTES if budget is None else budget
    head, head_size, head_was_cut = _read_head(session, live, room)
    body = _Body(session, live)
    newest = body.read_newest(last_n + _MARGIN)[:last_n]
    chosen, was_cut = _choose(body, newest, last_n=last_n, budget=room - head_size)
    kept = live.filter(sequence__in=[*head, *chosen]).order_by("sequence")
    messages = list(kept.defer("text"))
    omitted = session.message_count - len(messages)
    gapless = list(takewhile(chosen.__contains__, newest))
    covered = gapless if omitted else [message.sequence for message in messages]
    return Window(
        messages=messages,
        first_sequence=min(covered, default=None),
        last_sequence=max(covered, default=None),
        omitted_before=omitted,
        estimated_tokens=sum(message.size for message in messages) // BYTES_PER_TOKEN,
        truncated=was_cut or head_was_cut,
    )


def _read_head(session: Session, live: MessageQuerySet, budget: int) -> tuple[list[int], int, bool]:
    """The sequences that open the session, their size, and whether some were left out."""
    if not session.head_sequence:
        return [], 0, False
    rows = live.filter(sequence__lte=session.head_sequence).order_by("sequence")
    sizes = dict(rows.values_list("sequence", "size")[: MAX_HEAD + 1])
    totals = [total for total in accumulate(sizes.values()) if total <= budget][:MAX_HEAD]
    return list(sizes)[: len(totals)], max(totals, default=0), len(totals) < len(sizes)


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
    What is asked of sequences by ``IN`` is asked by nothing else of that column: beside a range
    or ``IS NOT NULL`` SQLite walks through the whole session instead.
    """

    def __init__(self, session: Session, live: MessageQuerySet) -> None:
        self.live = live
        self.calls = ToolCall.objects.filter(session=session)
        self.has_calls = session.tool_call_count > 0
        self.before, self.last = session.head_sequence, session.last_sequence
        self.sizes: dict[int, int | None] = {}  # None: not to be seen
        self.neighbours: dict[int, set[int]] = defaultdict(set)

    def read_newest(self, count: int) -> list[int]:
        """The newest sequences, newest first; each is known from now on."""
        found = self.live.filter(sequence__gt=self.before, sequence__lte=self.last)
        newest = found.order_by("-sequence").values_list("sequence", "size")
        self.sizes = dict(newest[:count])
        self._read_pairs(self.sizes)
        return list(self.sizes)

    def unit_of(self, sequence: int, *, at_most: int) -> set[int] | None:
        """The messages that stand or fall with this one; None if they are more than that."""
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
        self.sizes |= dict.fromkeys(sequences)
        within = [number for number in sequences if self.before < number <= self.last]
        if within:
            found = self.live.filter(sequence__in=within).values_list("sequence", "size")
            self.sizes |= dict(found)
            self._read_pairs(within)

    def _read_pairs(self, sequences: Collection[int]) -> None:
        if not (sequences and self.has_calls):
            return
        pairs = self.calls.values_list("message_sequence", "result_sequence")
        made = pairs.filter(message_sequence__in=sequences)
        for call, result in made.union(pairs.filter(result_sequence__in=sequences), all=True):
            if call is not None and result is not None:
                self.neighbours[call].add(result)
                self.neighbours[result].add(call)
