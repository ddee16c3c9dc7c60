from django.conf import settings
from django.db import models
from django.db.models import TextChoices

from ..fields import TermsField
from ..ids import MAX_ID_LENGTH
from .session import Session


class SearchKind(TextChoices):
    """What of a session is found."""

    MESSAGE = "message"
    SESSION = "session"  # its title and external id
    TOOL_CALL = "tool_call"  # one that was recorded by itself: others are found by their messages
    MEMORY = "working_memory"  # as it is now


class SearchEntry(models.Model):
    """One text that is found by its terms; newer ones have greater keys.

    Written by `services.search` alone. Its keys are not checked by the database: each append would
    pay for it, and what they name is written, and purged, beside it.
    """

    account = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    session = models.ForeignKey(
        Session,
        on_delete=models.PROTECT,
        related_name="search_entries",
        db_index=False,
        db_constraint=False,
    )
    kind = models.CharField(max_length=14, choices=SearchKind)
    # The id of the message or the tool call, else the session's.
    subject_id = models.CharField(max_length=MAX_ID_LENGTH)
    terms = TermsField()

    class Meta:
        # Other indexes are made by a migration: they are others on each database.
        constraints = [
            models.UniqueConstraint("session", "subject_id", "kind", name="search_subject_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_id}"
