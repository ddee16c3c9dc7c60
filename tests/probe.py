"""Endpoints that exist in tests only: the plumbing, without a domain behind it."""

from typing import Any

from django.db.models import F
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request

from config import problems
from config.pagination import KeysetPagination
from sessions_app import errors
from sessions_app.api.base import DomainView
from sessions_app.api.fields import (
    AnyObjectSerializer,
    InstantField,
    JSONObjectField,
    JSONValueField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
    StrictSerializer,
)
from sessions_app.api.query import Choice, Choices, Flag, Instant, Integer, Prefixed, Text
from sessions_app.api.response import Response
from sessions_app.models import Session, SessionEvent
from sessions_app.services.locking import locked_session

RAISES: dict[str, Exception] = {}


class Inner(StrictSerializer):
    kind = StrictChoiceField(choices=["a", "b"])


class Body(StrictSerializer):
    text = StrictCharField(max_length=10, required=False, allow_null=True)
    count = StrictIntegerField(required=False, min_value=0, max_value=10)
    huge = StrictIntegerField(required=False)
    flag = StrictBooleanField(required=False)
    at = InstantField(required=False)
    value = JSONValueField(required=False)
    thing = JSONObjectField(required=False)
    inner = Inner(required=False)
    texts = serializers.ListField(child=StrictCharField(), required=False)


class EchoView(DomainView):
    """Gives back what was read."""

    parameters = {
        "GET": [
            Text(name="q"),
            Text(name="name", min_length=1, max_length=5),
            Integer(name="after", low=1, high=2**63 - 1),
            Flag(name="deep", default=False),
            Instant(name="since"),
            Choice(name="order", choices=["asc", "desc"], default="asc"),
            Choices(name="status", choices=["A", "B"]),
            Prefixed(name="metadata."),
        ]
    }
    bodies = {"POST": Body, "PATCH": Body, "PUT": AnyObjectSerializer}

    @extend_schema(responses={200: dict})
    def get(self, request: Request) -> Response:
        return self.respond(self.params)

    @extend_schema(responses={200: Body})
    def post(self, request: Request) -> Response:
        return self.respond(self.valid)

    put = patch = post


class RaisingView(DomainView):
    """Raises what a test put into RAISES."""

    @extend_schema(responses={200: dict})
    def get(self, request: Request, name: str) -> Response:
        raise RAISES[name]


class CounterView(DomainView):
    """Raises the session's version by one, as a real write would."""

    bodies = {"POST": AnyObjectSerializer, "PATCH": AnyObjectSerializer}
    etags = frozenset({"GET", "POST"})
    deletes_session = True

    @extend_schema(responses={200: dict})
    def get(self, request: Request, session_id: str) -> Response:
        session = Session.objects.get(pk=session_id)
        settled = session.title != "lapsed"
        if self.holds(session.version, settled=settled):
            return self.not_modified(session.version)
        return self.respond({"version": session.version}, version=session.version)

    @extend_schema(responses={201: dict})
    def post(self, request: Request, session_id: str) -> Response:
        with locked_session(session_id, actor=self.actor, if_match=self.if_match) as session:
            session.version += 1
        if self.valid.get("fail"):
            raise errors.SessionClosed("It failed after the write.")
        if status := self.valid.get("status"):
            return self.respond({"seen": True}, status=status)
        answer = {"version": session.version, "sent": request.data}
        return self.respond(
            answer, status=201, version=session.version, headers={"Location": "/there"}
        )

    @extend_schema(responses={204: None})
    def delete(self, request: Request, session_id: str) -> Response:
        with locked_session(session_id, actor=self.actor):
            tombstone(session_id)
        return self.respond(None, status=204)

    def patch(self, request: Request, session_id: str) -> Response:
        """Keeps only what the answer is rebuilt from."""
        with locked_session(session_id, actor=self.actor) as session:
            session.version += 1
        self.keep = {"version": session.version}
        return self.rebuild(request, self.keep, session_id)

    def rebuild(self, request: Request, kept: Any, session_id: str) -> Response:
        title = Session.objects.values_list("title", flat=True).get(pk=session_id)
        return self.respond({"title": title, **kept})


class ForgetfulView(DomainView):
    def post(self, request: Request) -> Response:
        return self.respond({})


class SessionsView(DomainView):
    """A list over two keys, in either order."""

    paginated = True
    pagination_class = KeysetPagination
    parameters = {
        "GET": [
            Choice(name="order", choices=["created_at", "-created_at"], default="created_at"),
            Text(name="title"),
        ]
    }

    def get(self, request: Request) -> Response:
        order = self.params["order"]
        sign = order[: order.startswith("-")]
        rows = Session.objects.filter(account=self.account).order_by(order, f"{sign}session_id")
        if title := self.params["title"]:
            rows = rows.filter(title=title)
        return self.page(rows, lambda session: session.session_id)


class EventsView(DomainView):
    """A list over one unique key."""

    paginated = True
    pagination_class = KeysetPagination

    def get(self, request: Request, session_id: str) -> Response:
        rows = SessionEvent.objects.filter(session=session_id).order_by("sequence")
        return self.page(rows, lambda event: event.sequence)


class MessagesView(DomainView):
    """A list of rows with a size."""

    paginated = True
    pagination_class = KeysetPagination

    def get(self, request: Request, session_id: str) -> Response:
        rows = Session.objects.get(pk=session_id).messages.order_by("-sequence")
        return self.page(rows, lambda message: message.sequence)


def tombstone(session_id: str) -> None:
    Session.objects.filter(pk=session_id).update(
        status="DELETED", deleted_at=F("created_at"), expires_at=None
    )


RAISES["throttled"] = exceptions.Throttled(wait=7)

urlpatterns = [
    path("api/v1/echo", EchoView.as_view()),
    path("api/v1/raise/<str:name>", RaisingView.as_view()),
    path("api/v1/forgetful", ForgetfulView.as_view()),
    path("api/v1/sessions/<str:session_id>/counter", CounterView.as_view()),
    path("api/v1/list", SessionsView.as_view()),
    path("api/v1/sessions/<str:session_id>/events", EventsView.as_view()),
    path("api/v1/sessions/<str:session_id>/messages", MessagesView.as_view()),
]

handler400 = problems.handler400
handler403 = problems.handler403
handler404 = problems.handler404
handler500 = problems.handler500
