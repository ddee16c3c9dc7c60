"""Another way on from some place in a session: fork, rewind, compaction."""

from typing import Any

from django.core.validators import RegexValidator
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from sessions_app.api.base import DomainView
from sessions_app.api.fields import (
    JSONObjectField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    nullable_name,
)
from sessions_app.api.representations import represent_message
from sessions_app.api.response import Response
from sessions_app.api.schema import ETAG, LOCATION
from sessions_app.api.sessions import SessionDoor
from sessions_app.api.shapes import MessageOut, SessionOut, SessionRewoundOut
from sessions_app.models import Message
from sessions_app.services import NewFork, SessionManager
from sessions_app.services.lifecycle import MAX_REASON


class ForkIn(StrictSerializer):
    at_sequence = StrictIntegerField(
        required=False, allow_null=True, min_value=0, help_text="Default: the last message."
    )
    title = nullable_name(500, help_text="Default: that of the original.")
    metadata = JSONObjectField(
        required=False, allow_null=True, help_text="Default: that of the original."
    )

    class Meta:
        ref_name = "Fork"


class RewindIn(StrictSerializer):
    to_sequence = StrictIntegerField(min_value=0, help_text="0: to before the first message.")
    reason = nullable_name(MAX_REASON)

    class Meta:
        ref_name = "Rewind"


class CompactIn(StrictSerializer):
    through_sequence = StrictIntegerField(min_value=1)
    summary = StrictCharField(
        allow_blank=False,
        validators=[RegexValidator(r"\S", "must not be blank")],
        help_text="What stands in the context for these messages.",
    )

    class Meta:
        ref_name = "Compact"


class ForkView(SessionDoor):
    bodies = {"POST": ForkIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="fork_session",
        summary="Fork a session, also a closed or expired one",
        description=(
            "The new session is `ACTIVE` and shares nothing with the original. It begins with its "
            "messages 1 to `at_sequence`, under the same sequences, their tool calls, and the "
            "working memory of that point. The cut moves down so that no call is parted from its "
            "result: `forked_at_sequence` tells where it came to."
        ),
        parameters=[LOCATION, ETAG],
        responses={201: SessionOut},
    )
    def post(self, request: Request, session_id: str) -> Response:
        forked = SessionManager(self.actor).fork(
            session_id=session_id, new=NewFork(**self.valid), if_match=self.if_match
        )
        self.keep_session(forked.session_id)  # what the answer tells goes with the fork
        response = self.answer(forked, status=201)
        response.headers["Location"] = reverse("session", args=[forked.session_id])
        return response


class RewindView(SessionDoor):
    bodies = {"POST": RewindIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="rewind_session",
        summary="Take the newest messages out of the history",
        description=(
            "Messages after `to_sequence` become superseded: out of lists and context, readable "
            "with `include_superseded=true`. The working memory of that point becomes a new "
            "revision. The cut moves down so that no call is parted from its result. Sequences go "
            "on where they were; runs go on as they are."
        ),
        parameters=[ETAG],
        responses=SessionRewoundOut,
    )
    def post(self, request: Request, session_id: str) -> Response:
        session, cut, changed = SessionManager(self.actor).rewind(
            session_id=session_id, if_match=self.if_match, **self.valid
        )
        return self.answer(session, changed=changed, to_sequence=cut)


class CompactView(DomainView):
    bodies = {"POST": CompactIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="compact_session",
        summary="Let a summary stand for the older messages",
        description=(
            "Adds a message of the type `compaction`, with which the context begins from now on, "
            "after what opens the session. The cut moves down so that no call is parted from its "
            "result and none that is open is covered; `through_sequence` of the message tells "
            "where it came to. The originals stay readable."
        ),
        parameters=[LOCATION],
        responses={201: MessageOut},
    )
    def post(self, request: Request, session_id: str) -> Response:
        message = SessionManager(self.actor).compact(
            session_id=session_id, if_match=self.if_match, **self.valid
        )
        self.keep = {"sequence": message.sequence}
        return self._made(message)

    def rebuild(self, request: Request, kept: Any, **kwargs: Any) -> Response:
        return self._made(SessionManager(self.actor).read_message(**kwargs, **kept))

    def _made(self, message: Message) -> Response:
        place = reverse("message", args=[message.session_id, message.sequence])
        return self.respond(represent_message(message), status=201, headers={"Location": place})
