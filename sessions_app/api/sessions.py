"""Sessions: creating, finding, changing, ending them."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from sessions_app.api.base import DomainView
from sessions_app.api.fields import (
    JSONObjectField,
    StrictChoiceField,
    StrictIntegerField,
    StrictSerializer,
    nullable_name,
)
from sessions_app.api.memory import MemoryDocumentIn
from sessions_app.api.query import Choice, Choices, Flag, Instant, Prefixed, Text
from sessions_app.api.representations import is_settled, represent_session
from sessions_app.api.response import Response
from sessions_app.api.schema import ETAG, LOCATION
from sessions_app.api.shapes import SessionListedOut, SessionMovedOut, SessionOut
from sessions_app.models import Session
from sessions_app.services import NewSession, SessionChanges, SessionManager
from sessions_app.services.creation import MAX_IDLE_TIMEOUT
from sessions_app.services.lifecycle import MAX_REASON
from sessions_app.services.reading import SessionFilters
from sessions_app.states import RUN_STATUSES, SessionStatus

_LONGEST_METADATA_VALUE = 16 * 1024

_KEYS = {
    "-last_activity_at": ("-last_activity_at", "-session_id"),
    "created_at": ("created_at", "session_id"),
    "-created_at": ("-created_at", "-session_id"),
}

FILTERS = [
    Choices(name="status", choices=SessionStatus.values, description="Default: all but `DELETED`."),
    Text(name="agent_id"),
    Text(name="user_id"),
    Text(name="external_id"),
    Text(name="parent_session_id"),
    Instant(name="created_after", description="Exclusive, as all of these bounds."),
    Instant(name="created_before"),
    Instant(name="active_after", description="By `last_activity_at`."),
    Instant(name="active_before"),
    Instant(name="expires_before", description="Has a deadline, and it lies before this."),
    Choices(
        name="run_status",
        choices=RUN_STATUSES,
        description="Of the newest run, at this moment: past its deadline it is `INTERRUPTED`.",
    ),
    Flag(name="has_open_tool_calls"),
    Prefixed(
        name="metadata.",
        max_length=_LONGEST_METADATA_VALUE,
        description="`metadata.<key>=<value>`: a top-level key of the metadata, literally; "
        "numbers, booleans and null by their JSON text.",
    ),
    Text(
        name="q",
        description="Words that one text of the session has: a message with its tool calls, title "
        "and external id, a recorded tool call, or the working memory. What matches: see "
        "`GET /search`. Or the start of the id, with `sess_`.",
    ),
    Choice(name="order", choices=list(_KEYS), default="-last_activity_at"),
]


def idle_timeout() -> StrictIntegerField:
    return StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_IDLE_TIMEOUT,
        help_text="Seconds without activity after which the session expires; null: never.",
    )


class NewSessionIn(StrictSerializer):
    agent_id = nullable_name()
    user_id = nullable_name()
    title = nullable_name(500)
    external_id = nullable_name()
    metadata = JSONObjectField(required=False, allow_null=True)
    working_memory = MemoryDocumentIn(required=False, allow_null=True)
    idle_timeout_seconds = idle_timeout()
    parent_session_id = nullable_name()
    if_exists = StrictChoiceField(choices=["error", "return"], required=False)

    class Meta:
        ref_name = "NewSession"


class SessionChangesIn(StrictSerializer):
    """A merge patch: an absent key stays as it is."""

    title = nullable_name(500)
    metadata = JSONObjectField(
        required=False, allow_null=True, help_text="A JSON merge patch (RFC 7396)."
    )
    idle_timeout_seconds = idle_timeout()
    user_id = nullable_name()
    agent_id = nullable_name()

    class Meta:
        ref_name = "SessionChanges"


class ReasonIn(StrictSerializer):
    reason = nullable_name(MAX_REASON)

    class Meta:
        ref_name = "Reason"


class SessionDoor(DomainView):
    """What answers with one session as it is now."""

    def answer(self, session: Session, *, status: int = 200, **more: Any) -> Response:
        manager = SessionManager(self.actor)
        body = represent_session(
            session,
            manager.memory_of(session=session),
            timezone.now(),
            open_tool_calls=manager.open_tool_calls(session=session),
        )
        return self.respond(body | more, status=status, version=session.version)


class SessionsView(SessionDoor):
    parameters = {"GET": FILTERS}
    bodies = {"POST": NewSessionIn}
    paginated = True

    @extend_schema(
        operation_id="list_sessions",
        summary="List sessions, newest activity first",
        responses=SessionListedOut(many=True),
    )
    def get(self, request: Request) -> Response:
        now = timezone.now()
        given = dict(self.params)
        order = _KEYS[given.pop("order")]
        filters = SessionFilters(metadata=given.pop("metadata."), **given)
        found = SessionManager(self.actor).find(filters=filters, order=order, now=now)
        return self.page(found, lambda row: represent_session(row, None, now))

    @extend_schema(
        operation_id="create_session",
        summary="Create a session",
        parameters=[LOCATION, ETAG],
        responses={201: SessionOut, 200: SessionOut},
    )
    def post(self, request: Request) -> Response:
        given = {name: value for name, value in self.valid.items() if value is not None}
        session, is_new = SessionManager(self.actor).create(NewSession(**given))
        self.keep_session(session.session_id)
        response = self.answer(session, status=201 if is_new else 200)
        if is_new:
            response.headers["Location"] = f"{self.http.path}/{session.session_id}"
        return response

    def reads_nothing(self) -> bool:
        looked_for = ("external_id", "parent_session_id", "working_memory")
        return all(self.valid.get(name) is None for name in looked_for)


class SessionView(SessionDoor):
    parameters = {"DELETE": [Text(name="reason", max_length=MAX_REASON)]}
    bodies = {"PATCH": SessionChangesIn}
    etags = frozenset({"GET", "PATCH", "DELETE"})
    deletes_session = True

    @extend_schema(
        operation_id="get_session",
        summary="Read a session",
        parameters=[ETAG],
        responses={200: SessionOut, 304: None},
    )
    def get(self, request: Request, session_id: str) -> Response:
        session = SessionManager(self.actor).get(session_id=session_id)
        if self.holds(session.version, settled=is_settled(session, timezone.now())):
            return self.not_modified(session.version)
        return self.answer(session)

    @extend_schema(
        operation_id="update_session",
        summary="Change title, metadata or idle timeout",
        parameters=[ETAG],
        responses=SessionOut,
    )
    def patch(self, request: Request, session_id: str) -> Response:
        session = SessionManager(self.actor).update(
            session_id=session_id, changes=SessionChanges(self.valid), if_match=self.if_match
        )
        return self.answer(session)

    @extend_schema(
        operation_id="delete_session",
        summary="Delete a session and its data, for good",
        responses={204: None},
    )
    def delete(self, request: Request, session_id: str) -> Response:
        SessionManager(self.actor).delete(
            session_id=session_id, reason=self.params["reason"], if_match=self.if_match
        )
        return self.respond(None, status=204)


class CloseView(SessionDoor):
    bodies = {"POST": ReasonIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="close_session",
        summary="Close a session",
        parameters=[ETAG],
        responses=SessionMovedOut,
    )
    def post(self, request: Request, session_id: str) -> Response:
        session, changed = SessionManager(self.actor).close(
            session_id=session_id, if_match=self.if_match, **self.valid
        )
        return self.answer(session, changed=changed)


class ExpireView(SessionDoor):
    bodies = {"POST": ReasonIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="expire_session",
        summary="Expire a session before its time",
        parameters=[ETAG],
        responses=SessionMovedOut,
    )
    def post(self, request: Request, session_id: str) -> Response:
        session, changed = SessionManager(self.actor).expire(
            session_id=session_id, if_match=self.if_match, **self.valid
        )
        return self.answer(session, changed=changed)
