"""Where a list looks for its rows: by an index that has them, and never too far.

Of each filter that is set, the *sides* say which indexes have its rows. An example, with the
newest first: ``?status=EXPIRED&user=u-7&agent=shop``.

- ``status`` has two sides, of which a row matches one: sessions that are stored as expired, in an
  index in the order of keys, and those whose deadline has passed, in an index of deadlines. The
  second is *narrow*: as its index has another order, all of its rows are sorted by their keys.
- ``user`` has one narrow side. ``agent`` has no index and is no `Seeking`.

Each side is bounded, and a filter comes as far as the nearest end of its sides. Say that 60,000
are stored as expired, 300 have lapsed and u-7 has 40 sessions: then ``status`` ends at the 50,000th
session that is stored so, and ``user`` ends nowhere. So ``user`` comes furthest: its 40 sessions
are what is looked through, and the page is complete. Had u-7 more than 5,000 sessions, sorting
them would take too long, and the filter would be no way at all. Where none is left, all sessions
are looked through in their order, up to the 50,000th.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Concat

from ..services.counting import of_each

MOST_LOOKED_THROUGH = 50_000
# So many are sorted in the time that a page has.
MOST_SORTED = 5_000


class Side(NamedTuple):
    """Rows that one index has: in the order of keys, or, if it ``is_narrow``, in another one."""

    condition: Q = Q()
    is_narrow: bool = False


class Seeking:
    """A filter that indexes serve."""

    below: str | None = None
    """A key that is greater than all that can match."""

    def sides(self) -> Sequence[Side]:
        """Conditions of which one must hold; none while nothing is asked for."""
        return ()

    def indexed(self, side: Side, rows: Any) -> QuerySet:
        """Those of these rows that the index of this side has."""
        return rows.filter(side.condition)


class Way(NamedTuple):
    """The sides by which rows are looked for, how many rows the longest has at most, and the place
    at which looking stops; None: nowhere."""

    sides: tuple[Side, ...]
    number: int
    end: str | None = None


def beyond(key: str | None, rows: Any, *, descending: bool) -> QuerySet:
    """Rows on one side of the place just before a key; so the key itself is in the upper half."""
    return rows.filter(**{"pk__lt" if descending else "pk__gte": key}) if key else rows


def just_after(key: str) -> str:
    """The place before the next greater key."""
    return f"{key}0"


def best_way(every: QuerySet, filters: Sequence[Seeking], *, descending: bool) -> Way:
    """Along the filter that comes furthest; of those that come to the end, with the fewest rows.

    ``every``: all rows from where looking starts.
    """
    asked = [(spec, sides) for spec in filters if (sides := spec.sides())]
    indexed = [(side, spec.indexed(side, every)) for spec, sides in asked for side in sides]
    anywhere, *counts = _counts([(Side(), every), *indexed], descending)
    counted = iter(counts)
    each = [[next(counted) for _ in sides] for _spec, sides in asked]
    ways = [_joined(ways, descending) for ways in each if not any(map(_is_too_long, ways))]
    complete = [way for way in (*ways, anywhere) if way.end is None]
    if complete:
        return min(complete, key=lambda way: way.number)
    return (min if descending else max)((*ways, anywhere), key=lambda way: way.end or "")


def _is_too_long(way: Way) -> bool:
    """Whether it would have to be sorted, and has too many rows for that."""
    return way.number > MOST_SORTED and any(side.is_narrow for side in way.sides)


def in_order(side: Side, rows: QuerySet, *, descending: bool) -> QuerySet:
    """Of a narrow side by a key that no index knows, so that its own index is taken."""
    key: Any = Concat("pk", Value("")) if side.is_narrow else F("pk")
    return rows.order_by(key.desc() if descending else key.asc())


def _counts(sides: Sequence[tuple[Side, QuerySet]], descending: bool) -> list[Way]:
    """Each side as a way of its own; all in one statement."""
    asked = [_first_too_many(side, rows, descending) for side, rows in sides]
    counted = of_each("SELECT {index}, count(*), min(pk) FROM ({rows}) AS looked", asked)
    found = {index: (number, key) for index, number, key in counted}
    return [
        _counted(side, *found.get(index, (0, "")), descending=descending)
        for index, (side, _rows) in enumerate(sides)
    ]


def _first_too_many(side: Side, rows: QuerySet, descending: bool) -> QuerySet:
    """Of an index in the order of keys its first row that is not looked at, and that is quick; of
    a narrow side all rows, and one more than may be."""
    if side.is_narrow:
        return rows.order_by().values("pk")[: MOST_SORTED + 1]
    ordered = in_order(side, rows, descending=descending).values("pk")
    return ordered[MOST_LOOKED_THROUGH : MOST_LOOKED_THROUGH + 1]


def _counted(side: Side, number: int, key: str, *, descending: bool) -> Way:
    if side.is_narrow:
        return Way((side,), number)
    end = just_after(key) if descending else key
    return Way((side,), MOST_LOOKED_THROUGH, end if number else None)


def _joined(ways: Sequence[Way], descending: bool) -> Way:
    """Rows are known only as far as each side is."""
    ends = [way.end for way in ways if way.end]
    return Way(
        tuple(side for way in ways for side in way.sides),
        max(way.number for way in ways),
        (max if descending else min)(ends, default=None),
    )
