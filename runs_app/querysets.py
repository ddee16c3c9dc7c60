"""Reads of runs, and what a run is at a given moment."""

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import Case, DateTimeField, F, Max, Min, OuterRef, Q, QuerySet, Subquery, When

from sessions_app.actors import Actor
from sessions_app.models import Message
from sessions_app.querysets import readable, scope
from sessions_app.states import SessionStatus

from .states import UNFINISHED, RunStatus

if TYPE_CHECKING:
    from .models import Run  # noqa: F401  named in the base below

_IS_ACTIVE = Q(session__active_run_id=F("run_id"))


def _of_messages(aggregate: type[Max] | type[Min]) -> Subquery:
    mine = Message.objects.filter(run=OuterRef("pk")).order_by().values("run")
    return Subquery(mine.annotate(found=aggregate("sequence")).values("found"))


class RunQuerySet(QuerySet["Run"]):
    def writable_by(self, actor: Actor) -> "RunQuerySet":
        return self._of_living_sessions().filter(scope(actor, path="session__"))

    def readable_by(self, actor: Actor) -> "RunQuerySet":
        return self._of_living_sessions().filter(readable(actor, path="session__"))

    def _of_living_sessions(self) -> "RunQuerySet":
        return self.exclude(session__status=SessionStatus.DELETED)

    def effective(self) -> "RunQuerySet":
        """Add what the row alone does not say: ``deadline``, ``seen_at``, and the run's messages.

        While a run is active, the session row keeps its deadline; and no run outlives the
        session's own expiry.
        """
        lease = Case(
            When(_IS_ACTIVE, then=F("session__active_run_deadline")),
            default=F("lease_expires_at"),
            output_field=DateTimeField(),
        )
        lapses = Q(session__status=SessionStatus.ACTIVE, session__expires_at__lt=lease)
        return self.annotate(
            deadline=Case(When(lapses, then=F("session__expires_at")), default=lease),
            seen_at=Case(
                When(_IS_ACTIVE, then=F("session__active_run_seen_at")),
                default=F("heartbeat_at"),
                output_field=DateTimeField(),
            ),
            first_sequence=_of_messages(Min),
            last_sequence=_of_messages(Max),
        )

    def with_status(self, statuses: Collection[str], *, now: datetime) -> "RunQuerySet":
        """Runs whose *effective* status is one of these; needs `effective`."""
        lapsed = Q(status__in=UNFINISHED, deadline__lte=now)
        wanted = Q(status__in=statuses) & ~lapsed
        if RunStatus.INTERRUPTED in statuses:
            wanted |= lapsed
        return self.filter(wanted)

    def stuck(self, *, now: datetime, since: datetime) -> "RunQuerySet":
        """Unfinished, and no sign of life since then; needs `effective`."""
        silent = Q(seen_at__lte=since) | Q(seen_at__isnull=True, created_at__lte=since)
        return self.with_status(UNFINISHED, now=now).filter(silent)
