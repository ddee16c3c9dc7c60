"""The console's login, which is not to be tried for ever."""

from hashlib import sha256
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import ngettext

from ..folding import fold
from ..throttle import client_address, refund, spend
from .skin import AuthenticationForm

log = structlog.get_logger()

WINDOW_SECONDS = 15 * 60
# From one address, and for one name from anywhere: more than a person mistypes, and few enough.
_MORE = 10


class LoginForm(AuthenticationForm):
    """Counts before it looks at the password, so that many at once get no further."""

    retry_after = 0
    """Seconds, where there were too many attempts."""

    def clean(self) -> dict[str, Any]:
        if self.errors:  # a name or a password is missing, or cannot be one: nothing was tried
            return self.cleaned_data
        names = self._counted_names()
        if settings.LOGIN_ATTEMPTS:
            waits = (spend(name, most=most, seconds=WINDOW_SECONDS) for name, most in names.items())
            # One that is refused goes no further: from one address nobody can lock out a name.
            self.retry_after = next(filter(None, waits), 0)
        address = client_address(self.request.META)
        if self.retry_after:
            log.warning("login refused", address=address)
            raise _too_many(self.retry_after)
        try:
            cleaned = super().clean()
        except ValidationError:
            # Not the name: people type their password there, too.
            log.warning("login failed", address=address)
            raise
        for name in names:
            refund(name, seconds=WINDOW_SECONDS)
        log.info("login", address=address, account=cleaned["username"])
        return cleaned

    def _counted_names(self) -> dict[str, int]:
        """What is counted, in this order, and how many of each there may be."""
        most = settings.LOGIN_ATTEMPTS
        address = client_address(self.request.META)
        name = sha256(fold(self.cleaned_data["username"]).encode()).hexdigest()
        return {
            f"login:from:{address}": most * _MORE,
            f"login:{name}:{address}": most,
            f"login:as:{name}": most * _MORE,
        }


def _too_many(seconds: int) -> ValidationError:
    minutes = -(-seconds // 60)
    words = ngettext(
        "Too many attempts. Try again in %(minutes)d minute.",
        "Too many attempts. Try again in %(minutes)d minutes.",
        minutes,
    )
    return ValidationError(words, code="too_many", params={"minutes": minutes})
