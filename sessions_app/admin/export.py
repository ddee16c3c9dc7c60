"""The sessions that a list's filters find, as a table for a spreadsheet."""

import csv
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from ..console.titles import title_for
from ..models import Session
from .keyset import NEWER, OLDER
from .matching import MatchingAdmin
from .session_operations import status_of

PERMISSION = "sessions_app.export_session"
MOST_EXPORTED = 10_000
_AT_ONCE = 500
# What a spreadsheet takes for the beginning of a formula; the wide ones in some languages.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_COUNTS = (
    *("message_count", "tool_call_count", "open_tool_call_count", "run_count", "failed_run_count"),
    *("input_tokens", "output_tokens"),
)
_TIMES = ("created_at", "last_activity_at", "expires_at", "closed_at", "expired_at")
_TEXTS = ("external_id", "agent_id", "user_id")
COLUMNS = ("session_id", "status", "title", *_TEXTS, "account", *_COUNTS, *_TIMES)
"""As the API names them. Of what sessions contain there is nothing; the title: see `title_for`."""

Cell = str | int


class ExportingAdmin(MatchingAdmin):
    """Adds a download of all that the list's filters find, the newest first."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.export)
        return [path("export/", view, name=self._url_name("export")), *super().get_urls()]

    def may_export(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request) and request.user.has_perm(PERMISSION)

    def export(self, request: HttpRequest) -> StreamingHttpResponse:
        """UTF-8 with a mark, without which Excel shows no Chinese. Read in pages: whoever takes it
        slowly holds no cursor. The file's name says so where there were more."""
        if not self.may_export(request):
            raise PermissionDenied
        found = self.matching(request).values_list("pk", flat=True)
        keys = list(found[: MOST_EXPORTED + 1])
        more = f"-newest-{MOST_EXPORTED}" if len(keys) > MOST_EXPORTED else ""
        rows = _rows(keys[:MOST_EXPORTED], request.user, now=timezone.now())
        return StreamingHttpResponse(
            _lines(rows),
            content_type="text/csv; charset=utf-8",
            headers={
                "Content-Disposition": f'attachment; filename="sessions{more}.csv"',
                "X-Content-Type-Options": "nosniff",
            },
        )

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        shown = {"export_url": self.export_url(request) if self.may_export(request) else ""}
        return super().changelist_view(request, shown | (extra_context or {}))

    def export_url(self, request: HttpRequest) -> str:
        asked = request.GET.copy()
        for place in (OLDER, NEWER):
            asked.pop(place, None)
        url = reverse(f"admin:{self._url_name('export')}")
        return f"{url}?{asked.urlencode()}" if asked else url


def _rows(keys: list[str], viewer: Any, *, now: datetime) -> Iterator[list[Cell]]:
    for begin in range(0, len(keys), _AT_ONCE):
        found = Session.objects.filter(pk__in=keys[begin : begin + _AT_ONCE])
        light = found.select_related("account").defer("metadata", "search_text")
        for session in light.order_by("-pk"):
            yield _row(session, viewer, now=now)


def _row(session: Session, viewer: Any, *, now: datetime) -> list[Cell]:
    return [
        session.pk,
        str(status_of(session, now=now)),
        escaped(title_for(session, viewer)),
        *(escaped(getattr(session, name)) for name in _TEXTS),
        escaped(session.account.get_username()),
        *(getattr(session, name) for name in _COUNTS),
        *(_moment(getattr(session, name)) for name in _TIMES),
    ]


def _moment(value: datetime | None) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if value else ""


def escaped(text: str | None) -> str:
    """Text that no spreadsheet takes for a formula (report SEC-04): marked as text by a quote."""
    given = text or ""
    return f"'{given}" if given.lstrip(" ").startswith(_FORMULA) else given


class _Passing:
    """What `csv` writes to: it gives each line back."""

    def write(self, line: str) -> str:
        return line


def _lines(rows: Iterable[Iterable[Cell]]) -> Iterator[bytes]:
    # All text in quotes: one that parts cells by semicolons must not find two in a title.
    writer = csv.writer(_Passing(), quoting=csv.QUOTE_NONNUMERIC)
    yield "\ufeff".encode()
    for row in chain([COLUMNS], rows):
        yield writer.writerow(row).encode()
