"""What the tabs of a session's page have in common: whose it is, its facts, its actions."""

from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from sessions_app.admin.keyset import ID
from sessions_app.admin.session_operations import status_of
from sessions_app.api.representations import run_is_alive
from sessions_app.console.registry import register
from sessions_app.console.titles import READ_CONTENT, title_for
from sessions_app.console.values import dollars, visible
from sessions_app.models import Session
from sessions_app.pages.base import ConsolePage, Crumb, Tab
from sessions_app.services.content_reads import record_read
from sessions_app.states import ContentPage, SessionStatus

Promise = Any  # a lazy translation
_MOST_CHILDREN = 5
_NAMED_BY = ("session_id", "title", "title_is_said")
_MOST_DIGITS = 18  # all that fits a column


class Part(NamedTuple):
    """A tab: the name of its page, its words, who sees it, and the column that counts it."""

    page: str
    label: Promise
    permission: str
    counter: str | None
    outlives: bool = False
    """Whether a deleted session still has it."""


PARTS = (
    Part("session", gettext_lazy("Transcript"), "sessions_app.view_message", "message_count"),
    Part(
        "session_memory",
        gettext_lazy("Working memory"),
        "sessions_app.view_workingmemoryrevision",
        "working_memory_version",
    ),
    Part("session_runs", gettext_lazy("Runs"), "runs_app.view_run", "run_count"),
    Part("session_tools", gettext_lazy("Tools"), "sessions_app.view_toolcall", "tool_call_count"),
    Part(
        "session_events",
        gettext_lazy("Events"),
        "sessions_app.view_sessionevent",
        "event_count",
        outlives=True,
    ),
    Part("session_raw", gettext_lazy("Raw"), "sessions_app.view_message", None),
)


class OfSession(ConsolePage):
    """A tab. ``content_page``: what a read of it is written down as; None: nothing said is on it.

    A subclass gives ``part``: what it shows, asked for only if the account may see that.
    """

    permission = "sessions_app.view_session"
    content_page: ClassVar[ContentPage | None] = None

    def may(self) -> bool:
        user = self.request.user
        # The first tab is the page itself: who may see no messages is told so there.
        return super().may() and (self.name == "session" or user.has_perm(self.tab.permission))

    @property
    def tab(self) -> Part:
        return next(part for part in PARTS if part.page == self.name)

    @cached_property
    def agent_session(self) -> Session:
        session_id = self.kwargs["session_id"]
        found = Session.objects.readable_by(self.actor).select_related("account")
        # PostgreSQL cannot even ask for U+0000.
        session = None if "\x00" in session_id else found.filter(pk=session_id).first()
        if session is None:
            raise Http404
        return session

    @property
    def is_gone(self) -> bool:
        return self.agent_session.status == SessionStatus.DELETED

    @property
    def is_live(self) -> bool:
        """Whether a run is going on in it."""
        session = self.agent_session
        return run_is_alive(session, status_of(session, now=self.now), self.now)

    @cached_property
    def may_read(self) -> bool:
        user = self.request.user
        sees = user.has_perm(self.tab.permission)
        return sees and (self.content_page is None or user.has_perm(READ_CONTENT))

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        """A part that is asked for by itself has no place for an explanation."""
        if self.is_fragment and (self.is_gone or not self.may_read):
            raise PermissionDenied
        return super().get(request, **kwargs)

    def content(self) -> dict[str, Any]:
        session = self.agent_session
        shows = self.may_read and (self.tab.outlives or not self.is_gone)
        context = {
            "agent_session": session,
            "shows": shows,
            "is_gone": self.is_gone,
            "address": self.address(self.name),
        }
        if not self.is_fragment:
            context |= self.frame()
        if shows:
            self.note_read()
            context |= self.part()
        return context

    def note_read(self) -> None:
        if self.content_page is not None:
            record_read(actor=self.actor, session_id=self.agent_session.pk, page=self.content_page)

    def part(self) -> dict[str, Any]:
        """What this tab shows."""
        raise NotImplementedError

    def frame(self) -> dict[str, Any]:
        session = self.agent_session
        admin: Any = self.site.get_model_admin(Session)
        parent = Session.objects.filter(pk=session.parent_session_id)
        children = Session.objects.filter(parent_session=session).order_by("-session_id")
        name = title_for(session, self.request.user)
        return {
            "title": visible(name) or _("Untitled session"),
            "session_name": name,
            "status": status_of(session, now=self.now),
            "is_live": self.is_live,
            "cost": dollars(session.cost_nanousd),
            "operations": admin.page_context(self.request, session)["operations"],
            "parent": parent.only(*_NAMED_BY).first(),
            "children": list(children.only(*_NAMED_BY)[: _MOST_CHILDREN + 1]),
            "most_children": _MOST_CHILDREN,
            "metadata_url": reverse(
                "admin:sessions_app_session_download", args=[session.pk, "metadata"]
            ),
        }

    def address(self, page: str) -> str:
        return reverse(f"admin:{page}", args=[self.kwargs["session_id"]])

    def crumbs(self) -> list[Crumb]:
        return [Crumb(_("Sessions"), reverse("admin:sessions_app_session_changelist"))]

    def tabs(self) -> list[Tab]:
        session, user = self.agent_session, self.request.user
        return [
            Tab(
                part.label,
                self.address(part.page),
                part is self.tab,
                getattr(session, part.counter) if part.counter else None,
            )
            for part in PARTS
            if user.has_perm(part.permission) and (part.outlives or not self.is_gone)
        ]

    def number(self, name: str) -> int | None:
        """A sequence of the query; what is none is left out."""
        return number_in(self.request.GET.get(name, ""))


def number_in(given: str) -> int | None:
    is_number = given.isascii() and given.isdigit() and len(given) <= _MOST_DIGITS
    return int(given) if is_number else None


@register
class SessionRecord(ConsolePage):
    """Where the admin would show a form: the session's page."""

    route, name = "sessions_app/session/<str:session_id>/change/", "session_record"
    permission = "sessions_app.view_session"

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        query = request.META.get("QUERY_STRING", "")
        session_id = unquote(kwargs["session_id"])
        if not ID.fullmatch(session_id):
            raise Http404
        url = reverse("admin:session", args=[session_id])
        return HttpResponseRedirect(f"{url}?{query}" if query else url)

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        """Nothing that is stored is edited by a form."""
        raise PermissionDenied
