"""The conversation, newest page first, and what of it is fetched when it is asked for."""

import json
from collections.abc import Collection
from functools import cached_property
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


class OfTranscript(OfSession):
    """The conversation, or a piece of it; perhaps what one role has said."""

    content_page = ContentPage.TRANSCRIPT

    @property
    def tab(self) -> Part:
        return PARTS[0]

    @cached_property
    def role(self) -> str:
        given = self.request.GET.get("role", "")
        return given if given in ROLES else ""

    def bar(self) -> dict[str, Any]:
        """What stands above the messages."""
        return {
            "role": self.role,
            "roles": list(ROLES.items()),
            "transcript_url": self.address("session"),
            "search_url": self.address("session_search"),
        }

    def runs(self, page: TranscriptPage, *more: str) -> dict[str, dict[str, Any]]:
        """The runs that its messages belong to, and others of the session by their ids."""
        ids = {*more, *(message.run_id for message in page.messages if message.run_id)}
        runs = Run.objects.filter(session=self.agent_session, pk__in=ids).effective().light()
        return {run.pk: {"run": run, "status": run_status(run, now=self.now)} for run in runs}

    def following(
        self, first: int, last: int, runs: Collection[str], since: int | str | None = None
    ) -> dict[str, Any]:
        """What the page sends to learn what is new.

        ``runs`` are those whose status is marked on it; ``since`` is how far it has come, if not as
        far as the session.
        """
        session = self.agent_session
        since = session.version if since is None else since
        shown = {"first": first, "last": last, "since": since, "role": self.role}
        run = {"run": session.active_run_id} if session.active_run_id in runs else {}
        return {"news_url": self.address("session_news"), "asks": json.dumps(shown | run)}


@register
class TranscriptTab(OfTranscript):
    route, name = "sessions/<str:session_id>/", "session"
    template_name = "console/session/transcript.html"
    fragment_name = "console/session/turns.html"

    def part(self) -> dict[str, Any]:
        page, at = self._page(), self.number("at")
        runs = self.runs(page)
        shown = {"entries": entries_of(page, runs=runs), "at": at, **self.bar()}
        return shown | self._neighbours(page) | self._follow(page, runs)

    def _page(self) -> TranscriptPage:
        at, before, after = (self.number(name) for name in ("at", "before", "after"))
        if at is not None:
            before = at + _AFTER_TARGET
        role = self.role or None
        return read_transcript(self.agent_session, before=before, after=after, role=role)

    @property
    def _grows(self) -> tuple[bool, bool]:
        """Whether what is shown has another end upwards and downwards: a fragment grows in one
        direction, and its other end is on the page already."""
        if not self.is_fragment:
            return True, True
        forwards = self.number("after") is not None
        return not forwards, forwards

    def _neighbours(self, page: TranscriptPage) -> dict[str, Any]:
        """Where earlier and later messages are found; the end that faces the page has none."""
        if not page.messages:
            return {}
        upwards, downwards = self._grows
        base, more = self.address(self.name), {"role": self.role} if self.role else {}
        first, last = page.messages[0].sequence, page.messages[-1].sequence
        earlier, later = ({"before": first, **more}, {"after": last, **more})
        has_earlier = page.has_earlier and first > 1 and upwards
        return {
            "earlier_url": f"{base}?{urlencode(earlier)}" if has_earlier else "",
            "later_url": f"{base}?{urlencode(later)}" if page.has_later and downwards else "",
        }

    def _follow(self, page: TranscriptPage, runs: Collection[str]) -> dict[str, Any]:
        """Only where the newest message is: what comes would else stand after a gap."""
        if page.has_later or not self._grows[1] or not self.is_live:
            return {}
        sequences = [message.sequence for message in page.messages]
        last = max([self.agent_session.last_sequence, *sequences])
        return self.following(min(sequences, default=1), last, runs)


class WholeValue(OfTranscript):
    """One value that the transcript has folded, as HTML for its place."""

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
