"""Working memory, runs, tools and events of one session."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from sessions_app.console.memory_view import revisions_of, shown_memory
from sessions_app.console.registry import register
from sessions_app.console.transcript.cards import card_of
from sessions_app.models import SessionEvent, ToolCall, WorkingMemoryRevision
from sessions_app.services.transcript import with_small_values
from sessions_app.states import ContentPage

from ..console.durations import run_status, took
from ..models import Run
from .session import OfSession


class _Table(OfSession):
    """Rows newest first, page by page, by the key that orders them."""

    key: ClassVar[str]
    page_size = 50

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        """204 to a page that follows and has it all; else all, of which it takes its parts."""
        follows = bool(getattr(request, "htmx", False))
        if follows and self.is_live and self.number("since") == self.agent_session.version:
            return HttpResponse(status=204)
        return super().get(request, **kwargs)

    def rows(self) -> QuerySet[Any]:
        raise NotImplementedError

    def shown(self, rows: Sequence[Any], beyond: Sequence[Any]) -> dict[str, Any]:
        """What the template has of the rows; ``beyond`` is the next one, if there is any."""
        return {"rows": rows}

    def part(self) -> dict[str, Any]:
        rows = self.rows().order_by(f"-{self.key}")
        if before := self._before():
            rows = rows.filter(**{f"{self.key}__lt": before})
        found = list(rows[: self.page_size + 1])
        page, beyond = found[: self.page_size], found[self.page_size :]
        base = self.address(self.name)
        older = f"{base}?before={getattr(page[-1], self.key)}" if beyond else ""
        neighbours = {"newer_url": base if before else "", "older_url": older}
        return self.shown(page, beyond) | neighbours | {"follows": self.is_live and not before}

    def _before(self) -> str | int | None:
        given = self.request.GET.get("before", "")
        if self.key in {"sequence", "version"}:
            return self.number("before")
        return given if given.isascii() and given.replace("_", "").isalnum() else None


@register
class MemoryTab(_Table):
    route, name = "sessions/<str:session_id>/memory/", "session_memory"
    template_name = "console/session/memory.html"
    content_page = ContentPage.MEMORY
    key, page_size = "version", 10

    def rows(self) -> QuerySet[Any]:
        return WorkingMemoryRevision.objects.filter(session=self.agent_session)

    def shown(self, rows: Sequence[Any], beyond: Sequence[Any]) -> dict[str, Any]:
        """Each revision beside the one before it; the newest of all is the memory itself."""
        current = rows and rows[0].version == self.agent_session.working_memory_version
        return {
            "memory": shown_memory(rows[0].memory.value) if current else None,
            "revisions": revisions_of([*rows, *beyond], count=len(rows)),
        }


@register
class RunsTab(_Table):
    route, name = "sessions/<str:session_id>/runs/", "session_runs"
    template_name = "console/session/runs.html"
    key = "run_id"

    def rows(self) -> QuerySet[Any]:
        return Run.objects.filter(session=self.agent_session).effective().light()

    def shown(self, rows: Sequence[Any], beyond: Sequence[Any]) -> dict[str, Any]:
        return {"rows": [self._row(run) for run in rows]}

    def _row(self, run: Run) -> dict[str, Any]:
        return {
            "run": run,
            "status": run_status(run, now=self.now),
            "took": took(run, now=self.now),
            "tokens": run.input_tokens + run.output_tokens,
        }


@register
class ToolsTab(_Table):
    route, name = "sessions/<str:session_id>/tools/", "session_tools"
    template_name = "console/session/tools.html"
    content_page = ContentPage.TOOLS
    key = "id"

    def rows(self) -> QuerySet[Any]:
        return with_small_values(ToolCall.objects.filter(session=self.agent_session))

    def shown(self, rows: Sequence[Any], beyond: Sequence[Any]) -> dict[str, Any]:
        return {"rows": [card_of(call) for call in rows]}


@register
class EventsTab(_Table):
    route, name = "sessions/<str:session_id>/events/", "session_events"
    template_name = "console/session/events.html"
    key = "sequence"

    def rows(self) -> QuerySet[Any]:
        return SessionEvent.objects.filter(session=self.agent_session)
