from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from ..fields import JSONTextField
from ..ids import MAX_ID_LENGTH
from ..querysets import ToolCallQuerySet
from ..states import OPEN_TOOL_CALLS, ToolCallStatus
from .session import Session


class ToolCall(models.Model):
    """One use of a tool, as a message announced it or as the agent recorded it.

    ``tool_call_id`` is the provider's, and providers use it again; ``id`` is ours.
    """

    id = models.CharField(_("id"), max_length=MAX_ID_LENGTH, primary_key=True, editable=False)
    session = models.ForeignKey(
        Session,
        verbose_name=_("session"),
        on_delete=models.PROTECT,
        related_name="tool_calls",
        db_index=False,
    )
    run = models.ForeignKey(
        "runs_app.Run",
        verbose_name=_("run"),
        on_delete=models.PROTECT,
        null=True,
        related_name="tool_calls",
        db_index=False,
    )
    tool_call_id = models.CharField(_("tool call id"), max_length=2048, null=True)
    name = models.CharField(_("tool"), max_length=255)
    arguments = JSONTextField(_("arguments"), null=True)
    status = models.CharField(
        _("status"), max_length=9, choices=ToolCallStatus, default=ToolCallStatus.PENDING
    )
    result = JSONTextField(_("result"), null=True)
    error_type = models.CharField(_("error type"), max_length=255, null=True)
    error_message = models.TextField(_("error"), null=True)
    size = models.BigIntegerField(_("size (bytes)"), default=0)
    message_sequence = models.BigIntegerField(_("announced in message"), null=True)
    result_sequence = models.BigIntegerField(_("answered in message"), null=True)
    created_at = models.DateTimeField(_("created at"))
    started_at = models.DateTimeField(_("started at"), null=True)
    finished_at = models.DateTimeField(_("finished at"), null=True)
    duration_ms = models.BigIntegerField(_("duration (ms)"), null=True)
    session_version = models.BigIntegerField()
    # With its message: nobody can answer it any more.
    superseded_at = models.DateTimeField(_("superseded at"), null=True)

    objects = ToolCallQuerySet.as_manager()

    class Meta:
        verbose_name = _("tool call")
        verbose_name_plural = _("tool calls")
        indexes = [
            # A session's tool history, newest first, and the packet's newest twenty.
            models.Index(fields=["session", "-id"], name="tool_call_by_session"),
            # The calls that a message made or a window covers.
            models.Index(fields=["session", "message_sequence"], name="tool_call_by_message"),
            # The calls that a window's results answer.
            models.Index(
                fields=["session", "result_sequence"],
                name="tool_call_by_result",
                condition=Q(result_sequence__isnull=False),
            ),
            # The calls that a new result may answer.
            models.Index(
                fields=["session", "message_sequence"],
                name="tool_call_unanswered",
                condition=Q(message_sequence__isnull=False, result_sequence__isnull=True),
            ),
            # The session's open calls.
            models.Index(
                fields=["session", "id"],
                name="tool_call_open",
                condition=Q(finished_at__isnull=True),
            ),
            # What a run did.
            models.Index(
                fields=["run", "id"], name="tool_call_by_run", condition=Q(run__isnull=False)
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="tool_call_status_has_its_time",
                condition=(
                    Q(status__in=sorted(OPEN_TOOL_CALLS), finished_at__isnull=True)
                    | (~Q(status__in=sorted(OPEN_TOOL_CALLS)) & Q(finished_at__isnull=False))
                ),
            ),
            models.CheckConstraint(
                name="tool_call_result_follows_call",
                condition=Q(result_sequence__isnull=True)
                | Q(
                    message_sequence__isnull=False, result_sequence__gt=models.F("message_sequence")
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.id
