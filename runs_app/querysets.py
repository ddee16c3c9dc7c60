"""Reads of runs, and what a run is at a given moment."""

from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import (
    Case,
    DateTimeField,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce, Least, Left

from sessions_app.actors import Actor
from sessions_app.ids import id_at
from sessions_app.models import Message
from sessions_app.querysets import owned
from sessions_app.states import INTERRUPTED_RUN, SessionStatus

from .states import UNFINISHED, RunStatus

if TYPE_CHECKING:
    from .models import Run  # noqa: F401  named in the base below

_IS_ACTIVE = Q(session__active_run_id=F("run_id"))
_ACTIVE_DEADLINE = F("session__active_run_deadline")


def _lease_of(above: str) -> Case:
    """The lease of a run above this one; null if there is none, or it has ended."""
    return Case(
        When(session__active_run_id=F(f"{above}_id"), then=_ACTIVE_DEADLINE),
        When(**{f"{above}__status__in": sorted(UNFINISHED)}, then=F(f"{above}__lease_expires_at")),
    )


# No run is more than two levels below a top-level one: `runs_app.services.creation`.
_ABOVE = ("parent_run", "parent_run__parent_run")
# Each is null where it does not apply.
_LEASE_AS_ACTIVE = Case(When(_IS_ACTIVE, then=_ACTIVE_DEADLINE))
# As much of an error as a line in a list can need.
_ERROR_CHARACTERS = 2_000
_EXPIRY = Case(When(session__status=SessionStatus.ACTIVE, then=F("session__expires_at")))


def _end_of_messages(order: str) -> Subquery:
    """The first sequence of the run's messages in this order.

    Not an aggregate: that would walk through all of them, and this is one step in the index.
    """
    mine = Message.objects.filter(run=OuterRef("pk")).order_by(order)
    return Subquery(mine.values("sequence")[:1])


def _times() -> dict[str, Any]:
    """What `RunQuerySet.timed` adds."""
    seen = When(_IS_ACTIVE, then=F("session__active_run_seen_at"))
    lease = Coalesce(_LEASE_AS_ACTIVE, F("lease_expires_at"))
    others = (_EXPIRY, *map(_lease_of, _ABOVE))
    return {
        "lease": lease,
        "deadline": Least(lease, *(Coalesce(other, lease) for other in others)),
        "seen_at": Case(seen, default=F("heartbeat_at"), output_field=DateTimeField()),
    }


def _lapsed(now: Any) -> Q:
    return Q(status__in=UNFINISHED, deadline__lte=now)


def silent(since: datetime) -> Q:
    """No sign of life since then; needs `RunQuerySet.timed`."""
    return Q(seen_at__lte=since) | Q(seen_at__isnull=True, created_at__lte=since)


def current_status(now: Any) -> Case:
    """The *effective* status; needs `RunQuerySet.effective`."""
    return Case(When(_lapsed(now), then=Value(INTERRUPTED_RUN)), default=F("status"))


class RunQuerySet(QuerySet["Run"]):
    def writable_by(self, actor: Actor) -> "RunQuerySet":
        return self._of_living_sessions().filter(owned(actor.write_scope, path="session__"))

    def readable_by(self, actor: Actor) -> "RunQuerySet":
        return self._of_living_sessions().filter(owned(actor.read_scope, path="session__"))

    def _of_living_sessions(self) -> "RunQuerySet":
        return self.exclude(session__status=SessionStatus.DELETED)

    def effective(self) -> "RunQuerySet":
        """Add what the row alone does not say: what `timed` adds, and its messages."""
        return self.annotate(
            **_times(),
            first_sequence=_end_of_messages("sequence"),
            last_sequence=_end_of_messages("-sequence"),
        )

    def timed(self) -> "RunQuerySet":
        """Add its lease and last sign of life, which the session row keeps while the run is
        active, and its ``deadline``.

        No run outlives the session's own expiry, and no child run what is above it.
        """
        return self.annotate(**_times())

    def with_status(self, statuses: Collection[str], *, now: datetime) -> "RunQuerySet":
        """Runs whose *effective* status is one of these; needs `effective`."""
        lapsed = _lapsed(now)
        if RunStatus.INTERRUPTED not in statuses:
            return self.filter(Q(status__in=statuses) & ~lapsed)
        # The stored statuses beside the OR: an index can be taken for one list, not for two sides.
        stored = {*statuses, *UNFINISHED}
        return self.filter((Q(status__in=statuses) & ~lapsed) | lapsed, status__in=sorted(stored))

    def created_since(self, moment: datetime) -> "RunQuerySet":
        """Runs since then, by their key, whose index is there; and by the time that is shown."""
        return self.filter(run_id__gte=id_at("run", moment), created_at__gte=moment)

    def created_on(self, day: date) -> "RunQuerySet":
        """Runs of a day in UTC, by their key: a range of ids is a range of time."""
        begins = datetime(day.year, day.month, day.day, tzinfo=UTC)
        ends = begins + timedelta(days=1)
        return self.filter(run_id__gte=id_at("run", begins), run_id__lt=id_at("run", ends))

    def light(self) -> "RunQuerySet":
        """Without what may be megabytes long."""
        return self.defer("input", "output", "error", "metadata")

    def lapsed(self, *, now: datetime) -> "RunQuerySet":
        """Runs past their deadline that nobody has settled yet; needs `effective`."""
        return self.filter(_lapsed(now))

    def started_between(self, after: datetime | None, before: datetime | None) -> "RunQuerySet":
        """Runs that started strictly between these moments."""
        found = self if after is None else self.filter(started_at__gt=after)
        return found if before is None else found.filter(started_at__lt=before)

    def stuck(self, *, now: datetime, since: datetime) -> "RunQuerySet":
        """Unfinished, and no sign of life since then; needs `effective`."""
        return self.with_status(UNFINISHED, now=now).filter(silent(since))

    def with_error_head(self) -> "RunQuerySet":
        """Add the beginning of each error as text: errors may be megabytes (report BIG-01)."""
        return self.annotate(error_head=Left(Cast("error", TextField()), _ERROR_CHARACTERS))
