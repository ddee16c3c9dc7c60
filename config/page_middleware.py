"""Django's middleware for pages that people see: requests of the API go past it.

They carry a token, never a cookie, and are answered in one language. What both need (the host's
check, security headers) and Django's own check asks for by name (CSRF) is not here.
"""

from typing import Any, cast

from django.contrib.auth import middleware as auth
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.http import HttpRequest, HttpResponseBase
from django.middleware import locale
from django.utils import translation

API = "/api/"


class _PagesOnly:
    get_response: Any

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(API):
            return cast(HttpResponseBase, self.get_response(request))
        return cast(HttpResponseBase, super().__call__(request))  # type: ignore[misc]


class SessionMiddleware(_PagesOnly, sessions.SessionMiddleware):
    """Django's."""


class LocaleMiddleware(_PagesOnly, locale.LocaleMiddleware):
    """Django's, but it leaves no language behind for the thread's next request."""

    def process_response(self, request: Any, response: Any) -> Any:
        response = super().process_response(request, response)
        translation.deactivate()
        return response


class AuthenticationMiddleware(_PagesOnly, auth.AuthenticationMiddleware):
    """Django's."""


class MessageMiddleware(_PagesOnly, messages.MessageMiddleware):
    """Django's."""
