"""What a session's page gets by itself while a run goes on: what is new, and what has changed."""

from collections.abc import Collection
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from sessions_app.console.registry import register
from sessions_app.console.transcript import entries_of
from sessions_app.services.transcript import Seen, TranscriptNews, TranscriptPage, read_news

from .session import number_in
from .session_transcript import OfTranscript


@register
class TranscriptNewsPart(OfTranscript):
    """Asked for by a page that shows messages ``first`` to ``last`` at the version ``since``.

    ``run`` is the one whose status it marks. 204 while there is nothing new. Else the new turns, in
    the place of what asks, and out of band the turns, facts and counts that are others now; with
    them what asks for more, but only while the run goes on or the page lacks something. Of many
    changes a part is brought: ``since`` is then the version and the sequence up to which they were,
    as ``12.7``.
    """

    route, name = "sessions/<str:session_id>/news/", "session_news"
    template_name = "console/session/news.html"

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        if not self.is_gone and not self.may_read:
            raise PermissionDenied
        if self.is_live and not self._has_news():
            return HttpResponse(status=204)
        return self.render()

    def _has_news(self) -> bool:
        session = self.agent_session
        return self._since != Seen(session.version) or session.last_sequence > self._at("last")

    def _at(self, name: str) -> int:
        return self.number(name) or 0

    @property
    def _since(self) -> Seen:
        version, _, sequence = self.request.GET.get("since", "").partition(".")
        seen, at = Seen(number_in(version) or 0), number_in(sequence)
        return seen if at is None else seen._replace(sequence=at)

    def part(self) -> dict[str, Any]:
        last, first = self._at("last"), self._at("first")
        news = read_news(
            self.agent_session, first=first, last=last, since=self._since, role=self.role or None
        )
        marked = self.request.GET.get("run", "").replace("\x00", "")
        runs = self.runs(news.page, marked)
        entries = entries_of(news.page, runs=runs)
        return {
            "entries": [each for each in entries if each.message.sequence > last],
            "changed": [each for each in entries if each.message.sequence in news.changed],
            "marked": runs.get(marked),
            **self._goes_on(news, runs),
        }

    def _goes_on(self, news: TranscriptNews, runs: Collection[str]) -> dict[str, Any]:
        if not (self.is_live or news.seen or news.page.has_later):
            return {"has_ended": True}
        since = news.seen and f"{news.seen.version}.{news.seen.sequence}"
        first, last = self._at("first"), self._reached(news.page, self._at("last"))
        return self.following(first, last, runs, since)

    def _reached(self, page: TranscriptPage, last: int) -> int:
        """All that the session had when it was read, unless a page was too small for it."""
        shown = max([last, *(message.sequence for message in page.messages)])
        return shown if page.has_later else max(shown, self.agent_session.last_sequence)
