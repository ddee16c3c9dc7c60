from django.db import models
from django.utils.translation import gettext_lazy as _

from ..states import ContentPage
from .session import Session


class ContentRead(models.Model):
    """That somebody read what a session holds, on a page of the console: append-only.

    Like events, reads outlive the session's data: who has seen it stays known.
    """

    session = models.ForeignKey(
        Session,
        verbose_name=_("session"),
        on_delete=models.PROTECT,
        related_name="content_reads",
        db_index=False,
    )
    # The name, as in events: what a person recognises when the account is long gone.
    reader = models.CharField(_("reader"), max_length=255)
    page = models.CharField(_("page"), max_length=10, choices=ContentPage)
    read_at = models.DateTimeField(_("read at"))

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

    def __str__(self) -> str:
        return f"{self.reader}: {self.session_id}"
