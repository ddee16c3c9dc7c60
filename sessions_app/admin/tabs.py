"""Tabs of a list: each a filter or two, by what people look for."""

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.views.main import PAGE_VAR
from django.http import HttpRequest

from .keyset import NEWER, OLDER

Promise = Any  # a lazy translation
Tabs = Sequence[tuple[Promise, dict[str, str]]]


def tabs(request: HttpRequest, offered: Tabs) -> list[dict[str, Any]]:
    """As console/tabs.html shows them; each keeps the search and the other filters."""
    names = {name for _label, query in offered for name in query}
    chosen = {name: request.GET[name] for name in names if request.GET.get(name)}
    return [
        {"label": label, "url": _with(request, names, query), "is_current": chosen == query}
        for label, query in offered
    ]


def _with(request: HttpRequest, names: set[str], wanted: dict[str, str]) -> str:
    query = request.GET.copy()
    for name in (PAGE_VAR, OLDER, NEWER, *names):
        query.pop(name, None)
    query.update(wanted)
    return f"?{query.urlencode()}"
