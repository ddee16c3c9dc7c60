"""The list of sessions with what their runs say of them, and the operations, which end runs."""

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin, SimpleListFilter, display
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, ngettext_lazy

from sessions_app.admin import session_operations
from sessions_app.admin.base import Shown
from sessions_app.admin.seeking import Seeking, Side
from sessions_app.admin.session_operations import Resume, SessionOperation, say
from sessions_app.admin.sessions import SessionAdmin, trouble
from sessions_app.admin.tabs import Tabs, tabs
from sessions_app.console import values
from sessions_app.models import Session
from sessions_app.querysets import SessionQuerySet, attention_sides
from sessions_app.states import SessionStatus

from ..models import Run
from ..services.reading import STUCK_AFTER
from ..states import UNFINISHED, RunStatus, effective_status


class EndsRuns(SessionOperation):
    """Ends the unfinished runs with their session, and says how many there are."""

    to_runs = ngettext_lazy(
        "%(count)d unfinished run will be cancelled.",
        "%(count)d unfinished runs will be cancelled.",
        "count",
    )

    def effects(self, sessions: SessionQuerySet, *, now: datetime) -> list[str]:
        others = super().effects(sessions, now=now)
        return [*say((self.to_runs, unfinished_runs(sessions, now=now))), *others]


class Close(EndsRuns, session_operations.Close):
    pass


class Expire(EndsRuns, session_operations.Expire):
    to_runs = ngettext_lazy(
        "%(count)d unfinished run will be interrupted.",
        "%(count)d unfinished runs will be interrupted.",
        "count",
    )


class Delete(EndsRuns, session_operations.Delete):
    pass


def unfinished_runs(sessions: SessionQuerySet, *, now: datetime) -> int:
    runs = Run.objects.filter(session__in=sessions)
    return runs.timed().with_status(UNFINISHED, now=now).count()


def newest_run_status(session: Session, *, now: datetime) -> RunStatus | None:
    """What the newest run is at this moment, by the session's row alone."""
    if session.newest_run_status is None:
        return None
    deadlines = [session.newest_run_deadline]
    if session.newest_run_id == session.active_run_id:
        deadlines.append(session.active_run_deadline)
    if session.status == SessionStatus.ACTIVE:
        deadlines.append(session.expires_at)
    known = [deadline for deadline in deadlines if deadline is not None]
    return effective_status(session.newest_run_status, deadline=min(known, default=None), now=now)


class NewestRunFilter(SimpleListFilter):
    title, parameter_name = _("newest run"), "run_status"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, Any]]:
        return list(RunStatus.choices)

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet:
        value = self.value()
        return queryset.with_run_status([value], now=timezone.now()) if value else queryset


class AttentionFilter(Seeking, SimpleListFilter):
    title, parameter_name = _("attention"), "attention"
    has_tab = True

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, Any]]:
        return [("yes", _("Needs attention"))]

    @cached_property
    def moments(self) -> dict[str, datetime]:
        now = timezone.now()
        return {"now": now, "silent_since": now - STUCK_AFTER}

    def sides(self) -> Sequence[Side]:
        if self.value() != "yes":
            return ()
        *wide, silent = attention_sides(**self.moments)
        return *map(Side, wide), Side(silent, is_narrow=True)

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet:
        if self.value() != "yes":
            return queryset
        return queryset.needing_attention(**self.moments)


_TABS: Tabs = (
    (_("All"), {}),
    (SessionStatus.ACTIVE.label, {"status": SessionStatus.ACTIVE.value}),
    (_("Expiring soon"), {"expires": "1h"}),
    (_("Needs attention"), {"attention": "yes"}),
    *(
        (status.label, {"status": status.value})
        for status in (SessionStatus.CLOSED, SessionStatus.EXPIRED, SessionStatus.DELETED)
    ),
)


@admin.register(Session)
class SessionWithRunsAdmin(SessionAdmin):
    operations = (Close(), Expire(), Resume(), Delete())
    list_display = (*SessionAdmin.list_display[:5], "runs_cell", *SessionAdmin.list_display[5:])
    list_filter = (
        SessionAdmin.list_filter[0],
        AttentionFilter,
        *SessionAdmin.list_filter[1:],
        NewestRunFilter,
    )

    @display(description=_("runs"))
    def runs_cell(self, obj: Session) -> Shown:
        status = newest_run_status(obj, now=timezone.now())
        failed = obj.failed_run_count
        return format_html(
            '<div class="beside"><span class="number">{}</span><div>{}{}</div></div>',
            values.number(obj.run_count),
            values.badge(status, status.label) if status else "",
            trouble(failed, ngettext("%(count)s failed", "%(count)s failed", failed)),
        )

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        shown = {"tabs": tabs(request, _TABS)}
        return super().changelist_view(request, shown | (extra_context or {}))
