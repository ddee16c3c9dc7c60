"""The list of runs across sessions, the page of one, and how an operator cancels it."""

from datetime import date, datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin, SimpleListFilter, display
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from sessions_app.actors import Actor
from sessions_app.admin import base, filters
from sessions_app.admin.base import Shown
from sessions_app.admin.confirm import OperatedAdmin
from sessions_app.admin.operations import Fate, Operation
from sessions_app.admin.session_operations import status_of
from sessions_app.console import values
from sessions_app.states import ContentPage, SessionStatus

from ..models import Run
from ..services import RunManager
from ..services.reading import STUCK_AFTER
from ..states import RUN_TRANSITIONS, RunStatus, effective_status


def run_status(run: Run, *, now: datetime) -> RunStatus:
    return effective_status(run.status, deadline=run.deadline, now=now)


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

    list_display = (
        "run_id",
        "session_page",
        "status_now",
        "agent",
        "model_cell",
        "attempt_number",
        "tokens",
        "created",
        "ended",
    )
    list_filter = (
        RunStatusFilter,
        StuckFilter,
        filters.CreatedFilter,
        DayFilter,
        filters.SessionFilter,
        filters.AgentFilter,
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "session_page",
                    "status_now",
                    "agent_line",
                    "model_line",
                    "attempt_number",
                    "retry_page",
                    "parent_page",
                )
            },
        ),
        (
            _("Times"),
            {
                "fields": (
                    "created",
                    "started",
                    "ended",
                    "last_sign",
                    "deadline_time",
                    "lease",
                    "wait_line",
                    "cancel_line",
                )
            },
        ),
        (
            _("Usage"),
            {
                "fields": (
                    "input_tokens_number",
                    "output_tokens_number",
                    "cached_number",
                    "reasoning_number",
                    "cost_number",
                )
            },
        ),
        (_("Input"), {"fields": ("input_text",)}),
        (_("Output"), {"fields": ("output_text", "error_text")}),
        (_("Metadata"), {"fields": ("metadata_text",)}),
    )

    session_page = base.session_link()
    agent = base.cell_field("agent_id", _("agent"))
    agent_line = base.text_field("agent_id", _("agent"))
    model_cell = base.cell_field("model", _("model"))
    model_line = base.text_field("model", _("model"))
    attempt_number = base.number_field("attempt", _("attempt"))
    retry_page = base.link_field("retry_of_id", _("retry of"), "runs_app_run_change")
    parent_page = base.link_field("parent_run_id", _("parent run"), "runs_app_run_change")
    created = base.time_field("created_at", _("created at"))
    started = base.time_field("started_at", _("started at"))
    last_sign = base.time_field("seen_at", _("last sign of life"))
    deadline_time = base.time_field("deadline", _("lease expires at"))
    lease = base.number_field("lease_seconds", _("lease (s)"))
    wait_line = base.text_field("wait_reason", _("wait reason"))
    cancel_line = base.text_field("cancel_reason", _("cancel reason"))
    input_tokens_number = base.number_field("input_tokens", _("input tokens"))
    output_tokens_number = base.number_field("output_tokens", _("output tokens"))
    cached_number = base.number_field("cached_input_tokens", _("cached input tokens"))
    reasoning_number = base.number_field("reasoning_tokens", _("reasoning tokens"))
    cost_number = base.number_field("cost_nanousd", _("cost (10⁻⁹ USD)"))
    input_text = base.document_field("input", _("input"))
    output_text = base.document_field("output", _("output"))
    error_text = base.document_field("error", _("error"))
    metadata_text = base.document_field("metadata", _("metadata"))

    @display(description=_("status"))
    def status_now(self, obj: Run) -> Shown:
        status = run_status(obj, now=timezone.now())
        return values.badge(status, status.label)

    @display(description=_("tokens"))
    def tokens(self, obj: Run) -> Shown:
        return values.number(obj.input_tokens + obj.output_tokens)

    @display(description=_("ended at"))
    def ended(self, obj: Run) -> Shown:
        """A run that nobody has settled yet ended at its deadline."""
        lapsed = obj.ended_at is None and run_status(obj, now=timezone.now()) == "INTERRUPTED"
        return values.moment(obj.deadline if lapsed else obj.ended_at)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        runs = RunManager(Actor.operator(request.user)).list_all()  # type: ignore[arg-type]
        return runs.select_related("session")

    def caption(self, obj: Run) -> Shown:
        return values.cell(obj.agent_id) if obj.agent_id else ""

    def page_context(self, request: HttpRequest, obj: Run) -> dict[str, Any]:
        may = request.user.has_perm
        links = [
            (label, None, f"{reverse(f'admin:sessions_app_{model}_changelist')}?run={obj.pk}")
            for model, label in _RECORDS
            if may(f"sessions_app.view_{model}")
        ]
        return super().page_context(request, obj) | {"links": links}


_RECORDS = (
    ("message", _("Messages")),
    ("toolcall", _("Tool calls")),
    ("workingmemoryrevision", _("Working memory")),
)
