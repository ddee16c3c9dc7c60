"""Every refusal as ``application/problem+json`` (RFC 9457), or as OpenAI's clients read it
(`openai_errors`); only here are errors given statuses."""

import logging
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views import defaults
from rest_framework import exceptions as drf

from sessions_app import errors
from sessions_app.api.response import Response

from .connections import drop_outdated_plans
from .openai_errors import is_for_openai, openai_error, retry_headers, status_of

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"

# The status, and what a client can do next; a test asks for that of each conflict.
ANSWERS: Mapping[type[errors.DossierError], tuple[int, str]] = {
    errors.InvalidJSON: (400, ""),
    errors.InvalidRequest: (400, ""),
    errors.InvalidItem: (400, ""),
    errors.ItemAlreadyInConversation: (400, ""),
    errors.InvalidCursor: (400, "Start again without a cursor."),
    errors.PermissionDenied: (403, ""),
    errors.NotFound: (404, ""),
    errors.SessionClosed: (409, "Resume the session first (POST …/resume)."),
    errors.SessionExpired: (409, "Resume the session first (POST …/resume)."),
    errors.InvalidTransition: (
        409,
        "Read the current status and choose a transition that leaves it.",
    ),
    errors.AlreadyExists: (409, "Use the existing one, or send if_exists=return."),
    errors.RunActive: (
        409,
        "Wait for it, cancel it, or send if_active=cancel or if_active=queue.",
    ),
    errors.RunEnded: (409, "Start a new run."),
    errors.RunInterrupted: (409, "Resume the run first (POST /runs/{run_id}/resume)."),
    errors.RunSuperseded: (409, "Stop this worker: its attempt is no longer the current one."),
    errors.SequenceMismatch: (
        409,
        "Read the messages after your last sequence, then send again.",
    ),
    errors.HasResult: (409, "Remove the message with the result first."),
    errors.IdempotencyInProgress: (409, "Send it again a little later, with the same key."),
    errors.SessionDeleted: (410, "Its data is gone; create a new session."),
    errors.VersionMismatch: (412, "Read it again, apply your change, and send the new ETag."),
    errors.PayloadTooLarge: (413, "Send less at a time."),
    errors.OrphanToolResult: (
        422,
        "Store the assistant message with its tool_calls first, in order.",
    ),
    errors.ClientMessageIdReused: (422, "Send the stored content, or a new client_message_id."),
    errors.IdempotencyKeyReused: (422, "Send the same request again, or a new key."),
    # A connection that broke under its COMMIT leaves nobody who knows.
    errors.DatabaseBusy: (
        503,
        "Send it again a little later, with its Idempotency-Key: stored or not, it is done once.",
    ),
}

# DRF's own refusals: code and title. A class that is not here answers under its own code.
_OF_DRF: Mapping[type[drf.APIException], tuple[str, str]] = {
    drf.ParseError: ("invalid_request", "The request is not valid"),
    drf.ValidationError: ("invalid_request", "The request is not valid"),
    drf.NotAuthenticated: ("not_authenticated", "Authentication is needed"),
    drf.AuthenticationFailed: ("not_authenticated", "Authentication is needed"),
    drf.PermissionDenied: ("permission_denied", "Permission denied"),
    drf.NotFound: ("not_found", "Not found"),
    drf.MethodNotAllowed: ("method_not_allowed", "The method is not allowed here"),
    drf.NotAcceptable: ("not_acceptable", "No acceptable format"),
    drf.UnsupportedMediaType: ("unsupported_media_type", "The body's type is not supported"),
    drf.Throttled: ("rate_limited", "Too many requests"),
}

# Paths outside /api/ that programs read.
_FOR_PROGRAMS = frozenset({"/openapi.json", "/healthz", "/readyz", "/metrics"})

_RETRY_AFTER_SECONDS = 1
_MAX_ERRORS = 100
_MAX_CHARACTERS = 1000
# SQLITE_ERROR: the statement itself is wrong (no such table), which waiting does not mend.
_SQLITE_ERROR = 1


