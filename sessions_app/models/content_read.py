from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..chain import DIGEST_LENGTH
from ..states import ContentPage
from .session import Session


class ContentRead(models.Model):
    """That somebody read what a session holds, on a page of the console: append-only.

    Like events, reads outlive the session's data: who has seen it stays known. They are a chain of
    their own, which ends in `ReadChain`.
    """

    chained: ClassVar[tuple[str, ...]] = ("session_id", "sequence", "reader", "page", "read_at")

    session = models.ForeignKey(
        Session,
        verbose_name=_("session"),
        on_delete=models.PROTECT,
        related_name="content_reads",
        db_index=False,
    )
    sequence = models.BigIntegerField(_("sequence"))
    # The name, as in events: what a person recognises when the account is long gone.
    reader = models.CharField(_("reader"), max_length=255)
    page = models.CharField(_("page"), max_length=10, choices=ContentPage)
    read_at = models.DateTimeField(_("read at"))
    digest = models.CharField(max_length=DIGEST_LENGTH, editable=False)

    class Meta:
        verbose_name = _("content read")
        verbose_name_plural = _("content reads")
        default_permissions = ("view",)
        indexes = [
            # Who read this session; and whether this reader has done so just now.
            models.Index(
                fields=["session", "reader", "page", "-read_at"], name="content_read_by_session"
            ),
            # What somebody has read, newest first.
            models.Index(fields=["reader", "-id"], name="content_read_by_reader"),
        ]
        constraints = [
            models.UniqueConstraint("session", "sequence", name="content_read_sequence_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.reader}: {self.session_id}"


class ReadChain(models.Model):
    """Where the chain of a session's content reads ends. Not in the session's row: whoever opens a
    page must not wait for who writes."""

    session = models.OneToOneField(
        Session, on_delete=models.PROTECT, primary_key=True, related_name="read_chain"
    )
    count = models.BigIntegerField(default=0)
    digest = models.CharField(max_length=DIGEST_LENGTH, null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.session_id
