"""What Prometheus reads at /metrics, with `METRICS_TOKEN`; without one this is not loaded.

What happens in a process is counted in files, which all processes of a server share: `serve` makes
their folder. What the database holds is asked for when somebody reads.
"""

import hmac
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from runs_app.services.streams import open_streams
from runs_app.services.vitals import Vitals, take_vitals

from .problems import plain_refusal

_HERE = CollectorRegistry()
_STORED = {("POST", "messages", 201), ("POST", "conversation-items", 200)}
_REPLAYED = "Idempotency-Replayed"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})

REQUESTS = Histogram(
    "dossier_request_seconds",
    "Time that requests took, by the name of their route; of a stream, until it began.",
    ["method", "route", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    registry=_HERE,
)
APPENDS = Counter("dossier_appends", "Appends that stored something.", registry=_HERE)
STREAMS = Gauge(
    "dossier_open_streams",
    "Streams that are open.",
    registry=_HERE,
    multiprocess_mode="livesum",
)


open_streams.tell_number = STREAMS.set


def count(request: HttpRequest, response: HttpResponseBase, *, seconds: float) -> None:
    """Count a request that is answered."""
    match, status = request.resolver_match, response.status_code
    route = match.view_name if match else ""
    _observer(request.method, route, status)(seconds)
    if (request.method, route, status) in _STORED and _REPLAYED not in response.headers:
        APPENDS.inc()


@cache
def _observer(method: str | None, route: str, status: int) -> Callable[[float], None]:
    known = method if method in _METHODS else "other"
    return REQUESTS.labels(known, route or "none", status).observe


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    given = request.META.get("HTTP_AUTHORIZATION", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {settings.METRICS_TOKEN}".encode()):
        refusal = plain_refusal(request, 401, "not_authenticated", "Authentication is needed")
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal
    text = b"".join(generate_latest(registry) for registry in (_counted(), _measured()))
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def _counted() -> CollectorRegistry:
    """By all processes; where they share no folder, by this one."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if folder is None:
        return _HERE
    _forget_dead(Path(folder))
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=folder)
    return registry


def _forget_dead(folder: Path) -> None:
    """What lived in processes that were killed; what they have counted stays."""
    for file in folder.glob("gauge_live*_*.db"):
        number = int(file.stem.rpartition("_")[2])
        if not _is_alive(number):
            with suppress(FileNotFoundError):  # two may ask at once
                mark_process_dead(number, path=str(folder))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def _measured() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_OfTheDatabase())
    return registry


class _OfTheDatabase:
    def collect(self) -> Iterator[Metric]:
        try:
            vitals = take_vitals(now=timezone.now())
        except Error:
            yield _gauge("database_up", "Whether the database answers.", {"": 0})
            return
        yield _gauge("database_up", "Whether the database answers.", {"": 1})
        yield from _of_vitals(vitals)


def _of_vitals(vitals: Vitals) -> Iterator[Metric]:
    lag = vitals.sweep_lag.total_seconds()
    yield _gauge("sweep_lag_seconds", "For how long something has been due.", {"": lag})
    yield _gauge("live_runs", "Runs that have not ended.", vitals.live_runs, "status")
    yield _gauge("attention", "What needs a person, as on the home page.", vitals.attention, "what")
    if vitals.connections is not None:
        yield _gauge("database_connections", "By state.", vitals.connections, "state")
        most = {"": vitals.most_connections}
        yield _gauge("database_connections_most", "What the database server takes.", most)


def _gauge(
    name: str, description: str, values: dict[str, float] | dict[str, int], label: str = ""
) -> Metric:
    family = GaugeMetricFamily(f"dossier_{name}", description, labels=[label] if label else None)
    for key, value in values.items():
        family.add_metric([key] if label else [], value)
    return family
