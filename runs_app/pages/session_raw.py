"""The session as the API gives it, and all its messages as a file."""

import json
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from sessions_app.api.representations import represent_session
from sessions_app.console.markdown import highlighted
from sessions_app.console.registry import register
from sessions_app.console.values import visible
from sessions_app.jsontext import JSONText
from sessions_app.models import Message
from sessions_app.services import SessionManager
from sessions_app.states import ContentPage

from .session import PARTS, OfSession, Part

_SHOWN_CHARACTERS = 64 * 1024


@register
class RawTab(OfSession):
    route, name = "sessions/<str:session_id>/raw/", "session_raw"
    template_name = "console/session/raw.html"
    content_page = ContentPage.RAW

    def part(self) -> dict[str, Any]:
        text = _document(self)
        return {
            "document": highlighted(visible(text[:_SHOWN_CHARACTERS]), "json"),
            "rest": max(0, len(text) - _SHOWN_CHARACTERS),
            "session_file": f"{self.address(self.name)}session/",
            "messages_file": f"{self.address(self.name)}messages/",
        }


def _document(page: OfSession) -> str:
    session = page.agent_session
    manager = SessionManager(page.actor)
    memory = manager.memory_of(session=session)
    calls = manager.open_tool_calls(session=session)
    shape = represent_session(session, memory, page.now, open_tool_calls=calls)
    return json.dumps(_plain(shape), ensure_ascii=False, indent=2, default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, JSONText):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


@register
class RawFile(OfSession):
    """`session`: a JSON document; `messages`: one message a line, as each is stored."""

    route, name = "sessions/<str:session_id>/raw/<slug:file>/", "session_raw_file"
    content_page = ContentPage.RAW

    @property
    def tab(self) -> Part:
        return PARTS[-1]

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        if self.is_gone or not self.may_read:
            raise PermissionDenied
        self.note_read()
        name = f"{self.agent_session.pk}-{kwargs['file']}"
        if kwargs["file"] not in {"session", "messages"}:
            raise Http404
        if kwargs["file"] == "session":
            return _file(HttpResponse(_document(self).encode(), content_type=_JSON), f"{name}.json")
        lines = _lines(self.agent_session.pk)
        return _file(StreamingHttpResponse(lines, content_type=_LINES), f"{name}.jsonl")


_JSON, _LINES = "application/json", "application/x-ndjson"


def _file(response: Any, name: str) -> Any:
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _lines(session_id: str) -> Iterator[bytes]:
    """In pages by sequence: a session may be larger than memory."""
    after = 0
    while True:
        found = Message.objects.filter(session=session_id, removed_at=None, sequence__gt=after)
        rows = list(found.order_by("sequence").values_list("sequence", "body")[:20])
        for sequence, body in rows:
            yield f'{{"sequence":{sequence},"message":{body.text}}}\n'.encode()
            after = sequence
        if not rows:
            return
