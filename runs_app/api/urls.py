"""Paths of runs, and of what needs both a session and its runs."""

from django.urls import URLPattern, URLResolver, path

from runs_app.api import moves, packet, runs, stream, transfer

# Before those of sessions, where it would be a session's id.
before_sessions: list[URLPattern | URLResolver] = [
    path("sessions/import", transfer.ImportView.as_view(), name="session-import"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("sessions/<str:session_id>/resume", packet.ResumeView.as_view(), name="session-resume"),
    path("sessions/<str:session_id>/context", packet.ContextView.as_view(), name="session-context"),
    path("sessions/<str:session_id>/export", transfer.ExportView.as_view(), name="session-export"),
    path("sessions/<str:session_id>/runs", runs.SessionRunsView.as_view(), name="session-runs"),
    path("sessions/<str:session_id>/stream", stream.StreamView.as_view(), name="session-stream"),
    path("runs", runs.RunsView.as_view(), name="runs"),
    path("runs/<str:run_id>", runs.RunView.as_view(), name="run"),
    path("runs/<str:run_id>/start", moves.StartView.as_view(), name="run-start"),
    path("runs/<str:run_id>/heartbeat", moves.HeartbeatView.as_view(), name="run-heartbeat"),
    path("runs/<str:run_id>/wait", moves.WaitView.as_view(), name="run-wait"),
    path("runs/<str:run_id>/complete", moves.CompleteView.as_view(), name="run-complete"),
    path("runs/<str:run_id>/fail", moves.FailView.as_view(), name="run-fail"),
    path("runs/<str:run_id>/cancel", moves.CancelView.as_view(), name="run-cancel"),
    path("runs/<str:run_id>/resume", moves.ResumeRunView.as_view(), name="run-resume"),
]
