"""The tool history, and how an operator settles a call that nobody answers any more."""

from datetime import datetime

from django.contrib import admin
from django.contrib.admin import display
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from ..actors import Actor
from ..console import values
from ..models import ToolCall
from ..services import SessionManager
from ..states import OPEN_TOOL_CALLS, ContentPage, SessionStatus, ToolCallStatus
from . import base, filters
from .base import Shown
from .confirm import OperatedAdmin
from .operations import Fate, Operation
from .session_operations import status_of


class Settle(Operation):
    """Closes an unanswered call without a result, through the session's manager."""

    name, permission = "settle", "sessions_app.change_toolcall"
    becomes = _("Will be settled")
    label, action = _("Settle tool call"), _("Settle the selected tool calls")
    note = _(
        "A settled call counts as cancelled. No message is added; a result that comes later is "
        "still stored with the call."
    )
    will = ngettext_lazy(
        "%(count)d tool call will be settled.", "%(count)d tool calls will be settled.", "count"
    )
    did = ngettext_lazy(
        "%(count)d tool call was settled.", "%(count)d tool calls were settled.", "count"
    )

    def fate(self, obj: ToolCall, *, now: datetime) -> Fate:
        if obj.status not in OPEN_TOOL_CALLS:
            return Fate(False, _("ended already"))
        session = status_of(obj.session, now=now)
        if session == SessionStatus.ACTIVE:
            return Fate(True)
        closed = session == SessionStatus.CLOSED
        return Fate(False, _("its session is closed") if closed else _("its session has expired"))

    def perform(self, actor: Actor, obj: ToolCall, *, reason: str) -> bool:
        return SessionManager(actor).settle_tool_call(id=obj.pk, reason=reason)[1]


@admin.register(ToolCall)
class ToolCallAdmin(OperatedAdmin):
    content_page = ContentPage.TOOLS
    operations = (Settle(),)
    heavy = (
        "arguments",
        "result",
        "error_message",
        "session__metadata",
        "session__search_text",
    )
    documents = {
        "arguments": lambda call: call.arguments,
        "result": lambda call: call.result,
        "error": lambda call: call.error_message,
    }
    ids = ("id", "tool_call_id")
    search_help_text = _("Id or tool call id from the beginning")
    ordering = ("-id",)

    list_display = (
        "id",
        "session_page",
        "tool",
        "status_now",
        "run_page",
        "duration",
        "size_number",
        "created",
    )
    list_filter = (
        filters.ToolCallStatusFilter,
        filters.SessionFilter,
        filters.RunFilter,
        filters.ToolFilter,
        filters.CreatedFilter,
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "session_page",
                    "run_page",
                    "tool_line",
                    "provider_id",
                    "status_now",
                    "size_number",
                )
            },
        ),
        (
            _("Times"),
            {"fields": ("created", "started", "finished", "duration", "announced", "answered")},
        ),
        (_("Arguments"), {"fields": ("arguments_text",)}),
        (_("Result"), {"fields": ("result_text", "error_kind", "error_text")}),
    )

    session_page = base.session_link()
    run_page = base.run_link()
    tool = base.cell_field("name", _("tool"))
    tool_line = base.text_field("name", _("tool"))
    provider_id = base.text_field("tool_call_id", _("tool call id"))
    size_number = base.number_field("size", _("size (bytes)"))
    duration = base.number_field("duration_ms", _("duration (ms)"))
    announced = base.number_field("message_sequence", _("announced in message"))
    answered = base.number_field("result_sequence", _("answered in message"))
    created = base.time_field("created_at", _("created at"))
    started = base.time_field("started_at", _("started at"))
    finished = base.time_field("finished_at", _("finished at"))
    arguments_text = base.document_field("arguments", _("arguments"))
    result_text = base.document_field("result", _("result"))
    error_kind = base.text_field("error_type", _("error type"))
    error_text = base.document_field("error", _("error"))

    @display(description=_("status"))
    def status_now(self, obj: ToolCall) -> Shown:
        return values.badge(obj.status, ToolCallStatus(obj.status).label)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ToolCall]:
        living = ToolCall.objects.readable_by(Actor.operator(request.user))  # type: ignore[arg-type]
        return living.select_related("session")

    def caption(self, obj: ToolCall, viewer: object) -> Shown:
        return values.cell(obj.name)
