"""The conversation, newest page first, and what of it is fetched when it is asked for."""

from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from sessions_app.console.registry import register
from sessions_app.console.terminal import coloured
from sessions_app.console.transcript import entries_of, whole_text
from sessions_app.console.transcript.entries import ROLES
from sessions_app.console.transcript.parts import MOST_PLAIN, value_html
from sessions_app.jsontext import JSONText
from sessions_app.models import Message, ToolCall
from sessions_app.services.transcript import TranscriptPage, read_transcript
from sessions_app.states import ContentPage

from ..console.durations import run_status
from ..models import Run
from .session import PARTS, OfSession, Part

# A message that is pointed at has so many after it on its page.
_AFTER_TARGET = 15


@register
class TranscriptTab(OfSession):
    route, name = "sessions/<str:session_id>/", "session"
    template_name = "console/session/transcript.html"
    fragment_name = "console/session/turns.html"
    content_page = ContentPage.TRANSCRIPT

    def part(self) -> dict[str, Any]:
        at, before, after = (self.number(name) for name in ("at", "before", "after"))
        if at is not None:
            before = at + _AFTER_TARGET
        role = self.request.GET.get("role", "")
        role = role if role in ROLES else ""
        page = read_transcript(self.agent_session, before=before, after=after, role=role or None)
        # A fragment grows in one direction: the other end is on the page already.
        is_fragment = bool(getattr(self.request, "htmx", False))
        return {
            "entries": entries_of(page, runs=self._runs(page)),
            "at": at,
            "role": role,
            "roles": list(ROLES.items()),
            **self._neighbours(page, role, is_fragment=is_fragment, forwards=after is not None),
        }

    def _neighbours(
        self, page: TranscriptPage, role: str, *, is_fragment: bool, forwards: bool
    ) -> dict[str, Any]:
        """Where earlier and later messages are found; the end that faces the page has none."""
        if not page.messages:
            return {}
        base, more = self.address(self.name), {"role": role} if role else {}
        first, last = page.messages[0].sequence, page.messages[-1].sequence
        has_earlier = page.has_earlier and first > 1 and not (is_fragment and forwards)
        has_later = page.has_later and not (is_fragment and not forwards)
        earlier, later = ({"before": first, **more}, {"after": last, **more})
        return {
            "earlier_url": f"{base}?{urlencode(earlier)}" if has_earlier else "",
            "later_url": f"{base}?{urlencode(later)}" if has_later else "",
        }

    def _runs(self, page: TranscriptPage) -> dict[str, dict[str, Any]]:
        ids = {message.run_id for message in page.messages if message.run_id}
        runs = Run.objects.filter(pk__in=ids).effective()
        runs = runs.defer("input", "output", "error", "metadata")
        return {run.pk: {"run": run, "status": run_status(run, now=self.now)} for run in runs}


class WholeValue(OfSession):
    """One value that the transcript has folded, as HTML for its place."""

    content_page = ContentPage.TRANSCRIPT

    @property
    def tab(self) -> Part:
        return next(part for part in PARTS if part.page == "session")

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        if self.is_gone or not self.may_read:
            raise PermissionDenied
        html = self.html()
        if html is None:
            raise Http404
        self.note_read()
        return HttpResponse(html)

    def html(self) -> Any:
        raise NotImplementedError


@register
class WholeText(WholeValue):
    route = "sessions/<str:session_id>/messages/<int:sequence>/<int:index>/"
    name = "session_text"

    def html(self) -> Any:
        session, sequence = self.agent_session, min(self.kwargs["sequence"], 2**62)
        message = Message.objects.filter(session=session, sequence=sequence).first()
        if message is None or message.removed_at is not None:
            return None
        return whole_text(message.body.value, min(self.kwargs["index"], 2**31))


@register
class WholeCallValue(WholeValue):
    route = "sessions/<str:session_id>/calls/<str:call_id>/<slug:value>/"
    name = "session_call_value"

    def html(self) -> Any:
        if "\x00" in self.kwargs["call_id"] or self.kwargs["value"] not in {"arguments", "result"}:
            return None
        found = ToolCall.objects.filter(session=self.agent_session, pk=self.kwargs["call_id"])
        call = found.first()
        value: JSONText | None = getattr(call, self.kwargs["value"], None)
        if value is None:
            return None
        said = value.value
        if isinstance(said, str):
            return coloured(said[:MOST_PLAIN])
        return (
            value_html(said) if len(value.text) <= MOST_PLAIN else coloured(value.text[:MOST_PLAIN])
        )
