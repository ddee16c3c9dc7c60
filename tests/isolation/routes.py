"""Every route and method of the API, taken from the router: a new one cannot go unnoticed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

# What stands before a template.
_PREFIXES = {"api/v1/": "/", "v1/": "/v1/"}
# What needs no account. A new one must be named here, and so be thought about.
PUBLIC = frozenset({"v1-openapi", "v1-docs"})
_METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Route:
    """One method of one path; ``template`` is what `APIClient` takes, as ``/runs/{run_id}``."""

    name: str
    method: str
    template: str
    is_list: bool

    @property
    def writes(self) -> bool:
        return self.method not in ("GET", "HEAD")

    @property
    def names_something(self) -> bool:
        return "{" in self.template

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


def guarded_routes() -> list[Route]:
    """All that needs a token."""
    return [
        route
        for start, pattern in _patterns()
        if pattern.name not in PUBLIC
        for route in _of(start, pattern)
    ]


def public_paths() -> list[str]:
    return [f"{start}{pattern.pattern}" for start, pattern in _patterns() if pattern.name in PUBLIC]


def _patterns() -> Iterator[tuple[str, URLPattern]]:
    for resolver in get_resolver().url_patterns:
        start = _PREFIXES.get(str(resolver.pattern))
        if isinstance(resolver, URLResolver) and start is not None:
            for pattern in resolver.url_patterns:
                assert isinstance(pattern, URLPattern), f"{pattern} holds routes that are not seen"
                yield start, pattern


def _of(start: str, pattern: URLPattern) -> Iterator[Route]:
    view: Any = getattr(pattern.callback, "view_class", None)
    assert view is not None, f"{pattern.name}: a function's methods cannot be told; PUBLIC?"
    for method in _METHODS:
        if hasattr(view, method):
            for asked in ("GET", "HEAD") if method == "get" else (method.upper(),):
                yield Route(
                    str(pattern.name), asked, start + _template(pattern), _is_list(view, asked)
                )


def _template(pattern: URLPattern) -> str:
    return re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern))


def _is_list(view: Any, method: str) -> bool:
    return method == "GET" and bool(view.paginated or "limit" in _parameters(view))


def _parameters(view: Any) -> set[str]:
    return {parameter.name for parameter in view.parameters.get("GET", ())}
