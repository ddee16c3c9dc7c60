"""Following a session: server-sent events of all that happens to it."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

from django.contrib.auth.models import User
from django.http import StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import APIException, PermissionDenied, Throttled
from rest_framework.request import Request

from runs_app.api.representations import represent_run
from runs_app.models import Run
from runs_app.services.following import MOST_BYTES, Told, tell
from runs_app.services.streams import Ended, FullError, Page, open_streams
from sessions_app.actors import Actor
from sessions_app.api.base import DomainView
from sessions_app.api.representations import (
    represent_event,
    represent_message,
    represent_revision,
    represent_session,
    represent_tool_call,
)
from sessions_app.api.response import dumps
from sessions_app.errors import DossierError, InvalidRequest
from sessions_app.models import Session, ToolCall, WorkingMemoryRevision
from sessions_app.services import SessionManager
from sessions_app.services.changes import (
    MEMORY,
    Place,
    Reached,
    reached_after,
)
from sessions_app.states import Subject

CONTENT_TYPE = "text/event-stream"
RETRY_AFTER_SECONDS = 5

_ID = re.compile(r"(\d{1,18})(?:\.(\d{1,18}))?", re.ASCII)
_END_OF_VERSION = 10**18

_NAMES = {
    Subject.SESSION: "session",
    Subject.RUN: "run",
    Subject.TOOL_CALL: "tool_call",
    Subject.CONTENT: "message",
    MEMORY: "working_memory",
}

_LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID",
    {"type": "string", "pattern": r"^\d+(\.\d+)?$"},
    OpenApiParameter.HEADER,
    description="Go on after this event, or, given a version alone, after all of that version.",
)
# One of them: OpenAPI 3.1 has no form for a sequence of events.
_EVENT = {
    "type": "object",
    "description": "One event of the stream.",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string", "description": "`version.index`; `end` has none."},
        "event": {"type": "string", "enum": [*_NAMES.values(), "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
_DESCRIPTION = """\
Server-sent events: every change of the session in order of its version, the earlier ones first, \
unless `Last-Event-ID` says where to go on; then the new ones as they come. The `id` of an event \
is `version.index`. Its name is the kind of what has changed, `session`, `message`, `tool_call`, \
`run` or `working_memory`, and `data` is an object with `version`, `index`, the lifecycle `event` \
or null, and under the kind's name the changed object as it is now, or null if it is gone; beside \
a new message, `tool_calls` are those that it made or answered, without arguments and result. An \
event `end` is the last one, and `data.reason` says why. More streams than the server holds: 429."""


class EventStream(StreamingHttpResponse):
    """An answer that goes on until its session ends: no thread of the server's may wait for it."""

    is_endless = True

    def __init__(self, pieces: Iterable[bytes]) -> None:
        # The second one is nginx's: what it holds back comes too late.
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(pieces, content_type=CONTENT_TYPE, headers=headers)
        self.pieces = pieces


class StreamView(DomainView):
    @extend_schema(
        operation_id="follow_session",
        summary="Follow a session",
        description=_DESCRIPTION,
        parameters=[_LAST_EVENT_ID],
        responses={(200, CONTENT_TYPE): _EVENT},
    )
    def get(self, request: Request, session_id: str) -> Any:
        session = SessionManager(self.actor).get(session_id=session_id)
        place = _place(self.http.META.get("HTTP_LAST_EVENT_ID", ""), session)
        if self.http.method == "HEAD":
            return EventStream(())
        try:
            return EventStream(open_streams.open(_Following(self, request, session_id, place)))
        except FullError as error:
            raise Throttled(
                RETRY_AFTER_SECONDS, "As many streams are open as the server holds."
            ) from error


def _place(given: str, session: Session) -> Place:
    """Where to go on; from the beginning, unless the client says so."""
    if not given:
        return Place(0, _END_OF_VERSION)
    found = _ID.fullmatch(given)
    if found is None:
        raise InvalidRequest.at("/Last-Event-ID", "is version.index, or a version alone")
    version, index = int(found[1]), found[2]
    if version > session.version:
        raise InvalidRequest.at("/Last-Event-ID", f"the current version is {session.version}")
    return Place(version, _END_OF_VERSION if index is None else int(index))


class _Following:
    """One reader's way through the changes; its right to read is asked for at each page."""

    def __init__(self, view: DomainView, request: Request, session_id: str, place: Place) -> None:
        self.session_id = session_id
        self._view, self._request = view, request._request
        self._place = place
        self._reached: Reached | None = None

    def next_page(self) -> Page:
        session = self._admitted()
        reached = self._reached or reached_after(session, self._place)
        now = timezone.now()
        pieces, size, is_all = [], 0, True
        for told in tell(session, reached):
            pieces.append(_encoded(told, now))
            size += len(pieces[-1])
            reached, is_all = told.reached, told.is_last
            if size >= MOST_BYTES:
                break
        self._reached = reached
        return Page(b"".join(pieces), session.version if is_all else None)

    def _admitted(self) -> Session:
        """The session, as a new request of the same token would find it."""
        try:
            request = self._view.initialize_request(self._request)
            self._view.perform_authentication(request)
            self._view.check_permissions(request)
            actor = Actor.account(cast(User, request.user))
            return SessionManager(actor).get(session_id=self.session_id)
        except DossierError as refusal:
            raise Ended(refusal.code) from refusal
        except PermissionDenied as refusal:
            raise Ended("permission_denied") from refusal
        except APIException as refusal:
            raise Ended("not_authenticated") from refusal


def _encoded(told: Told, now: datetime) -> bytes:
    """A change as it is sent: no line of JSON that we write has a break in it."""
    version, number = told.reached.place
    name = _NAMES[told.subject]
    data = {
        "object": "change",
        "version": version,
        "index": number,
        "event": told.event and represent_event(told.event),
        name: None if told.thing is None else _represent(told.thing, now),
    }
    if told.event is None and told.subject == Subject.CONTENT:
        data["tool_calls"] = [represent_tool_call(call, with_values=False) for call in told.calls]
    return b"id: %d.%d\nevent: %s\ndata: %s\n\n" % (version, number, name.encode(), dumps(data))


def _represent(thing: Any, now: datetime) -> Any:
    if isinstance(thing, Session):
        return represent_session(thing, None, now)
    if isinstance(thing, Run):
        return represent_run(thing, now)
    if isinstance(thing, ToolCall):
        return represent_tool_call(thing)
    if isinstance(thing, WorkingMemoryRevision):
        return represent_revision(thing) | {"working_memory": thing.memory}
    return represent_message(thing)
