"""The list of sessions; the page of one is `runs_app.pages.session`."""

from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.admin import display
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from ..actors import EVERY_ACCOUNT
from ..console import values
from ..console.titles import READ_CONTENT, title_for
from ..folding import fold
from ..models import Session
from ..services.finding import are_many, mentioned_lately
from ..sqlite_search import MOST_MATCHES
from ..states import SessionStatus
from ..terms import Query
from . import base, session_filters
from .base import Shown
from .export import ExportingAdmin
from .filters import AgentFilter
from .keyset import ID, KeysetListing
from .session_operations import status_of

# Of an id: its time to the millisecond, and a little more.
_SHORT = len("sess_") + 12
ANY_TITLE, NOWHERE = Q(), Q(pk__in=())


class SessionAdmin(ExportingAdmin):
    """Registered in `runs_app.admin`, which adds what a session's runs say of it, and the
    operations, which end its runs."""

    listing = KeysetListing
    heavy = ("metadata", "search_text")
    documents = {"metadata": lambda session: session.metadata}
    ids = ("session_id",)
    search_help_text = _(
        "Session id or user from the beginning; title or external id anywhere; words of messages "
        "and working memory from the beginning, for who may read them"
    )
    ordering = ("-session_id",)

    list_display: Any = (
        "name",
        "status_now",
        "agent_cell",
        "user_cell",
        "messages_cell",
        "tokens",
        "activity",
        "expiry",
    )
    list_filter: ClassVar[Any] = (
        session_filters.StatusFilter,
        AgentFilter,
        session_filters.UserFilter,
        session_filters.AccountFilter,
        session_filters.ActivityFilter,
        session_filters.ExpiryFilter,
        session_filters.FailedRunFilter,
        session_filters.OpenToolCallsFilter,
        session_filters.MetadataFilter,
    )

    agent_cell = base.cell_field("agent_id", _("agent"))
    user_cell = base.cell_field("user_id", _("user"))
    activity = base.ago_field("last_activity_at", _("last activity"))

    @display(description=_("session"))
    def name(self, obj: Session) -> Shown:
        short = f"{obj.pk[:_SHORT]}…" if len(obj.pk) > _SHORT else obj.pk
        shown = format_html('<span class="id" title="{}">{}</span>', obj.pk, short)
        return format_html("{}{}", self.caption(obj, obj.viewer), shown)  # type: ignore[attr-defined]

    @display(description=_("status"))
    def status_now(self, obj: Session) -> Shown:
        status = status_of(obj, now=timezone.now())
        return values.badge(status, status.label)

    @display(description=_("messages"))
    def messages_cell(self, obj: Session) -> Shown:
        open_calls = obj.open_tool_call_count
        said = ngettext("%(count)s open call", "%(count)s open calls", open_calls)
        shown = format_html('<span class="number">{}</span>', values.number(obj.message_count))
        return format_html("{}{}", shown, trouble(open_calls, said))

    @display(description=_("tokens"))
    def tokens(self, obj: Session) -> Shown:
        total = values.number(obj.input_tokens + obj.output_tokens)
        return format_html('<span class="number">{}</span>', total)

    @display(description=_("expires"))
    def expiry(self, obj: Session) -> Shown:
        """Ahead of an active session; behind one that has expired, at its deadline or before."""
        status = status_of(obj, now=timezone.now())
        if status == SessionStatus.EXPIRED:
            return values.ago(obj.expired_at or obj.expires_at)
        return values.ago(obj.expires_at if status == SessionStatus.ACTIVE else None)

    def caption(self, obj: Session, viewer: Any) -> Shown:
        title = title_for(obj, viewer)
        return values.cell(title) if title else ""

    def seeks(self, term: str) -> bool:
        """Whether it is the beginning of an id: the index of keys finds it."""
        given = term.strip().lower()
        return given.startswith("sess_") and bool(ID.fullmatch(given))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        term = search_term.strip()
        if not term or self.seeks(term):
            return super().get_search_results(request, queryset, search_term)
        if request.user.has_perm(READ_CONTENT):
            return self.search(queryset, term, texts=self._in_texts(request, term)), False
        return self.search(queryset, term, titles=Q(title_is_said=False)), False

    def search(
        self, queryset: Any, term: str, *, titles: Q = ANY_TITLE, texts: Q = NOWHERE
    ) -> QuerySet:
        """By the beginning of an id, else of a user or an external id, or by a piece of the folded
        title or external id where the ``titles`` may be known; or by what stands in ``texts``."""
        if self.seeks(term):
            return queryset.with_id_from(term.lower())
        # PostgreSQL cannot even ask for U+0000, and no stored value holds it.
        if "\x00" in term:
            return queryset.none()
        folded = fold(term)
        named = Q(titles, search_text__contains=folded) | Q(session_id__startswith=folded)
        names = base.beginning_with(("user_id", "external_id"), term)
        return queryset.filter(named | names | texts)

    def _in_texts(self, request: HttpRequest, term: str) -> Q:
        query = Query.of(term.replace("\x00", ""))
        if not query:
            return NOWHERE
        if are_many(query, EVERY_ACCOUNT):
            said = _("More texts than %(most)s have these words: the newest were looked at.")
            messages.info(request, said % {"most": values.number(MOST_MATCHES)})
        return mentioned_lately(query)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """What has happened to a session stands in its events."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        address = reverse("admin:sessions_app_sessionevent_changelist")
        return HttpResponseRedirect(f"{address}?{urlencode({'session': unquote(object_id)})}")


def trouble(count: int, said: str) -> Shown:
    """How many of what is counted are trouble: a line of its own."""
    text = said % {"count": values.number(count)}
    return format_html('<div class="trouble">{}</div>', text) if count else ""
