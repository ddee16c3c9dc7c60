from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from ..fields import JSONTextField
from ..states import ActorType
from .session import Session


class WorkingMemoryRevision(models.Model):
    """What the agent understood at one point. The newest revision is the current memory."""

    session = models.ForeignKey(
        Session,
        verbose_name=_("session"),
        on_delete=models.PROTECT,
        related_name="memory_revisions",
        db_index=False,
    )
    version = models.BigIntegerField(_("version"))
    memory = JSONTextField(_("working memory"))
    sequence = models.BigIntegerField(_("after message"))
    run = models.ForeignKey(
        "runs_app.Run",
        verbose_name=_("run"),
        on_delete=models.PROTECT,
        null=True,
        related_name="memory_revisions",
        db_index=False,
    )
    actor_type = models.CharField(_("actor type"), max_length=8, choices=ActorType)
    actor_id = models.CharField(_("actor"), max_length=255)
    session_version = models.BigIntegerField()
    created_at = models.DateTimeField(_("created at"))

    class Meta:
        verbose_name = _("working memory revision")
        verbose_name_plural = _("working memory revisions")
        indexes = [
            # A run's deletion asks what still points at it.
            models.Index(fields=["run"], name="memory_by_run", condition=Q(run__isnull=False)),
        ]
        constraints = [
            models.UniqueConstraint("session", "version", name="memory_version_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id} v{self.version}"
