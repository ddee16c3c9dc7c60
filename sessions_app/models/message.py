from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from ..fields import JSONTextField
from ..ids import MAX_ID_LENGTH
from ..querysets import MessageQuerySet
from .session import Session


class Message(models.Model):
    """One message, kept whole as it was sent (``body``), and beside it what is queried.

    A removed message keeps its row and its place; its content is purged.
    """

    message_id = models.CharField(
        _("message id"), max_length=MAX_ID_LENGTH, primary_key=True, editable=False
    )
    session = models.ForeignKey(
        Session,
        verbose_name=_("session"),
        on_delete=models.PROTECT,
        related_name="messages",
        db_index=False,  # the unique constraint's index begins with it
    )
    sequence = models.BigIntegerField(_("sequence"))
    role = models.CharField(_("role"), max_length=16, null=True)
    type = models.CharField(_("type"), max_length=64, default="message")
    body = JSONTextField(_("message"))
    size = models.BigIntegerField(_("size (bytes)"))
    text = models.TextField(default="", editable=False)  # folded, for search
    client_message_id = models.CharField(_("client message id"), max_length=255, null=True)
    # The id with which an item came (`services.items.ids`); those that we mint are not stored.
    item_id = models.CharField(max_length=255, null=True, editable=False)
    run = models.ForeignKey(
        "runs_app.Run",
        verbose_name=_("run"),
        on_delete=models.PROTECT,
        null=True,
        related_name="messages",
        db_index=False,
    )
    # Of a compaction: up to where its summary stands for what was said.
    through_sequence = models.BigIntegerField(null=True, editable=False)
    session_version = models.BigIntegerField()
    # The version that added it, of a message that another has removed or superseded since.
    added_version = models.BigIntegerField(null=True)
    created_at = models.DateTimeField(_("created at"))
    removed_at = models.DateTimeField(_("removed at"), null=True)
    superseded_at = models.DateTimeField(_("superseded at"), null=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        indexes = [
            # A run's messages, and its first and last sequence.
            models.Index(
                fields=["run", "sequence"], name="message_by_run", condition=Q(run__isnull=False)
            ),
            # An item by its id.
            models.Index(
                fields=["session", "item_id"],
                name="message_by_item",
                condition=Q(item_id__isnull=False),
            ),
            # The compaction that was in force before one that is taken away.
            models.Index(
                fields=["session", "-sequence"],
                name="message_compaction",
                condition=Q(through_sequence__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint("session", "sequence", name="message_sequence_unique"),
            models.UniqueConstraint(
                "session",
                "client_message_id",
                name="message_client_id_unique",
                condition=Q(client_message_id__isnull=False),
            ),
            models.CheckConstraint(
                name="message_sequence_starts_at_one", condition=Q(sequence__gte=1)
            ),
        ]

    def __str__(self) -> str:
        return self.message_id
