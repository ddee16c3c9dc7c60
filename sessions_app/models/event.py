from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..chain import DIGEST_LENGTH
from ..ids import MAX_ID_LENGTH
from ..states import ActorType, Subject
from .session import Session


class SessionEvent(models.Model):
    """One thing that happened in the life of a session: append-only (`sessions_app.append_only`),
    and free of content.

    Events outlive the session's data; they are part of the tombstone. They are a chain
    (`sessions_app.chain`), which ends in the session's row.
    """

    chained: ClassVar[tuple[str, ...]] = (
        "event_id",
        "session_id",
        "sequence",
        "subject",
        "subject_id",
        "from_status",
        "to_status",
        "actor_type",
        "actor_id",
        "reason",
        "session_version",
        "created_at",
    )

    event_id = models.CharField(
        _("event id"), max_length=MAX_ID_LENGTH, primary_key=True, editable=False
    )
    session = models.ForeignKey(
        Session,
        verbose_name=_("session"),
        on_delete=models.PROTECT,
        related_name="events",
        db_index=False,
    )
    sequence = models.BigIntegerField(_("sequence"))
    subject = models.CharField(_("subject"), max_length=9, choices=Subject)
    subject_id = models.CharField(_("subject id"), max_length=MAX_ID_LENGTH)
    from_status = models.CharField(_("from"), max_length=11, null=True)
    to_status = models.CharField(_("to"), max_length=11, null=True)
    actor_type = models.CharField(_("actor type"), max_length=8, choices=ActorType)
    actor_id = models.CharField(_("actor"), max_length=255)
    reason = models.CharField(_("reason"), max_length=1000, default="")
    session_version = models.BigIntegerField()
    created_at = models.DateTimeField(_("created at"))
    digest = models.CharField(max_length=DIGEST_LENGTH, editable=False)

    class Meta:
        verbose_name = _("lifecycle event")
        verbose_name_plural = _("lifecycle events")
        constraints = [
            models.UniqueConstraint("session", "sequence", name="event_sequence_unique"),
        ]

    def __str__(self) -> str:
        return self.event_id
