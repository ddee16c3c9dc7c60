"""What the console's home page counts. Everything is bounded: by an index's range, or by a limit.

Days are UTC's, and runs count on the day on which they were created: a range of their keys.
"""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Any

from django.db.models import Count, DurationField, ExpressionWrapper, F, Q, QuerySet

from sessions_app.models import Session
from sessions_app.services.counting import Bounded, bounded, count_all, of_each
from sessions_app.states import SessionStatus

from ..models import Run
from ..querysets import silent
from ..states import FINAL, UNFINISHED, RunStatus
from .reading import STUCK_AFTER

ATTENTION_DAYS = 7
CHART_DAYS = 14
EXPIRES_SOON = timedelta(hours=1)
MOST = 1_000
MOST_BY_STATUS = 10_000
MOST_RUNS_A_DAY = 20_000
# Enough for a median and a 95th percentile that a person reads from a chart.
DURATIONS_A_DAY = 400
# What is looked through where no index counts: active sessions that never expire.
NEWEST_SESSIONS = 20_000
MOST_UNFINISHED = 5_000


@dataclass(slots=True)
class Day:
    day: date
    runs: dict[str, int] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
    is_more: bool = False
    median: timedelta | None = None
    p95: timedelta | None = None

    @property
    def total(self) -> int:
        return sum(self.runs.values())


def attention(*, now: datetime) -> dict[str, Bounded]:
    """What needs a person: runs of the past days by what became of them, and sessions."""
    since = now - timedelta(days=ATTENTION_DAYS)
    recent = Run.objects.created_since(since)
    active = Session.objects.with_status([SessionStatus.ACTIVE], now=now)
    counts = count_all(
        {
            "failed": (recent.filter(status=RunStatus.FAILED), MOST),
            "interrupted": (recent.filter(status=RunStatus.INTERRUPTED), MOST),
            "expiring": (Session.objects.expiring(now=now, until=now + EXPIRES_SOON), MOST),
            "unanswered": (active.with_open_tool_calls(True), MOST),
        }
    )
    unfinished = _unfinished(now=now, since=since)
    counts["interrupted"] += unfinished.pop("lapsed")
    return counts | unfinished


def _unfinished(*, now: datetime, since: datetime) -> dict[str, Bounded]:
    """Runs that have not ended, of which there are few; their deadlines tell what they are."""
    runs = Run.objects.filter(status__in=sorted(UNFINISHED)).timed()[: MOST_UNFINISHED + 1]
    alive = Q(deadline__gt=now)
    found = runs.aggregate(
        waiting=Count("pk", filter=alive & Q(status=RunStatus.WAITING)),
        stuck=Count("pk", filter=alive & silent(now - STUCK_AFTER)),
        lapsed=Count("pk", filter=~alive & Q(created_at__gte=since)),
    )
    return {name: bounded(number, MOST) for name, number in found.items()}


def by_status(*, now: datetime) -> dict[SessionStatus, Bounded]:
    """How many sessions *are* in each status."""
    active = Session.objects.filter(status=SessionStatus.ACTIVE)
    ended = SessionStatus.CLOSED, SessionStatus.EXPIRED
    deleted = Session.objects.filter(status=SessionStatus.DELETED)
    counts = count_all(
        {
            "alive": (active.filter(expires_at__gt=now), MOST_BY_STATUS),
            "lapsed": (active.filter(expires_at__lte=now), MOST_BY_STATUS),
            "purged": (deleted.filter(purged_at__isnull=False), MOST_BY_STATUS),
            "unpurged": (Session.objects.awaiting_purge(), MOST_BY_STATUS),
            **{each: (Session.objects.filter(status=each), MOST_BY_STATUS) for each in ended},
        }
    )
    found = {SessionStatus.ACTIVE: counts["alive"] + _never_expiring()}
    found |= {each: counts[each] for each in ended}
    found[SessionStatus.DELETED] = counts["purged"] + counts["unpurged"]
    found[SessionStatus.EXPIRED] += counts["lapsed"]
    return found


def _never_expiring() -> Bounded:
    newest = Session.objects.order_by("-pk")[:NEWEST_SESSIONS]
    endless = Q(status=SessionStatus.ACTIVE, expires_at__isnull=True)
    found = newest.aggregate(seen=Count("pk"), endless=Count("pk", filter=endless))
    return Bounded(found["endless"], is_more=found["seen"] == NEWEST_SESSIONS)


def days(*, now: datetime) -> list[Day]:
    """Each of the last days: its runs by outcome, its tokens, how long its runs took."""
    today = now.astimezone(UTC).date()
    found = [Day(today - timedelta(days=back)) for back in reversed(range(CHART_DAYS))]
    outcomes = of_each(_BY_OUTCOME, (_runs_of(day.day) for day in found))
    for index, status, runs, tokens_in, tokens_out in outcomes:
        day = found[index]
        day.runs[status] = runs
        day.input_tokens += int(tokens_in)
        day.output_tokens += int(tokens_out)
    took: dict[int, list[timedelta]] = {}
    for index, duration in of_each(_DURATIONS, (_took(day.day) for day in found)):
        took.setdefault(index, []).append(_duration(duration))
    for index, durations in took.items():
        found[index].median = _percentile(durations, 0.5)
        found[index].p95 = _percentile(durations, 0.95)
    for day in found:
        day.is_more = day.total >= MOST_RUNS_A_DAY
    return found


def troubled(*, now: datetime, most: int) -> QuerySet[Run]:
    """The newest runs that failed or were interrupted."""
    recent = Run.objects.created_since(now - timedelta(days=ATTENTION_DAYS))
    bad = recent.filter(status__in=[RunStatus.FAILED, RunStatus.INTERRUPTED])
    shown = bad.select_related("session").order_by("-run_id")
    named_by = ("session__title", "session__title_is_said")
    return shown.only("run_id", "status", "agent_id", "ended_at", *named_by)[:most]


_BY_OUTCOME = (
    "SELECT {index}, status, count(*), sum(input_tokens), sum(output_tokens)"
    " FROM ({rows}) AS runs GROUP BY status"
)
_DURATIONS = "SELECT {index}, took FROM ({rows}) AS ended"


def _runs_of(day: date) -> QuerySet[Any, Any]:
    runs = Run.objects.created_on(day).order_by("-run_id")
    return runs.values("status", "input_tokens", "output_tokens")[:MOST_RUNS_A_DAY]


def _took(day: date) -> QuerySet[Any, Any]:
    """How long the newest runs took that came to an end of their own."""
    ended = Run.objects.created_on(day).filter(status__in=sorted(FINAL), started_at__isnull=False)
    took = ExpressionWrapper(F("ended_at") - F("started_at"), output_field=DurationField())
    return ended.order_by("-run_id").annotate(took=took).values("took")[:DURATIONS_A_DAY]


def _duration(stored: Any) -> timedelta:
    """SQLite answers microseconds."""
    return stored if isinstance(stored, timedelta) else timedelta(microseconds=stored)


def _percentile(durations: list[timedelta], share: float) -> timedelta:
    """The nearest-rank percentile."""
    return sorted(durations)[ceil(len(durations) * share) - 1]
