"""The page and list of sessions, with what a session's runs say of it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin, SimpleListFilter, display
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from sessions_app.admin import base, session_operations
from sessions_app.admin.base import Shown
from sessions_app.admin.session_operations import Resume, SessionOperation, say
from sessions_app.admin.sessions import SessionAdmin
from sessions_app.console import values
from sessions_app.models import Session
from sessions_app.states import SessionStatus

from ..models import Run
from ..states import UNFINISHED, RunStatus, effective_status


class EndsRuns(SessionOperation):
    """Ends the unfinished runs with their session, and says how many there are."""

    to_runs = ngettext_lazy(
        "%(count)d unfinished run will be cancelled.",
        "%(count)d unfinished runs will be cancelled.",
        "count",
    )

    def consequences(self, objects: Sequence[Session], *, now: datetime) -> list[str]:
        others = super().consequences(objects, now=now)
        return [*say((self.to_runs, unfinished_runs(objects, now=now))), *others]


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


def unfinished_runs(sessions: Sequence[Session], *, now: datetime) -> int:
    runs = Run.objects.filter(session__in=[session.pk for session in sessions])
    return runs.effective().with_status(UNFINISHED, now=now).count()


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


@admin.register(Session)
class SessionWithRunsAdmin(SessionAdmin):
    operations = (Close(), Expire(), Resume(), Delete())
    list_display = (*SessionAdmin.list_display[:2], "newest_run", *SessionAdmin.list_display[2:])
    list_filter = (
        SessionAdmin.list_filter[0],
        NewestRunFilter,
        *SessionAdmin.list_filter[1:],
    )
    fieldsets = (
        *SessionAdmin.fieldsets[:1],
        (_("Runs"), {"fields": ("newest_line", "active_page")}),
        *SessionAdmin.fieldsets[1:],
    )

    active_page = base.link_field("active_run_id", _("active run"), "runs_app_run_change")

    @display(description=_("newest run"))
    def newest_run(self, obj: Session) -> Shown:
        status = newest_run_status(obj, now=timezone.now())
        return values.badge(status, status.label) if status else values.NOTHING

    @display(description=_("newest run"))
    def newest_line(self, obj: Session) -> Shown:
        page = base.link("runs_app_run_change", obj.newest_run_id)
        return format_html("{} {}", self.newest_run(obj), page) if obj.newest_run_id else page
