from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from ..ids import MAX_ID_LENGTH
from ..states import BulkEnd, BulkOutcome, SessionStatus


class BulkMove(models.Model):
    """An operator's decision to bring many sessions to a status; see `services.bulk`.

    ``confirmed_at`` null: a draft, of which the operator is still asked.
    """

    bulk_id = models.CharField(max_length=MAX_ID_LENGTH, primary_key=True, editable=False)
    to_status = models.CharField(_("to"), max_length=7, choices=SessionStatus)
    reason = models.CharField(_("reason"), max_length=1000, default="")
    # The name, as in events; the account is who must still have the right at each session.
    operator = models.CharField(_("operator"), max_length=255)
    account = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        db_index=False,
    )
    total = models.BigIntegerField()
    # What the draft's page says of the sessions that are none of its targets.
    staying = models.JSONField(default=dict)
    has_more = models.BooleanField(default=False)
    created_at = models.DateTimeField(_("created at"))
    confirmed_at = models.DateTimeField(null=True)
    worked_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    end = models.CharField(max_length=9, choices=BulkEnd, null=True)
    stopped_by = models.CharField(max_length=255, default="")

    class Meta:
        default_permissions = ()
        indexes = [
            # What the sweep goes on with, and what the list of sessions tells of.
            models.Index(
                fields=["worked_at"],
                name="bulk_move_unfinished",
                condition=Q(ended_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.bulk_id


class BulkTarget(models.Model):
    """One of its sessions, and what has become of it; ``outcome`` null: nothing yet."""

    bulk = models.ForeignKey(
        BulkMove, on_delete=models.CASCADE, related_name="targets", db_index=False
    )
    # No key: it is no part of the session, and stays when that is purged.
    session_id = models.CharField(max_length=MAX_ID_LENGTH)
    outcome = models.CharField(max_length=7, choices=BulkOutcome, null=True)
    # A status that kept it, or a refusal's code.
    why = models.CharField(max_length=40, default="")
    # How often the database was too busy for it.
    attempts = models.SmallIntegerField(default=0)

    class Meta:
        default_permissions = ()
        indexes = [
            # The next ones, and how many have which outcome.
            models.Index(fields=["bulk", "outcome", "id"], name="bulk_target_by_outcome"),
            # Which decision an event of a session comes from.
            models.Index(fields=["session_id"], name="bulk_target_of_session"),
        ]

    def __str__(self) -> str:
        return self.session_id
