from django.urls import URLPattern, URLResolver, path

from sessions_app.api.branches import CompactView, ForkView, RewindView
from sessions_app.api.events import EventsView
from sessions_app.api.memory import MemoryView, RevisionsView, RevisionView
from sessions_app.api.messages import MessagesView, MessageView, PopView
from sessions_app.api.search import SearchView
from sessions_app.api.sessions import CloseView, ExpireView, SessionsView, SessionView
from sessions_app.api.tool_calls import (
    FinishView,
    SettleView,
    ToolCallsView,
    ToolCallView,
)

_SESSION = "sessions/<str:session_id>"
_MEMORY = f"{_SESSION}/working-memory"

urlpatterns: list[URLPattern | URLResolver] = [
    # They are tried in this order, so what agents do all day comes first.
    path(f"{_SESSION}/messages", MessagesView.as_view(), name="messages"),
    path("sessions", SessionsView.as_view(), name="sessions"),
    path(_SESSION, SessionView.as_view(), name="session"),
    path(f"{_SESSION}/close", CloseView.as_view(), name="session-close"),
    path(f"{_SESSION}/expire", ExpireView.as_view(), name="session-expire"),
    path(f"{_SESSION}/fork", ForkView.as_view(), name="session-fork"),
    path(f"{_SESSION}/rewind", RewindView.as_view(), name="session-rewind"),
    path(f"{_SESSION}/compact", CompactView.as_view(), name="session-compact"),
    path(f"{_SESSION}/events", EventsView.as_view(), name="events"),
    path(f"{_SESSION}/messages/pop", PopView.as_view(), name="messages-pop"),
    path(f"{_SESSION}/messages/<str:sequence>", MessageView.as_view(), name="message"),
    path(_MEMORY, MemoryView.as_view(), name="working-memory"),
    path(f"{_MEMORY}/revisions", RevisionsView.as_view(), name="revisions"),
    path(f"{_MEMORY}/revisions/<str:version>", RevisionView.as_view(), name="revision"),
    path(f"{_SESSION}/tool-calls", ToolCallsView.as_view(), name="tool-calls"),
    path("search", SearchView.as_view(), name="search"),
    path("tool-calls/<str:id>", ToolCallView.as_view(), name="tool-call"),
    path("tool-calls/<str:id>/finish", FinishView.as_view(), name="tool-call-finish"),
    path("tool-calls/<str:id>/settle", SettleView.as_view(), name="tool-call-settle"),
]
