from django.db import models
from django.utils.translation import gettext_lazy as _
from knox.models import AbstractAuthToken


class AccessToken(AbstractAuthToken):
    """An account's key to the REST API, stored as a hash only."""

    name = models.CharField(_("name"), max_length=255)
    last_used_at = models.DateTimeField(_("last used"), null=True)

    # No column: whether its account may use the API, as of when the token was looked up.
    may_use_api = False

    class Meta:
        verbose_name = _("access token")
        verbose_name_plural = _("access tokens")

    def __str__(self) -> str:
        return f"{self.name} ({self.token_key}…)"
