"""Coming back to a session: the resume packet, with and without the transition."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from runs_app.api.representations import represent_packet
from runs_app.api.shapes import ContextOut, ResumePacketOut
from runs_app.services.packet import read_packet
from sessions_app.api.base import DomainView
from sessions_app.api.fields import StrictBooleanField, StrictChoiceField, StrictIntegerField
from sessions_app.api.query import Choice, Flag, Integer
from sessions_app.api.representations import is_settled
from sessions_app.api.response import Response
from sessions_app.api.schema import ETAG
from sessions_app.api.sessions import ReasonIn
from sessions_app.models import Session
from sessions_app.services import SessionManager
from sessions_app.services.formats import FORMATS, NATIVE

MAX_LAST_N = 1000
MAX_TOKENS = 100_000_000

_WINDOW = [
    Integer(
        name="last_n",
        low=1,
        high=MAX_LAST_N,
        default=50,
        description="How many messages at most, besides those that open the session.",
    ),
    Integer(
        name="max_tokens",
        low=1,
        high=MAX_TOKENS,
        description="How many tokens these messages may be at most, by the estimate of "
        "`window.estimated_tokens`. The newest is there in any case, with what it must stand with.",
    ),
    Choice(
        name="format",
        choices=FORMATS,
        default=NATIVE,
        description="`native`: as stored. Else `messages` is what that API takes as `messages` "
        "(Responses: `input`), and with `anthropic` there is `system` beside it.",
    ),
    Flag(
        name="mark_synthetic",
        default=True,
        description="Other formats than `native`: whether the result that stands in for a missing "
        'one has the key `"synthetic": true`. An API that refuses unknown keys needs `false`.',
    ),
]


class ResumeIn(ReasonIn):
    """A reason, and the window's parameters, which may stand in the query as well."""

    last_n = StrictIntegerField(required=False, min_value=1, max_value=MAX_LAST_N)
    max_tokens = StrictIntegerField(required=False, min_value=1, max_value=MAX_TOKENS)
    format = StrictChoiceField(choices=FORMATS, required=False)
    mark_synthetic = StrictBooleanField(required=False)

    class Meta:
        ref_name = "Resume"


class PacketDoor(DomainView):
    """What answers with a packet."""

    def answer(self, session: Session, **more: Any) -> Response:
        now = timezone.now()
        asked = self.params | {name: self.valid[name] for name in self.params.keys() & self.valid}
        packet = read_packet(
            session=session, last_n=asked["last_n"], max_tokens=asked["max_tokens"], now=now
        )
        shown = represent_packet(
            packet, now, format=asked["format"], mark_synthetic=asked["mark_synthetic"]
        )
        return self.respond(shown | more, version=session.version)


class ContextView(PacketDoor):
    parameters = {"GET": _WINDOW}
    etags = frozenset({"GET"})

    @extend_schema(
        operation_id="read_context",
        summary="Read the resume packet, without any transition",
        parameters=[ETAG],
        responses={200: ContextOut, 304: None},
    )
    def get(self, request: Request, session_id: str) -> Response:
        session = SessionManager(self.actor).get(session_id=session_id)
        if self.holds(session.version, settled=_nothing_lapsed(session)):
            return self.not_modified(session.version)
        return self.answer(session, resumed_from=None)


class ResumeView(PacketDoor):
    parameters = {"POST": _WINDOW}
    bodies = {"POST": ResumeIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="resume_session",
        summary="Resume a session",
        description="CLOSED and EXPIRED become ACTIVE; of an ACTIVE session nothing changes. "
        "A repetition with the same `Idempotency-Key` answers with the packet of its own moment.",
        parameters=[ETAG],
        responses=ResumePacketOut,
    )
    def post(self, request: Request, session_id: str) -> Response:
        session, origin = SessionManager(self.actor).resume(
            session_id=session_id, if_match=self.if_match, reason=self.valid.get("reason")
        )
        self.keep = {"resumed_from": origin and origin.value, "changed": origin is not None}
        return self.answer(session, **self.keep)

    def rebuild(self, request: Request, kept: Any, **kwargs: Any) -> Response:
        return self.answer(SessionManager(self.actor).get(**kwargs), **kept)


def _nothing_lapsed(session: Session) -> bool:
    """Whether the version says all that the packet would show, its queued and child runs too."""
    now = timezone.now()
    deadline = session.other_run_deadline
    return is_settled(session, now) and (deadline is None or deadline > now)
