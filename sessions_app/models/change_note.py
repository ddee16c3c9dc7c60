from django.db import models

from ..ids import MAX_ID_LENGTH
from ..states import Subject
from .session import Session


class ChangeNote(models.Model):
    """That a version of a session changed something which says so nowhere else: the session's own
    fields, or a tool call that no message made or answered.

    What else a version changed stands for good in rows of its own (messages, events, revisions), so
    that an append, which is nearly every write, leaves no note. See `services.changes`.
    """

    session = models.ForeignKey(
        Session, on_delete=models.PROTECT, related_name="change_notes", db_index=False
    )
    version = models.BigIntegerField()
    subject = models.CharField(max_length=9, choices=Subject)
    subject_id = models.CharField(max_length=MAX_ID_LENGTH)

    class Meta:
        default_permissions = ()
        indexes = [
            # What happened in a session after a version.
            models.Index(fields=["session", "version"], name="change_note_by_version"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id} v{self.version}"
