from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from sessions_app.throttle import spend

WINDOW_SECONDS = 60


class AccountThrottle(BaseThrottle):
    """So many requests of one account in a minute, whichever of its tokens they carry."""

    def allow_request(self, request: Request, view: Any) -> bool:
        self.seconds = spend(
            f"account:{request.user.pk}",
            most=settings.REQUESTS_PER_MINUTE,
            seconds=WINDOW_SECONDS,
        )
        return not self.seconds

    def wait(self) -> float:
        return self.seconds
