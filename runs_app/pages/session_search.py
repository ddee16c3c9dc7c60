"""Looking for words in the whole conversation, wherever its pages end."""

from typing import Any
from urllib.parse import urlencode

from sessions_app.console.registry import register
from sessions_app.console.transcript.hits import hits_of
from sessions_app.console.values import visible
from sessions_app.services.mentions import MOST_CHARACTERS, find_mentions

from .session_transcript import OfTranscript


@register
class TranscriptSearch(OfTranscript):
    """Hits newest first; each leads to its message in the transcript."""

    route, name = "sessions/<str:session_id>/search/", "session_search"
    template_name = "console/session/search.html"
    fragment_name = "console/session/hits.html"

    def part(self) -> dict[str, Any]:
        # PostgreSQL cannot even ask for U+0000.
        words = self.request.GET.get("q", "").replace("\x00", "").strip()[:MOST_CHARACTERS]
        shown = {"words": words, "shown_words": visible(words)}
        return self.bar() | shown | (self._found(words) if words else {})

    def _found(self, words: str) -> dict[str, Any]:
        before = self.number("before")
        mentions = find_mentions(
            self.agent_session, words=words, before=before, role=self.role or None
        )
        earlier = {"q": words, "role": self.role, "before": mentions.earlier}
        return {
            "hits": hits_of(mentions, words=words),
            "earlier": mentions.earlier,
            "earlier_url": f"{self.address(self.name)}?{urlencode(earlier)}",
        }
