"""Where pages about a session are found."""

from django.urls import reverse


def session_url(session_id: str) -> str:
    return reverse("admin:session", args=[session_id])


def message_url(session_id: str, sequence: int) -> str:
    """A message at its place in the conversation, on that page of it which has it."""
    return f"{session_url(session_id)}?at={sequence}#m{sequence}"
