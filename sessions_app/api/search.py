"""Finding what was said, across sessions."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from sessions_app.api.base import DomainView
from sessions_app.api.query import Text
from sessions_app.api.representations import represent_hit
from sessions_app.api.response import Response
from sessions_app.api.sessions import FILTERS
from sessions_app.api.shapes import HitOut
from sessions_app.services import SessionManager
from sessions_app.services.content_reads import record_read_of_others
from sessions_app.services.hits import Hit, hits_of
from sessions_app.services.reading import SessionFilters

_WORDS = Text(
    name="q",
    required=True,
    min_length=1,
    description="All of it must stand in one text. Words match by their beginning, in any case; "
    "Chinese, Japanese and Korean, emoji and punctuation by their characters, side by side. No "
    "sign is a wildcard.",
)


class SearchView(DomainView):
    parameters = {
        "GET": [_WORDS, *(each for each in FILTERS if each.name not in ("q", "order"))],
    }
    paginated = True

    @extend_schema(
        operation_id="search",
        summary="Find messages and other texts, newest first",
        description="Texts are a message (with the names and arguments of its tool calls), a "
        "session's title and external id, a tool call that was recorded by itself, and the current "
        "working memory; of each, the first 64 K characters. What was removed, superseded or "
        "deleted is not found. The other filters are those of `GET /sessions`.",
        responses=HitOut(many=True),
    )
    def get(self, request: Request) -> Response:
        given = dict(self.params)
        filters = SessionFilters(metadata=given.pop("metadata."), **given)
        search = SessionManager(self.actor).search(filters=filters, now=timezone.now())
        return self.page_of_all(
            search.pages(), lambda found: self._shown(hits_of(found, search.query))
        )

    def _shown(self, hits: list[Hit]) -> list[dict[str, Any]]:
        # What a snippet shows was read, as on the session's own pages.
        for session_id in dict.fromkeys(hit.session_id for hit in hits):
            record_read_of_others(actor=self.actor, session_id=session_id)
        return [represent_hit(hit) for hit in hits]
