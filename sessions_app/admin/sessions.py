"""The list of sessions, and the page of one."""

from typing import Any, ClassVar

from django.contrib.admin import display
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from ..console import values
from ..folding import fold
from ..models import Session
from ..states import SessionStatus
from . import base, filters
from .base import Shown
from .confirm import OperatedAdmin
from .session_operations import status_of

# What a session's page leads to: a model, its words, and the column that counts it.
_RECORDS = [
    ("sessions_app", "message", _("Messages"), "message_count"),
    ("sessions_app", "toolcall", _("Tool calls"), "tool_call_count"),
    ("runs_app", "run", _("Runs"), "run_count"),
    ("sessions_app", "workingmemoryrevision", _("Working memory"), "working_memory_version"),
    ("sessions_app", "sessionevent", _("Lifecycle events"), "event_count"),
]


class SessionAdmin(OperatedAdmin):
    """Registered in `runs_app.admin`, which adds what a session's runs say of it, and the
    operations, which end its runs."""

    heavy = ("metadata", "search_text", "account__password")
    documents = {"metadata": lambda session: session.metadata}
    ids = ("session_id", "user_id")
    search_help_text = _("Session id or user from the beginning; title or external id anywhere")
    ordering = ("-session_id",)
    list_select_related = ("account",)
    sortable_by = ("activity", "expiry")

    list_display: Any = (
        "name",
        "status_now",
        "agent_and_user",
        "account_name",
        "message_number",
        "open_calls",
        "activity",
        "expiry",
    )
    list_filter: ClassVar[Any] = (
        filters.StatusFilter,
        filters.OpenToolCallsFilter,
        filters.ExpiryFilter,
        filters.ActivityFilter,
        filters.AgentFilter,
        filters.UserFilter,
        filters.AccountFilter,
    )
    fieldsets: ClassVar[Any] = (
        (
            None,
            {
                "fields": (
                    "status_now",
                    "title_line",
                    "agent_line",
                    "user_line",
                    "account_name",
                    "external_line",
                )
            },
        ),
        (
            _("Times"),
            {
                "fields": (
                    "created",
                    "activity_line",
                    "idle_timeout",
                    "expiry_line",
                    "closed",
                    "expired",
                    "deleted",
                    "purged",
                )
            },
        ),
        (
            _("Counts"),
            {
                "fields": (
                    "message_number",
                    "call_number",
                    "open_calls",
                    "run_number",
                    "input_tokens_number",
                    "output_tokens_number",
                    "version_number",
                )
            },
        ),
        (_("Origin"), {"fields": ("parent", "forked", "imported_line")}),
        (_("Metadata"), {"fields": ("metadata_text",)}),
    )

    title_line = base.text_field("title", _("title"))
    agent_line = base.text_field("agent_id", _("agent"))
    user_line = base.text_field("user_id", _("user"))
    external_line = base.text_field("external_id", _("external id"))
    imported_line = base.text_field("imported_from", _("imported from"))
    message_number = base.number_field("message_count", _("messages"))
    call_number = base.number_field("tool_call_count", _("tool calls"))
    open_calls = base.number_field("open_tool_call_count", _("open tool calls"))
    run_number = base.number_field("run_count", _("runs"))
    input_tokens_number = base.number_field("input_tokens", _("input tokens"))
    output_tokens_number = base.number_field("output_tokens", _("output tokens"))
    version_number = base.number_field("version", _("version"))
    idle_timeout = base.number_field("idle_timeout_seconds", _("idle timeout (s)"))
    forked = base.number_field("forked_at_sequence", _("forked at"))
    created = base.time_field("created_at", _("created at"))
    activity = base.ago_field("last_activity_at", _("last activity"), ordering="last_activity_at")
    activity_line = base.time_field("last_activity_at", _("last activity"))
    expiry = base.ago_field("expires_at", _("expires"), ordering="expires_at")
    expiry_line = base.time_field("expires_at", _("expires at"))
    closed = base.time_field("closed_at", _("closed at"))
    deleted = base.time_field("deleted_at", _("deleted at"))
    purged = base.time_field("purged_at", _("purged at"))
    parent = base.link_field(
        "parent_session_id", _("parent session"), "sessions_app_session_change"
    )
    metadata_text = base.document_field("metadata", _("metadata"))

    @display(description=_("session"))
    def name(self, obj: Session) -> Shown:
        return format_html('{}<span class="id">{}</span>', self.caption(obj), obj.pk)

    @display(description=_("status"))
    def status_now(self, obj: Session) -> Shown:
        status = status_of(obj, now=timezone.now())
        return values.badge(status, status.label)

    @display(description=_("agent, user"))
    def agent_and_user(self, obj: Session) -> Shown:
        return format_html(
            '{}<div class="second">{}</div>', values.cell(obj.agent_id), values.cell(obj.user_id)
        )

    @display(description=_("account"))
    def account_name(self, obj: Session) -> Shown:
        return values.cell(obj.account.get_username())

    @display(description=_("expired at"))
    def expired(self, obj: Session) -> Shown:
        """A session that nobody has settled yet expired at its deadline."""
        lapsed = obj.expired_at is None and status_of(obj, now=timezone.now()) == "EXPIRED"
        return values.moment(obj.expires_at if lapsed else obj.expired_at)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        return super().get_queryset(request).select_related("account")

    def caption(self, obj: Session) -> Shown:
        return values.cell(obj.title) if obj.title else ""

    def search(self, queryset: Any, term: str) -> QuerySet:
        """By the beginning of an id, or by a piece of the folded title or external id."""
        return queryset.mentioning(fold(term)) | super().search(queryset, term)

    def page_context(self, request: HttpRequest, obj: Session) -> dict[str, Any]:
        return super().page_context(request, obj) | {"links": _links(request, obj)}

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """What has happened to a session stands in its events."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        address = reverse("admin:sessions_app_sessionevent_changelist")
        return HttpResponseRedirect(f"{address}?session={object_id}")


def _links(request: HttpRequest, session: Session) -> list[tuple[Any, int, str]]:
    """The session's records, as far as the account may see them; of a deleted one, its events."""
    gone = session.status == SessionStatus.DELETED
    return [
        (label, getattr(session, counter), f"{_list_of(app, model)}?session={session.pk}")
        for app, model, label, counter in _RECORDS
        if request.user.has_perm(f"{app}.view_{model}") and not (gone and model != "sessionevent")
    ]


def _list_of(app: str, model: str) -> str:
    return reverse(f"admin:{app}_{model}_changelist")
