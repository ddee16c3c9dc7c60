"""Where one arrives: what needs a person, then how the work goes."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sessions_app.console.durations import duration
from sessions_app.console.registry import register
from sessions_app.pages.base import ANY_STAFF, ConsolePage
from sessions_app.services.counting import Bounded
from sessions_app.states import SessionStatus

from ..services import overview
from ..states import UNFINISHED, RunStatus
from . import charts

TROUBLED = 6
_ENDED = (
    RunStatus.COMPLETED,
    RunStatus.FAILED,
    RunStatus.CANCELLED,
    RunStatus.INTERRUPTED,
)
_OPEN = "open"


class Figure(NamedTuple):
    """A number, and the list that it counts."""

    label: str
    note: str
    counted: Bounded
    url: str
    kind: str
    share: int = 0
    """How long its bar is, of 100: the highest of its kind has all."""


class DayRow(NamedTuple):
    """A day as the tables say it; every number leads to the runs that it counts."""

    day: Any
    url: str
    outcomes: list[tuple[int, str]]
    figures: overview.Day
    median: str
    p95: str


@register
class HomePage(ConsolePage):
    route, name = "", "index"
    permission = ANY_STAFF
    template_name = "console/home.html"

    def content(self) -> dict[str, Any]:
        now, may = timezone.now(), self.request.user.has_perm
        sees_sessions = may("sessions_app.view_session")
        shown: dict[str, Any] = {"title": _("Home")}
        if not (sees_sessions and may("runs_app.view_run")):
            return shown
        return (
            shown
            | {
                "has_figures": True,
                "attention": _attention(now=now),
                "troubled": list(overview.troubled(now=now, most=TROUBLED)),
                "statuses": _statuses(now=now),
            }
            | _charts(overview.days(now=now))
        )


def sessions(**query: str) -> str:
    return f"{reverse('admin:sessions_app_session_changelist')}?{urlencode(query)}"


def runs(**query: str) -> str:
    return f"{reverse('admin:runs_app_run_changelist')}?{urlencode(query)}"


def _attention(*, now: datetime) -> list[Figure]:
    counts = overview.attention(now=now)
    week, now_on = _("in the last 7 days"), _("at this moment")
    words = {
        "failed": (_("Failed runs"), week, runs(status="FAILED", created="7d")),
        "interrupted": (_("Interrupted runs"), week, runs(status="INTERRUPTED", created="7d")),
        "waiting": (_("Waiting runs"), _("for a person or an event"), runs(status="WAITING")),
        "stuck": (_("Stuck runs"), _("no sign of life for 10 minutes"), runs(stuck="yes")),
        "expiring": (_("Sessions about to expire"), _("within an hour"), sessions(expires="1h")),
        "unanswered": (
            _("Sessions with unanswered tool calls"),
            now_on,
            sessions(status="ACTIVE", open_calls="yes"),
        ),
    }
    return [
        Figure(label, note, counts[kind], url, kind) for kind, (label, note, url) in words.items()
    ]


def _statuses(*, now: datetime) -> list[Figure]:
    counts = overview.by_status(now=now)
    highest = max(1, *(counted.number for counted in counts.values()))
    return [
        Figure(
            label=str(each.label),
            note="",
            counted=counts[each],
            url=sessions(status=each.value),
            kind=each.value,
            share=counts[each].number * 100 // highest,
        )
        for each in SessionStatus
    ]


def _charts(days: Sequence[overview.Day]) -> dict[str, Any]:
    urls = [runs(day=day.day.isoformat()) for day in days]
    return {
        "outcomes": [(each.value.lower(), each.label) for each in _ENDED]
        + [(_OPEN, _("Not ended"))],
        "runs_chart": _runs_chart(days, urls),
        "tokens_chart": _tokens_chart(days, urls),
        "durations_chart": _durations_chart(days, urls),
        "days": [_row(day, url) for day, url in zip(days, urls, strict=True)][::-1],
        "sample": number_format(overview.DURATIONS_A_DAY),
        "most": number_format(overview.MOST_RUNS_A_DAY, force_grouping=True),
        "is_more": any(day.is_more for day in days),
    }


def _by_outcome(day: overview.Day) -> list[tuple[str, int]]:
    ended = [(each.value.lower(), day.runs.get(each, 0)) for each in _ENDED]
    return [*ended, (_OPEN, sum(day.runs.get(each, 0) for each in UNFINISHED))]


def _chart(
    days: Sequence[overview.Day], columns: Any, lines: dict[str, str], scale: list[str]
) -> charts.Chart:
    first, last = charts.short_day(days[0].day), charts.short_day(days[-1].day)
    return charts.Chart(columns, lines, scale, first, last)


def _runs_chart(days: Sequence[overview.Day], urls: Sequence[str]) -> charts.Chart:
    top = charts.nice(max(day.total for day in days))
    said = [
        ngettext("%(count)s run, %(failed)s failed", "%(count)s runs, %(failed)s failed", day.total)
        % {
            "count": number_format(day.total, force_grouping=True),
            "failed": number_format(day.runs.get(RunStatus.FAILED, 0), force_grouping=True),
        }
        for day in days
    ]
    parts = [charts.stack(_by_outcome(day), top) for day in days]
    columns = charts.columns([day.day for day in days], said, urls, parts)
    return _chart(days, columns, {}, charts.scale(top))


def _tokens_chart(days: Sequence[overview.Day], urls: Sequence[str]) -> charts.Chart:
    top = charts.nice(max(day.input_tokens + day.output_tokens for day in days))
    said = [
        _("%(input)s input tokens, %(output)s output tokens")
        % {
            "input": number_format(day.input_tokens, force_grouping=True),
            "output": number_format(day.output_tokens, force_grouping=True),
        }
        for day in days
    ]
    pieces = [[("input", day.input_tokens), ("output", day.output_tokens)] for day in days]
    parts = [charts.stack(each, top) for each in pieces]
    columns = charts.columns([day.day for day in days], said, urls, parts)
    return _chart(days, columns, {}, charts.scale(top))


def _durations_chart(days: Sequence[overview.Day], urls: Sequence[str]) -> charts.Chart:
    medians = [day.median.total_seconds() if day.median else None for day in days]
    highest = [day.p95.total_seconds() if day.p95 else None for day in days]
    top = charts.nice_time(max((each for each in highest if each), default=1))
    said = [
        _("median %(median)s, 95th percentile %(p95)s")
        % {"median": duration(day.median), "p95": duration(day.p95)}
        for day in days
    ]
    columns = charts.columns([day.day for day in days], said, urls, [[] for _day in days])
    lines = {"p95": charts.line(highest, top), "median": charts.line(medians, top)}
    times = charts.scale(top, lambda seconds: duration(timedelta(seconds=seconds)))
    return _chart(days, columns, lines, times)


def _row(day: overview.Day, url: str) -> DayRow:
    outcomes = [
        (number, url if kind == _OPEN else f"{url}&status={kind.upper()}")
        for kind, number in _by_outcome(day)
    ]
    return DayRow(
        charts.short_day(day.day),
        url,
        outcomes,
        day,
        duration(day.median),
        duration(day.p95),
    )
