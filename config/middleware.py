import re
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import structlog
from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware import locale
from django.template.response import SimpleTemplateResponse
from django.urls import ResolverMatch, URLResolver, get_resolver
from django.utils import translation

from sessions_app.api.uploads import UNANNOUNCED
from sessions_app.ids import new_id

from .logs import current_request
from .openai_errors import PREFIX

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_LONGEST_LOGGED_PATH = 500
_LONGEST_KEPT_PATH = 200  # a thousand of any length would fill the memory
_SHORT_BODY_BYTES = 64 * 1024
# Whose bodies may be larger than memory.
_TAKE_FILES = frozenset({"/api/v1/sessions/import"})

GetResponse = Callable[[HttpRequest], HttpResponseBase]

access_log = structlog.get_logger()

# What is safe in a log line and a header, and long enough for a UUID or a trace parent.
_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class RequestIdMiddleware:
    """Give each request an id that the answer, its problem document and its log lines share."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = time.perf_counter()
        request_id = _request_id(request)
        request.request_id = request_id  # type: ignore[attr-defined]
        # The path as it was asked for; the query string stays out, people search for names in it.
        path = request.path
        token = current_request.set(request)
        try:
            response = self.get_response(request)
            response.headers["X-Request-Id"] = request_id
            access_log.info(
                "request",
                method=request.method,
                path=path[:_LONGEST_LOGGED_PATH],
                status=response.status_code,
                duration_ms=round((time.perf_counter() - started) * 1000, 1),
            )
        finally:
            current_request.reset(token)
        return response


def _request_id(request: HttpRequest) -> str:
    given = request.META.get("HTTP_X_REQUEST_ID", "")
    return given if _SANE_REQUEST_ID.fullmatch(given) else new_id("req")


class TrailingSlashMiddleware:
    """Answer /api/…/ as /api/…, and /docs/ as /docs: never by redirect, which would drop a POST's
    body. The admin's own paths end in a slash."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        path = request.path_info
        if path.endswith("/") and path != "/" and not path.startswith("/admin/"):
            request.path_info = request.path_info[:-1]
            request.path = request.path[:-1]
        return self.get_response(request)


class APIMiddleware:
    """Answer requests of the API here, by their view: what follows in MIDDLEWARE is for pages.

    They carry a token, never a cookie, and are answered in one language.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self.get_answer = cast(GetResponse, convert_exception_to_response(_answer_by_view))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(("/api/", PREFIX)):
            return self.get_response(request)
        response = self.get_answer(request)
        if isinstance(response, HttpResponse):
            response.headers.setdefault("Content-Length", str(len(response.content)))
        response.headers.setdefault("X-Frame-Options", settings.X_FRAME_OPTIONS)
        return response


def _answer_by_view(request: HttpRequest) -> HttpResponseBase:
    request.get_host()  # raises DisallowedHost
    path = request.path_info
    resolve = _resolve if len(path) <= _LONGEST_KEPT_PATH else _resolve.__wrapped__
    request.resolver_match = found = resolve(get_resolver(), path)
    response: HttpResponseBase = found.func(request, *found.args, **found.kwargs)
    return response.render() if isinstance(response, SimpleTemplateResponse) else response


@lru_cache(maxsize=1024)
def _resolve(resolver: URLResolver, path: str) -> ResolverMatch:
    """Whose path it is. Agents ask for the same ones again and again, and each look through the
    patterns would take a twentieth of an append's time."""
    found = resolver.resolve(path)
    found.tried = None  # only a page for debugging reads it, and it is most of what is kept
    return found


class LocaleMiddleware(locale.LocaleMiddleware):
    """Django's, but it leaves no language behind for the thread's next request."""

    def process_response(self, request: Any, response: Any) -> Any:
        response = super().process_response(request, response)
        translation.deactivate()
        return response


class WholeBodies:
    """Read a request's body before anything else looks at the request, unless it is a long one, or
    a file that its view reads by itself, piece by piece.

    One that came without a length (chunked, HTTP/2) gets it: Django reads CONTENT_LENGTH bytes, so
    that it would take such a body for an empty one. One byte over the limit is read, which is
    enough for the parser to refuse it.

    One that is still on its way when its request is refused (a wrong token, a database that is
    gone) would make the server end the connection, without a word of it in the answer: a client
    that keeps its connections would meet that at its next request (RFC 9112, section 9.6).
    """

    def __init__(self, application: "WSGIApplication") -> None:
        self.application = application

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH")
        if length and int(length) <= _SHORT_BODY_BYTES:
            environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read(int(length)))
        elif not length and environ.get("wsgi.input_terminated", False):
            if environ.get("PATH_INFO", "").rstrip("/") in _TAKE_FILES:
                # As much as Django may read; the body's own end comes first.
                environ["CONTENT_LENGTH"] = str(settings.MAX_IMPORT_BYTES + 1)
                environ[UNANNOUNCED] = True
                return self.application(environ, start_response)
            # read(n) only: after it, the server's own read() would lose what is already buffered.
            body = cast(bytes, environ["wsgi.input"].read(settings.MAX_BODY_BYTES + 1))
            environ["CONTENT_LENGTH"] = str(len(body))
            environ["wsgi.input"] = BytesIO(body)
        return self.application(environ, start_response)
