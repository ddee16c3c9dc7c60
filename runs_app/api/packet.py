"""Coming back to a session: the resume packet, with and without the transition."""

from typing import Any

from django.http import QueryDict
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from runs_app.api.representations import represent_packet
from runs_app.api.shapes import ContextOut, ResumePacketOut
from runs_app.services.packet import read_packet
from sessions_app.api.base import DomainView
from sessions_app.api.fields import StrictChoiceField, StrictIntegerField
from sessions_app.api.query import Choice, Integer
from sessions_app.api.representations import is_settled
from sessions_app.api.response import Response
from sessions_app.api.schema import ETAG
from sessions_app.api.sessions import ReasonIn
from sessions_app.errors import InvalidRequest
from sessions_app.models import Session
from sessions_app.services import SessionManager

MAX_LAST_N = 1000

_WINDOW = [
    Integer(
        name="last_n",
        low=1,
        high=MAX_LAST_N,
        default=50,
        description="How many messages at most, besides those that open the session.",
    ),
    Choice(name="format", choices=["native"], default="native", description="As stored."),
]
# Of the contract, and still to come: refused by name, so that nobody takes a packet in another
# form, or over the budget, for what was asked for.
_FORMATS_TO_COME = frozenset({"openai_chat", "openai_responses", "anthropic"})


class ResumeIn(ReasonIn):
    """A reason, and the window's parameters, which may stand in the query as well."""

    last_n = StrictIntegerField(required=False, min_value=1, max_value=MAX_LAST_N)
    format = StrictChoiceField(choices=["native"], required=False)

    class Meta:
        ref_name = "Resume"


class PacketDoor(DomainView):
    """What answers with a packet."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        _refuse_what_is_to_come(request.query_params)

    def answer(self, session: Session, **more: Any) -> Response:
        now = timezone.now()
        last_n = self.valid.get("last_n", self.params["last_n"])
        packet = read_packet(session=session, last_n=last_n, now=now)
        return self.respond(represent_packet(packet, now) | more, version=session.version)


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


def _refuse_what_is_to_come(given: QueryDict) -> None:
    if "max_tokens" in given:
        raise InvalidRequest.at("/max_tokens", "is not available yet; use last_n")
    if given.get("format") in _FORMATS_TO_COME:
        raise InvalidRequest.at("/format", "only native is available yet")
