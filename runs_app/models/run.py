from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from sessions_app.fields import JSONTextField
from sessions_app.ids import MAX_ID_LENGTH
from sessions_app.models import Session
from sessions_app.models.session import UsageFields, empty_object

from ..querysets import RunQuerySet
from ..states import STARTED, UNFINISHED, RunStatus


class Run(UsageFields):
    """One task's life inside a session; see `runs_app.states`.

    While a run is the session's active one, the session row holds its deadline and its last sign
    of life; `RunQuerySet.effective` puts the two together.
    """

    run_id = models.CharField(
        _("run id"), max_length=MAX_ID_LENGTH, primary_key=True, editable=False
    )
    session = models.ForeignKey(
        Session,
        verbose_name=_("session"),
        on_delete=models.PROTECT,
        related_name="runs",
        db_index=False,
    )
    agent_id = models.CharField(_("agent"), max_length=255, null=True)
    model = models.CharField(_("model"), max_length=255, null=True)
    status = models.CharField(
        _("status"), max_length=11, choices=RunStatus, default=RunStatus.PENDING
    )
    attempt = models.BigIntegerField(_("attempt"), default=0)
    input = JSONTextField(_("input"), null=True)
    output = JSONTextField(_("output"), null=True)
    error = JSONTextField(_("error"), null=True)
    metadata = JSONTextField(_("metadata"), default=empty_object)
    size = models.BigIntegerField(_("size (bytes)"), default=0)
    retry_of = models.ForeignKey(
        "self", verbose_name=_("retry of"), on_delete=models.PROTECT, null=True, related_name="+"
    )
    parent_run = models.ForeignKey(
        "self",
        verbose_name=_("parent run"),
        on_delete=models.PROTECT,
        null=True,
        related_name="child_runs",
    )
    lease_seconds = models.BigIntegerField(_("lease (s)"))
    lease_expires_at = models.DateTimeField(_("lease expires at"), null=True)
    heartbeat_at = models.DateTimeField(_("last sign of life"), null=True)
    wait_reason = models.CharField(_("wait reason"), max_length=1000, null=True)
    cancel_reason = models.CharField(_("cancel reason"), max_length=1000, null=True)
    created_at = models.DateTimeField(_("created at"))
    started_at = models.DateTimeField(_("started at"), null=True)
    ended_at = models.DateTimeField(_("ended at"), null=True)
    session_version = models.BigIntegerField()

    # Annotated by `RunQuerySet.effective`.
    lease: datetime | None
    deadline: datetime | None
    seen_at: datetime | None
    first_sequence: int | None
    last_sequence: int | None
    # Annotated by `RunQuerySet.with_error_head`.
    error_head: str | None

    objects = RunQuerySet.as_manager()

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        indexes = [
            # A session's runs, newest first.
            models.Index(fields=["session", "-run_id"], name="run_by_session"),
            # GET /runs?status=…, newest first, across sessions.
            models.Index(fields=["status", "-run_id"], name="run_by_status"),
        ]
        constraints = [
            models.UniqueConstraint(
                "session",
                name="one_started_run_per_session",
                condition=Q(status__in=sorted(STARTED), parent_run__isnull=True),
            ),
            models.CheckConstraint(
                name="run_status_has_its_time",
                condition=(
                    Q(status=RunStatus.PENDING, started_at=None, ended_at=None)
                    | Q(status__in=sorted(STARTED), started_at__isnull=False, ended_at=None)
                    | (~Q(status__in=sorted(UNFINISHED)) & Q(ended_at__isnull=False))
                ),
            ),
            # Without a deadline the sweep would never see it (report RUN-02).
            models.CheckConstraint(
                name="run_unfinished_has_a_deadline",
                condition=~Q(status__in=sorted(UNFINISHED)) | Q(lease_expires_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.run_id

    @property
    def content_size(self) -> int:
        """The bytes that clients gave: by them a page or packet knows how many runs it holds."""
        given = (self.input, self.output, self.error, self.metadata)
        return sum(len(text) for text in given if text is not None)
