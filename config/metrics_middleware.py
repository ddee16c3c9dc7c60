import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase


class MetricsMiddleware:
    """Count and time requests, and answer /metrics: like probes, it is asked for by address.

    What counts is loaded where requests are served, and by then `serve` has named the folder:
    earlier than that some check of Django's may look at this class.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        from . import metrics

        self.get_response = get_response
        self.count, self.metrics = metrics.count, metrics.metrics

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info == "/metrics":
            return self.metrics(request)
        began = time.perf_counter()
        response = self.get_response(request)
        self.count(request, response, seconds=time.perf_counter() - began)
        return response
