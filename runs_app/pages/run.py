"""The run inspector: one run, what it did when, and what came of it."""

from functools import cached_property
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from sessions_app.console.registry import register
from sessions_app.console.titles import READ_CONTENT
from sessions_app.errors import NotFound
from sessions_app.pages.base import ConsolePage, Crumb
from sessions_app.services.content_reads import record_read
from sessions_app.states import ContentPage

from ..admin.runs import Cancel
from ..console.durations import is_live
from ..models import Run
from ..services import RunManager
from .inspector import Inspector
from .parts import Part, changed

# htmx polls no more when it gets this.
STOP_POLLING = 286
_PARTS = (
    "lead",
    "actions",
    "facts",
    "fault",
    "timeline",
    "content",
    "messages",
    "memory",
    "events",
)


@register
class RunPage(ConsolePage):
    """In the place of the admin's form, so that every link to a run leads here."""

    route, name = "runs_app/run/<str:run_id>/change/", "run"
    permission = "runs_app.view_run"
    template_name = "console/run.html"
    run: Run

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        try:
            self.run = self.find(unquote(kwargs["run_id"]))
        except NotFound:
            messages.warning(request, _("There is no such run, or its session was deleted."))
            return HttpResponseRedirect(reverse("admin:runs_app_run_changelist"))
        if self.may_read:
            record_read(actor=self.actor, session_id=self.run.session_id, page=ContentPage.RUNS)
        return self.refresh() if getattr(request, "htmx", False) else self.render()

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        """Nothing that is stored is edited by a form."""
        raise PermissionDenied

    def find(self, run_id: str) -> Run:
        # PostgreSQL cannot even ask for U+0000.
        if "\x00" in run_id:
            raise NotFound("There is no such run.")
        return RunManager(self.actor).get(run_id=run_id)

    def refresh(self) -> HttpResponse:
        """What has changed since the browser was told last; nothing more once the run has ended."""
        parts = changed(self.parts(), self.request)
        if self.is_live and not parts:
            return HttpResponse(status=204)
        status = 200 if self.is_live else STOP_POLLING
        context = {"parts": parts, "is_live": self.is_live}
        return TemplateResponse(self.request, "console/run/changed.html", context, status=status)

    def content(self) -> dict[str, Any]:
        return {
            "title": _("Run"),
            "run": self.run,
            "parts": self.parts(),
            "is_live": self.is_live,
            "may_read": self.may_read,
        }

    def crumbs(self) -> list[Crumb]:
        return [Crumb(_("Runs"), reverse("admin:runs_app_run_changelist"))]

    def parts(self) -> dict[str, Part]:
        may = self.rights()
        inspector = Inspector(
            self.run, may_read=self.may_read, may_settle=may["settle"], now=self.now
        )
        context = {"inspector": inspector, "run": self.run, "may": may}
        return {name: Part(name, self._part(name, context)) for name in _PARTS}

    def _part(self, name: str, context: dict[str, Any]) -> SafeString:
        return render_to_string(f"console/run/{name}.html", context, request=self.request)

    def rights(self) -> dict[str, bool]:
        may = self.request.user.has_perm
        return {
            "read": self.may_read,
            "cancel": may("runs_app.change_run") and Cancel().fate(self.run, now=self.now).changes,
            "settle": may("sessions_app.view_toolcall") and may("sessions_app.change_toolcall"),
            "see_session": may("sessions_app.view_session"),
            "see_calls": may("sessions_app.view_toolcall"),
            "see_messages": may("sessions_app.view_message"),
            "see_memory": may("sessions_app.view_workingmemoryrevision"),
            "see_events": may("sessions_app.view_sessionevent"),
        }

    @cached_property
    def may_read(self) -> bool:
        return self.request.user.has_perm(READ_CONTENT)

    @property
    def is_live(self) -> bool:
        return is_live(self.run, now=self.now)
