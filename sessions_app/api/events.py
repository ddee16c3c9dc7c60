"""Who did what to a session and its runs, and why."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from sessions_app.api.base import DomainView
from sessions_app.api.representations import represent_event
from sessions_app.api.response import Response
from sessions_app.api.shapes import EventOut
from sessions_app.services import SessionManager


class EventsView(DomainView):
    paginated = True

    @extend_schema(
        operation_id="list_events",
        summary="List lifecycle events, oldest first",
        responses=EventOut(many=True),
    )
    def get(self, request: Request, session_id: str) -> Response:
        events = SessionManager(self.actor).events(session_id=session_id)
        return self.page(events.order_by("sequence"), represent_event)
