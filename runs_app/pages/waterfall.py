"""A run and what it did over time, as numbers that a template draws."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sessions_app.console.durations import duration
from sessions_app.models import Message, SessionEvent, ToolCall

from ..console.durations import end_of
from ..models import Run
from ..states import UNFINISHED

Span = tuple[datetime, datetime]
_STEPS: tuple[float, ...] = (
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1_800),
    *(3_600, 7_200, 14_400, 28_800, 86_400),
)
_MOST_TICKS = 6
_NEAR_THE_END = 94
# Shorter than this part of the whole is no rest, only the time between two steps.
_IDLE_PART = 0.02
_IDLE_AT_LEAST = timedelta(seconds=2)


class Bar(NamedTuple):
    """Where it begins and how long it is, in percent of the whole."""

    kind: str
    x: str
    width: str
    title: str = ""


class Tick(NamedTuple):
    x: str
    label: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Scale:
    """From the first thing that happened to the last, or to this moment."""

    begin: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return max(0.001, (self.end - self.begin).total_seconds())

    def at(self, moment: datetime) -> float:
        passed = (min(max(moment, self.begin), self.end) - self.begin).total_seconds()
        return 100 * passed / self.seconds

    def bar(self, kind: str, span: Span, title: str = "") -> Bar:
        begin, end = (self.at(moment) for moment in span)
        return Bar(kind, f"{begin:.3f}%", f"{max(end - begin, 0):.3f}%", title)

    def offset(self, moment: datetime) -> str:
        return f"+{duration(max(moment - self.begin, timedelta()))}"

    def ticks(self) -> list[Tick]:
        if self.seconds < _STEPS[0]:
            return [_tick(0, self.seconds), _tick(self.seconds, self.seconds)]
        steps = (step for step in _STEPS if self.seconds / step <= _MOST_TICKS)
        step = next(steps, self.seconds / _MOST_TICKS)
        return [_tick(n * step, self.seconds) for n in range(int(self.seconds / step) + 1)]


def _tick(seconds: float, whole: float) -> Tick:
    x = 100 * seconds / whole
    anchor = "start" if x == 0 else "end" if x > _NEAR_THE_END else "middle"
    return Tick(f"{x:.3f}%", duration(timedelta(seconds=seconds)), anchor)


def scale_of(run: Run, spans: Iterable[Span], *, now: datetime) -> Scale:
    begin = run.started_at or run.created_at
    ends = [end_of(run, now=now) or now, *(end for _begin, end in spans)]
    return Scale(min([begin, *(start for start, _end in spans)]), max([begin, *ends]))


def span_of_call(call: ToolCall, *, now: datetime) -> Span:
    begin = call.started_at or call.created_at
    return begin, max(begin, call.finished_at or now)


def span_of_run(run: Run, *, now: datetime) -> Span:
    begin = run.started_at or run.created_at
    return begin, max(begin, end_of(run, now=now) or now)


def phases(events: Sequence[SessionEvent], span: Span) -> Iterator[tuple[str, Span]]:
    """In which status the run was when, by its events."""
    begin, end = span
    moves = [event for event in events if event.to_status]
    for number, event in enumerate(moves):
        until = moves[number + 1].created_at if number + 1 < len(moves) else end
        start, until = max(event.created_at, begin), min(until, end)
        if until > start and (event.to_status in UNFINISHED or event.to_status == "INTERRUPTED"):
            yield str(event.to_status).lower(), (start, until)


def idle(span: Span, busy: Iterable[Span], messages: Iterable[Message]) -> list[Span]:
    """When nothing is known to have happened: no call was open, and no message came."""
    begin, end = span
    least = max(_IDLE_AT_LEAST, (end - begin) * _IDLE_PART)
    known = sorted([*busy, *((each.created_at, each.created_at) for each in messages), (end, end)])
    found, since = [], begin
    for start, until in known:
        if since < end and start - since >= least:
            found.append((since, min(start, end)))
        since = max(since, until)
    return found
