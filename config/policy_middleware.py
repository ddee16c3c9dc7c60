"""The Content-Security-Policy of every answer: the strictest, where nothing else is said."""

from collections.abc import Callable

from csp.utils import build_policy
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from sessions_app.console import policy

HEADER = "Content-Security-Policy"
# Both are the same for each answer.
_NOTHING, _SKIN = build_policy(policy.NOTHING), build_policy(policy.SKIN)


class ContentSecurityPolicyMiddleware:
    """A view says its own by `policy.apply` or by django-csp's decorator; what the skin needs is
    allowed under /admin/ only. Errors have one, too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        own = getattr(response, "_csp_config", None)
        path = request.path_info
        if HEADER in response.headers or path.startswith(settings.STATIC_URL):
            return response
        if own is not None:
            response.headers[HEADER] = build_policy(own)
        else:
            response.headers[HEADER] = _SKIN if path.startswith("/admin/") else _NOTHING
        return response
