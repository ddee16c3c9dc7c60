"""Probes for load balancers and process managers; they need no account and say no secrets."""

from collections.abc import Callable

from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """The process can serve: its database answers and is as new as the code."""
    try:
        unapplied = _unapplied_migrations()
    except Error:
        return _not_ready(database="unreachable")
    if unapplied:
        return _not_ready(database="ok", unapplied_migrations=unapplied)
    return JsonResponse({"status": "ok", "database": "ok", "unapplied_migrations": 0})


def _unapplied_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _not_ready(**facts: str | int) -> JsonResponse:
    return JsonResponse({"status": "unavailable", **facts}, status=503, headers={"Retry-After": 1})


class ProbeMiddleware:
    """Answer probes before anything looks at the Host header: they ask by address, not by name."""

    views = {
        f"{prefix}/{view.__name__}": view
        for prefix in ("", "/api/v1")
        for view in (healthz, readyz)
    }

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.views.get(request.path_info, self.get_response)(request)
