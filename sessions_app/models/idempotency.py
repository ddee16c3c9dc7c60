from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from ..fields import JSONTextField
from .session import Session


class IdempotencyRecord(models.Model):
    """The first 2xx answer to a write that carried an ``Idempotency-Key``.

    ``digest`` is the SHA-256 of account, method, path and key: ids in a path have no fixed
    length, and an index entry has.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    fingerprint = models.CharField(max_length=64)
    # Without the database's check of the two keys, which would lock the account's one row in every
    # write of all its agents: a record is written beside the session that it names, and it lapses.
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
        null=True,
        related_name="idempotency_records",
        db_constraint=False,
    )
    status_code = models.SmallIntegerField(null=True)
    headers = JSONTextField(null=True)
    # The body, or what it can be rebuilt from; null once the session is deleted.
    answer = JSONTextField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("idempotency record")
        verbose_name_plural = _("idempotency records")
        indexes = [
            # The sweep drops old ones.
            models.Index(fields=["created_at"], name="idempotency_by_age"),
        ]

    def __str__(self) -> str:
        return self.digest
