"""Messages, working memory and lifecycle events: what a session's page leads to."""

from typing import Any

from django.contrib import admin
from django.contrib.admin import display
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from ..console import values
from ..console.statuses import STATUSES
from ..jsontext import JSONText
from ..models import Message, SessionEvent, WorkingMemoryRevision
from ..services import bulk
from ..states import ActorType, ContentPage, SessionStatus, Subject
from . import base, filters
from .base import ReadOnlyAdmin, Shown


class _OfLivingSession(ReadOnlyAdmin):
    """Rows of a deleted session wait for their removal, and nobody sees them meanwhile."""

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        return super().get_queryset(request).exclude(session__status=SessionStatus.DELETED)


def content_of(message: Message) -> JSONText | str | None:
    """What was said: a string as it is, parts as JSON; of a removed message there is nothing."""
    content = (message.body.value or {}).get("content")
    return content if content is None or isinstance(content, str) else JSONText.of(content)


@admin.register(Message)
class MessageAdmin(_OfLivingSession):
    content_page = ContentPage.TRANSCRIPT
    heavy = ("body", "text")
    documents = {
        "content": content_of,
        "body": lambda message: message.body,
    }
    ids = ("message_id",)
    search_help_text = _("Message id from the beginning")
    ordering = ("-message_id",)
    in_session = "sequence"

    list_display = (
        "message_id",
        "session_page",
        "sequence_number",
        "role_line",
        "type_line",
        "size_number",
        "state",
        "created",
    )
    list_filter = (
        filters.SessionFilter,
        filters.RunFilter,
        filters.RoleFilter,
        filters.CreatedFilter,
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "session_page",
                    "sequence_number",
                    "role_line",
                    "type_line",
                    "run_page",
                    "state",
                    "created",
                )
            },
        ),
        (_("Content"), {"fields": ("content_text",)}),
        (_("Whole message"), {"fields": ("size_number", "client_id", "body_text")}),
    )

    session_page = base.session_link()
    run_page = base.run_link()
    sequence_number = base.number_field("sequence", _("sequence"))
    size_number = base.number_field("size", _("size (bytes)"))
    role_line = base.cell_field("role", _("role"))
    type_line = base.cell_field("type", _("type"))
    client_id = base.text_field("client_message_id", _("client message id"))
    created = base.time_field("created_at", _("created at"))
    content_text = base.document_field("content", _("content"))
    body_text = base.document_field("body", _("message"))

    @display(description=_("state"))
    def state(self, obj: Message) -> Shown:
        if obj.removed_at is not None:
            return values.badge("removed", _("Removed"))
        return values.badge("superseded", _("Superseded")) if obj.superseded_at else values.NOTHING

    def page_context(self, request: HttpRequest, obj: Message) -> dict[str, Any]:
        beside = Message.objects.filter(session=obj.session_id).values_list("pk", flat=True)
        before = beside.filter(sequence__lt=obj.sequence).order_by("-sequence").first()
        after = beside.filter(sequence__gt=obj.sequence).order_by("sequence").first()
        return super().page_context(request, obj) | {
            "previous_url": before and base.address("sessions_app_message_change", before),
            "next_url": after and base.address("sessions_app_message_change", after),
        }


@admin.register(WorkingMemoryRevision)
class WorkingMemoryAdmin(_OfLivingSession):
    content_page = ContentPage.MEMORY
    heavy = ("memory",)
    documents = {"memory": lambda revision: revision.memory}
    ordering = ("-pk",)
    in_session = "-version"

    list_display = (
        "version_line",
        "session_page",
        "after",
        "run_page",
        "actor_label",
        "actor",
        "created",
    )
    list_filter = (filters.SessionFilter, filters.RunFilter, filters.CreatedFilter)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "session_page",
                    "version_line",
                    "after",
                    "run_page",
                    "actor_label",
                    "actor",
                    "created",
                )
            },
        ),
        (_("Working memory"), {"fields": ("memory_text",)}),
    )

    version_line = base.number_field("version", _("version"))
    session_page = base.session_link()
    run_page = base.run_link()
    after = base.number_field("sequence", _("after message"))
    actor = base.cell_field("actor_id", _("actor"))
    created = base.time_field("created_at", _("created at"))
    memory_text = base.document_field("memory", _("working memory"))

    @display(description=_("actor type"))
    def actor_label(self, obj: WorkingMemoryRevision) -> Shown:
        return str(ActorType(obj.actor_type).label)


@admin.register(SessionEvent)
class SessionEventAdmin(ReadOnlyAdmin):
    """Events outlive the session's data, and show for a deleted one too."""

    ids = ("event_id",)
    search_help_text = _("Event id from the beginning")
    ordering = ("-event_id",)
    in_session = "-sequence"

    list_display = (
        "created",
        "session_page",
        "subject_label",
        "from_label",
        "to_label",
        "who",
        "reason_cell",
    )
    list_filter = (filters.SessionFilter, filters.SubjectFilter, filters.CreatedFilter)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "session_page",
                    "sequence_number",
                    "subject_label",
                    "subject_line",
                    "from_label",
                    "to_label",
                    "actor_label",
                    "actor",
                    "reason_line",
                    "created",
                )
            },
        ),
    )

    session_page = base.session_link()
    sequence_number = base.number_field("sequence", _("sequence"))
    subject_line = base.text_field("subject_id", _("subject id"))
    actor = base.cell_field("actor_id", _("actor"))
    reason_cell = base.cell_field("reason", _("reason"))
    reason_line = base.text_field("reason", _("reason"))
    created = base.time_field("created_at", _("created at"))

    def page_context(self, request: HttpRequest, obj: SessionEvent) -> dict[str, Any]:
        context = super().page_context(request, obj)
        if (move := bulk.behind(obj)) and request.user.has_perm("sessions_app.view_session"):
            url = reverse("admin:bulk_move", args=[move.pk])
            context["links"] = [(_("The decision about many"), move.total, url)]
        return context

    @display(description=_("subject"))
    def subject_label(self, obj: SessionEvent) -> Shown:
        return str(Subject(obj.subject).label)

    @display(description=_("actor type"))
    def actor_label(self, obj: SessionEvent) -> Shown:
        return str(ActorType(obj.actor_type).label)

    @display(description=_("actor"))
    def who(self, obj: SessionEvent) -> Shown:
        return format_html(
            '{}<div class="second">{}</div>', values.cell(obj.actor_id), self.actor_label(obj)
        )

    @display(description=_("from"))
    def from_label(self, obj: SessionEvent) -> Shown:
        return _status(obj.from_status)

    @display(description=_("to"))
    def to_label(self, obj: SessionEvent) -> Shown:
        return _status(obj.to_status)


def _status(status: str | None) -> Shown:
    return values.badge(status, STATUSES.get(status, status)) if status else values.NOTHING
