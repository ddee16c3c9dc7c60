"""Units of messages: what stands or falls together in a window (see `window`)."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate, takewhile

from ..models import Session
from ..rows import MessageRow
from .estimating import exact_counter
from .survey import Survey

# So many messages behind the survey are asked for in one statement, which names each three times:
# databases bound the values of one. A message may have ten thousand results.
_AT_ONCE = 1024

Unit = set[int]


def choose(
    body: "Body", newest: Iterable[int], *, last_n: int, budget: int, wanted: float
) -> tuple[list[Unit], bool]:
    """Units from the newest on until one does not fit, and whether that was for the ``budget``."""
    units: list[Unit] = []
    chosen: set[int] = set()
    for sequence in newest:
        if sequence in chosen:
            continue
        unit = body.unit_of(sequence, at_most=last_n - len(chosen))
        if unit is None:
            break
        size = body.size_of(unit)
        budget, wanted = budget - size, wanted - size
        if chosen and min(budget, wanted) < 0:
            return units, budget < 0
        units.append(unit)
        chosen |= unit
    return units, False


def members(units: Iterable[Unit]) -> set[int]:
    return {sequence for unit in units for sequence in unit}


def apart(newest: Iterable[int], units: Iterable[Unit]) -> tuple[list[int], set[int]]:
    """Of the newest messages those down to the first that is in no unit, and all others."""
    chosen = members(units)
    gapless = list(takewhile(chosen.__contains__, newest))
    return gapless, chosen.difference(gapless)


def within(
    units: Sequence[Unit], messages: Iterable[MessageRow], max_tokens: int | None
) -> Sequence[Unit]:
    """The units, newest first, that are no more than so many tokens by the tokenizer, if there is
    one; the newest in any case."""
    count = exact_counter()
    if max_tokens is None or count is None:
        return units
    row_of = {message.sequence: message for message in messages}
    sizes = (sum(count(row_of[number]) for number in unit if number in row_of) for unit in units)
    fitting = sum(1 for _ in takewhile(lambda total: total <= max_tokens, accumulate(sizes)))
    return units[: max(1, fitting)]


class Body:
    """What is known of the messages after the head: their sizes, and which belong together.

    A message may answer calls of several others, and make calls itself: belonging is transitive.
    ``links_of`` tells sizes and pairs of messages that the survey does not reach.
    """

    def __init__(
        self,
        session: Session,
        survey: Survey,
        links_of: Callable[[Session, Collection[int]], Survey],
    ) -> None:
        self.session = session
        self._links_of = links_of
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

    def answers(self, messages: Iterable[MessageRow]) -> dict[int, set[int]]:
        """Whose calls their results answer: a partner that is older is a call."""
        found = {}
        for message in messages:
            partners = self.neighbours.get(message.sequence, ())
            if calls := {number for number in partners if number < message.sequence}:
                found[message.sequence] = calls
        return found

    def size_of(self, unit: Iterable[int]) -> int:
        return sum(self.sizes[sequence] or 0 for sequence in unit)

    def _learn(self, sequences: Collection[int]) -> None:
        """Look behind the survey: of what is in its range, all is known."""
        self.sizes |= dict.fromkeys(sequences)
        head = self.session.head_sequence
        before = [number for number in sequences if head < number < self.newest[-1]]
        for start in range(0, len(before), _AT_ONCE):
            portion = before[start : start + _AT_ONCE]
            self._take(self._links_of(self.session, portion))

    def _take(self, survey: Survey) -> None:
        self.sizes |= {sequence: size for _, sequence, size, _ in survey["body"]}
        for _, call, result, _ in survey["pair"]:
            if result is not None:
                self.neighbours[call].add(result)
                self.neighbours[result].add(call)