def exception_handler(exc: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's hook. ``None`` leaves the exception to Django: it is logged and answered as a 500."""
    refusal = _as_known(exc)
    if isinstance(refusal, errors.DossierError):
        return _of_domain(refusal, context["request"])
    if isinstance(refusal, drf.APIException):
        return _of_drf(refusal, context["request"])
    return None


def _as_known(exc: Exception) -> Exception:
    if isinstance(exc, Http404):
        return drf.NotFound()
    if isinstance(exc, DjangoPermissionDenied):
        return drf.PermissionDenied()
    if isinstance(exc, RequestDataTooBig):
        return errors.PayloadTooLarge("The body is larger than the server accepts.")
    if isinstance(exc, UnreadablePostError):
        return drf.ParseError("The body broke off.")
    if drop_outdated_plans() or _will_pass(exc):
        # Never the statement or its values: they are what people wrote.
        logger.warning("database busy: %s", _driver_code(exc))
        return errors.DatabaseBusy("The database cannot take the request now.")
    return exc


def _driver_code(exc: Exception) -> str:
    cause = exc.__cause__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorname", None)
    return str(code or type(exc).__name__)


def _will_pass(exc: Exception) -> bool:
    """Locked, deadlocked, unreachable: everything but a statement that can never work."""
    if not isinstance(exc, OperationalError | InterfaceError):
        return False
    return getattr(exc.__cause__, "sqlite_errorcode", None) != _SQLITE_ERROR


def _of_domain(exc: errors.DossierError, request: HttpRequest) -> Response:
    status, hint = _answer_to(exc)
    body = problem(
        request,
        status=status,
        code=exc.code,
        title=exc.title,
        detail=f"{exc.detail} {hint}".strip(),
        found=list(_places(exc).items()),
        extras=exc.data,
    )
    busy = isinstance(exc, errors.DatabaseBusy | errors.IdempotencyInProgress)
    return _response(request, body, {"Retry-After": str(_RETRY_AFTER_SECONDS)} if busy else {})


def _places(exc: errors.DossierError) -> Mapping[str, str]:
    """Where in the request it is wrong, as far as one place of it is to blame."""
    if isinstance(exc, errors.InvalidRequest):
        return exc.pointers
    return {exc.data["pointer"]: exc.title} if "pointer" in exc.data else {}


def _answer_to(exc: errors.DossierError) -> tuple[int, str]:
    return next(ANSWERS[kind] for kind in type(exc).__mro__ if kind in ANSWERS)


def _of_drf(exc: drf.APIException, request: HttpRequest) -> Response:
    code, title = _OF_DRF.get(type(exc), (exc.default_code, "The request failed"))
    found = list(_pointers(exc.detail)) if isinstance(exc, drf.ValidationError) else []
    body = problem(
        request,
        status=exc.status_code,
        code=code,
        title=title,
        detail=_summary(found) if found else str(exc.detail),
        found=found,
    )
    headers = {}
    if auth_header := getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if isinstance(exc, drf.Throttled):
        body["detail"] += " Send it again after the time in Retry-After."
        headers["Retry-After"] = str(getattr(exc, "wait", None) or _RETRY_AFTER_SECONDS)
    return _response(request, body, headers)


def _pointers(detail: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of a ValidationError's detail as JSON pointers (RFC 6901) and reasons."""
    if isinstance(detail, Mapping):
        for key, inner in detail.items():
            step = "" if key == "non_field_errors" else f"/{errors.pointer_token(str(key))}"
            yield from _pointers(inner, pointer + step)
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            nested = isinstance(inner, Mapping | list)
            yield from _pointers(inner, f"{pointer}/{index}" if nested else pointer)
    else:
        yield pointer, str(detail)


def _summary(found: list[tuple[str, str]]) -> str:
    pointer, reason = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{pointer or 'body'}: {reason}{more}"


def problem(
    request: HttpRequest | None,
    *,
    status: int,
    code: str,
    title: str,
    detail: str,
    found: list[tuple[str, str]] | None = None,
    extras: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The document. ``found`` are JSON pointers and reasons; extras never hide a fixed member."""
    fixed = {
        "type": f"urn:dossier:problem:{code}",
        "title": title,
        "status": status,
        "detail": _printable(detail),
        "code": code,
        "errors": [
            {"pointer": _printable(pointer), "detail": _printable(reason)}
            for pointer, reason in (found or [])[:_MAX_ERRORS]
        ],
        "request_id": getattr(request, "request_id", None),
    }
    return {**fixed, **(extras or {}), **fixed}


def _printable(text: str) -> str:
    """Short, and encodable whatever was sent: a message that echoes a value must not fail on it."""
    printable = text[:_MAX_CHARACTERS].encode("utf-8", "backslashreplace").decode()
    return printable if len(text) <= _MAX_CHARACTERS else f"{printable[: _MAX_CHARACTERS - 1]}…"


def _response(
    request: HttpRequest, body: Mapping[str, Any], headers: Mapping[str, str]
) -> Response:
    if is_for_openai(request.path):
        more = {**headers, **retry_headers(body, headers)}
        return Response(openai_error(body), status=status_of(body), headers=more)
    return Response(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)


# --- What fails outside a DRF view: urls.py names these ---


def handler400(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if isinstance(exception, DisallowedHost):
        # For people too: Django's page would not say which of their settings it is.
        detail = "The Host header names none of ALLOWED_HOSTS."
        return plain_refusal(request, 400, "invalid_request", "The request is not valid", detail)
    if not _for_a_program(request):
        return defaults.bad_request(request, exception)
    if isinstance(exception, RequestDataTooBig):
        return plain_refusal(request, 413, "payload_too_large", "The payload is too large")
    return plain_refusal(request, 400, "invalid_request", "The request is not valid")


def handler403(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not _for_a_program(request):
        return defaults.permission_denied(request, exception)
    return plain_refusal(request, 403, "permission_denied", "Permission denied")


def handler404(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not _for_a_program(request):
        return defaults.page_not_found(request, exception)
    return plain_refusal(request, 404, "not_found", "Not found")


def handler500(request: HttpRequest) -> HttpResponseBase:
    # Django has logged the traceback; the answer says nothing about the inside.
    error = sys.exception()
    if isinstance(error, Exception) and _will_pass(error):
        return _busy(request)
    if not _for_a_program(request):
        return defaults.server_error(request)
    return plain_refusal(request, 500, "internal_error", "Internal error")


def _busy(request: HttpRequest) -> HttpResponse:
    """For people, without a look at the database: who they are is not known now."""
    error = errors.DatabaseBusy
    if _for_a_program(request):
        response = plain_refusal(request, 503, error.code, error.title, ANSWERS[error][1])
    else:
        response = HttpResponse(render_to_string("503.html"), status=503)
    response.headers["Retry-After"] = str(_RETRY_AFTER_SECONDS)
    return response


def _for_a_program(request: HttpRequest) -> bool:
    path = f"{request.path}/"
    return path.startswith("/api/") or is_for_openai(path) or request.path in _FOR_PROGRAMS


def plain_refusal(
    request: HttpRequest, status: int, code: str, title: str, detail: str = ""
) -> HttpResponse:
    body = problem(request, status=status, code=code, title=title, detail=detail or f"{title}.")
    return _response(request, body, {})
