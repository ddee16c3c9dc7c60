"""The list of runs across sessions, and how an operator cancels one. The page of one run is
`runs_app.pages.run`."""

from datetime import date, datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin, SimpleListFilter, display
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from sessions_app.actors import Actor
from sessions_app.admin import base, filters
from sessions_app.admin.base import Shown
from sessions_app.admin.confirm import OperatedAdmin
from sessions_app.admin.operations import Fate, Operation
from sessions_app.admin.session_operations import status_of
from sessions_app.admin.tabs import Tabs, tabs
from sessions_app.console import values
from sessions_app.console.titles import title_for
from sessions_app.states import ContentPage, SessionStatus

from ..console.durations import is_live, run_status, took
from ..console.errors import fault_of
from ..models import Run
from ..services import RunManager
from ..services.reading import STUCK_AFTER
from ..states import RUN_TRANSITIONS, RunStatus


class Cancel(Operation):
    """Ends a run at once, whether or not its worker still lives, through the run's manager."""

    name, permission = "cancel", "runs_app.change_run"
    becomes = _("Will be cancelled")
    label, action = _("Cancel run"), _("Cancel the selected runs")
    note = _(
        "Open tool calls and unfinished child runs of a cancelled run are cancelled with it; "
        "messages stay. Its worker learns of it at its next write."
    )
    will = ngettext_lazy(
        "%(count)d run will be cancelled.", "%(count)d runs will be cancelled.", "count"
    )
    did = ngettext_lazy("%(count)d run was cancelled.", "%(count)d runs were cancelled.", "count")

    def fate(self, obj: Run, *, now: datetime) -> Fate:
        if RunStatus.CANCELLED not in RUN_TRANSITIONS[run_status(obj, now=now)]:
            return Fate(False, _("ended already"))
        session = status_of(obj.session, now=now)
        if session == SessionStatus.ACTIVE:
            return Fate(True)
        closed = session == SessionStatus.CLOSED
        return Fate(False, _("its session is closed") if closed else _("its session has expired"))

    def perform(self, actor: Actor, obj: Run, *, reason: str) -> bool:
        RunManager(actor).cancel(run_id=obj.pk, reason=reason)
        return True


_TABS: Tabs = (
    (_("All"), {}),
    *(
        (status.label, {"status": status.value})
        for status in (
            RunStatus.RUNNING,
            RunStatus.FAILED,
            RunStatus.INTERRUPTED,
            RunStatus.WAITING,
        )
    ),
    (_("Stuck"), {"stuck": "yes"}),
)


class RunStatusFilter(SimpleListFilter):
    """The *effective* status."""

    title, parameter_name = _("status"), "status"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, Any]]:
        return list(RunStatus.choices)

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet:
        value = self.value()
        return queryset.with_status([value], now=timezone.now()) if value else queryset


class StuckFilter(SimpleListFilter):
    title, parameter_name = _("sign of life"), "stuck"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, Any]]:
        return [("yes", _("Stuck"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet:
        now = timezone.now()
        return queryset.stuck(now=now, since=now - STUCK_AFTER) if self.value() else queryset


class DayFilter(filters.TextFilter):
    """A day, in UTC, on which runs were created: what the home page's charts count."""

    title, parameter_name = _("day (UTC)"), "day"

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet:
        if not (value := (self.value() or "").strip()):
            return queryset
        try:
            return queryset.created_on(date.fromisoformat(value))
        except (ValueError, OverflowError):
            return queryset.none()


@admin.register(Run)
class RunAdmin(OperatedAdmin):
    content_page = ContentPage.RUNS
    operations = (Cancel(),)
    heavy = (
        "input",
        "output",
        "error",
        "metadata",
        "session__metadata",
        "session__search_text",
    )
    documents = {
        "input": lambda run: run.input,
        "output": lambda run: run.output,
        "error": lambda run: run.error,
        "metadata": lambda run: run.metadata,
    }
    ids = ("run_id", "session_id")
    search_help_text = _("Run id or session id from the beginning")
    ordering = ("-run_id",)
    change_list_template = "console/runs.html"

    list_display = (
        "name",
        "status_now",
        "model_cell",
        "session_page",
        "started",
        "duration",
        "tokens",
        "error_line",
    )
    list_filter = (
        RunStatusFilter,
        StuckFilter,
        filters.CreatedFilter,
        DayFilter,
        filters.SessionFilter,
        filters.AgentFilter,
    )

    model_cell = base.cell_field("model", _("model"))
    started = base.ago_field("started_at", _("started"))

    @display(description=_("run"))
    def name(self, obj: Run) -> Shown:
        return format_html(
            '{}<span class="id">{}</span>', values.cell(obj.agent_id or obj.pk), obj.pk
        )

    @display(description=_("status"))
    def status_now(self, obj: Run) -> Shown:
        status = run_status(obj, now=timezone.now())
        badge = values.badge(status, status.label)
        if obj.attempt <= 1:
            return badge
        attempt = _("attempt %(number)s") % {"number": values.number(obj.attempt)}
        return format_html('{}<div class="second">{}</div>', badge, attempt)

    @display(description=_("session"))
    def session_page(self, obj: Run) -> Shown:
        page = base.address("sessions_app_session_change", obj.session_id)
        title = title_for(obj.session, obj.viewer)  # type: ignore[attr-defined]
        shown = values.cell(title or obj.session_id)
        return format_html('<a class="{}" href="{}">{}</a>', "" if title else "id", page, shown)

    @display(description=_("duration"))
    def duration(self, obj: Run) -> Shown:
        now = timezone.now()
        kind = "number live" if is_live(obj, now=now) else "number"
        return format_html('<span class="{}">{}</span>', kind, took(obj, now=now))

    @display(description=_("tokens"))
    def tokens(self, obj: Run) -> Shown:
        return values.number(obj.input_tokens + obj.output_tokens)

    @display(description=_("error"))
    def error_line(self, obj: Run) -> Shown:
        """In a line; shown only to those who may read what sessions contain."""
        fault = fault_of(obj.error_head)
        if fault is None:
            return values.NOTHING
        parts = [("fault-type", fault.type), ("fault-message", fault.message)]
        shown = [(kind, values.cell(text)) for kind, text in parts if text]
        return format_html_join("", '<span class="{}">{}</span>', shown)

    def get_list_display(self, request: HttpRequest) -> Any:
        return self.list_display if self.may_read(request) else self.list_display[:-1]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        runs = RunManager(Actor.operator(request.user)).list_all()  # type: ignore[arg-type]
        return runs.select_related("session").with_error_head()

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        shown = {"tabs": tabs(request, _TABS)}
        return super().changelist_view(request, shown | (extra_context or {}))

    def caption(self, obj: Run, viewer: object) -> Shown:
        return values.cell(obj.agent_id) if obj.agent_id else ""
