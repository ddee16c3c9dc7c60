"""How the server is, in a few numbers: what is due and not done, what goes on, what is in use."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Count, Q

from sessions_app.models import Session
from sessions_app.states import SessionStatus

from ..models import Run
from ..states import UNFINISHED
from .overview import MOST_UNFINISHED, attention


@dataclass(frozen=True, slots=True)
class Vitals:
    """``live_runs`` by status, up to `MOST_UNFINISHED`; ``attention`` up to what the home page
    counts; ``connections`` of this database and role by state, None where there is no server."""

    sweep_lag: timedelta
    live_runs: dict[str, int]
    attention: dict[str, int]
    connections: dict[str, int] | None
    most_connections: int


def take_vitals(*, now: datetime) -> Vitals:
    connections, most = _connections()
    return Vitals(
        sweep_lag=now - min([now, *_due()]),
        live_runs=_live_runs(now),
        attention={name: found.number for name, found in attention(now=now).items()},
        connections=connections,
        most_connections=most,
    )


def _due() -> Iterator[datetime]:
    """The earliest of each kind of deadline; each is the first entry of an index."""
    active = Session.objects.filter(status=SessionStatus.ACTIVE)
    rows = {
        "expires_at": active,
        "active_run_deadline": active,
        "other_run_deadline": active,
        "deleted_at": Session.objects.awaiting_purge(),
    }
    for name, found in rows.items():
        known = found.filter(**{f"{name}__isnull": False})
        yield from known.order_by(name).values_list(name, flat=True)[:1]


def _live_runs(now: datetime) -> dict[str, int]:
    runs = Run.objects.filter(status__in=sorted(UNFINISHED)).timed()[:MOST_UNFINISHED]
    alive = Q(deadline__gt=now)
    counted: dict[str, int] = runs.aggregate(
        **{each.value: Count("pk", filter=alive & Q(status=each)) for each in sorted(UNFINISHED)}
    )
    return counted


def _connections() -> tuple[dict[str, int] | None, int]:
    if connection.vendor != "postgresql":
        return None, 0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(state, 'unknown'), count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND usename = current_user GROUP BY 1"
        )
        by_state = dict(cursor.fetchall())
        cursor.execute("SELECT current_setting('max_connections')::int")
        (most,) = cursor.fetchone() or (0,)
    return by_state, most
