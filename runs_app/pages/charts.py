"""Drawings of figures by day: numbers for SVG attributes, in a box of 100 units' height."""

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

from django.utils.formats import date_format, number_format

HEIGHT = 100
COLUMN = 20
_GAP = 4
_STEPS = (1, 2, 2.5, 5, 10)
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_TIMES = (
    *(1, 2, 4, 10, 20, 30),
    *(_MINUTE * count for count in (1, 2, 4, 10, 20, 30)),
    *(_HOUR * count for count in (1, 2, 4, 8, 12, 24)),
)


class Part(NamedTuple):
    """A piece of a column; ``kind`` is the class that has its colour."""

    kind: str
    y: float
    height: float


class Column(NamedTuple):
    """One day: where it stands, what it says, where it leads."""

    x: int
    label: str
    url: str
    parts: list[Part]


class Point(NamedTuple):
    x: int
    y: float


class Chart(NamedTuple):
    columns: list[Column]
    lines: dict[str, str]
    """SVG paths of what is drawn as lines."""
    scale: list[str]
    """From the top to the bottom."""
    first: str
    last: str

    @property
    def width(self) -> int:
        return COLUMN * len(self.columns)


def short_day(day: date) -> str:
    return date_format(day, "MONTH_DAY_FORMAT")


def nice(most: float) -> float:
    """The lowest round number that is not below ``most``."""
    size = 1.0
    while size * 10 < most:
        size *= 10
    return max(1, next(size * step for step in _STEPS if size * step >= most))


def nice_time(most: float) -> float:
    """In seconds: the lowest time that is not below ``most``, and is round as its half is."""
    return next((time for time in _TIMES if time >= most), _DAY * nice(most / _DAY))


def stack(values: Sequence[tuple[str, float]], top: float) -> list[Part]:
    """Pieces one upon the other; what is there at all is seen."""
    parts, floor = [], float(HEIGHT)
    for kind, value in values:
        if value:
            height = max(1.0, value / top * HEIGHT)
            floor -= height
            parts.append(Part(kind, round(max(0.0, floor), 2), round(height, 2)))
    return parts


def line(values: Sequence[float | None], top: float) -> str:
    """A path through the days that have a value; where one has none, it breaks."""
    path, joined = [], False
    for index, value in enumerate(values):
        if value is not None:
            x, y = index * COLUMN + COLUMN / 2, HEIGHT - value / top * HEIGHT
            # A point between two gaps has a length, or it would not be seen.
            path.append(f"{'L' if joined else 'M'}{x:g} {y:.2f}" + ("" if joined else "h0.01"))
        joined = value is not None
    return "".join(path)


def compact(value: float) -> str:
    """A number for a scale, in few characters."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{number_format(round(value / size, 1)).rstrip('0').rstrip('.,')}{letter}"
    return number_format(round(value, 1)).removesuffix(".0").removesuffix(",0")


def scale(top: float, say: Any = compact) -> list[str]:
    return [say(top), say(top / 2), "0"]


def columns(days: Sequence[date], said: Sequence[str], urls: Sequence[str], parts: Any) -> Any:
    """One column for each day."""
    each = zip(days, said, urls, parts, strict=True)
    return [
        Column(index * COLUMN + _GAP // 2, f"{short_day(day)}: {text}", url, pieces)
        for index, (day, text, url, pieces) in enumerate(each)
    ]
