"""Whose title is shown to whom."""

from typing import Any

from ..models import Session

READ_CONTENT = "sessions_app.read_content"


def title_for(session: Session, viewer: Any) -> str:
    """What the session is called as this account may see it; "": by its id.

    A title that nobody gave is how the user began, so it is for those who may read what sessions
    contain: a role can manage without reading (docs/ADMIN.md).
    """
    if session.title_is_said and not viewer.has_perm(READ_CONTENT):
        return ""
    return session.title or ""
