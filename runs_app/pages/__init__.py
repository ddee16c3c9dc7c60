"""Our own pages of the admin site: what lists and forms cannot show."""

from . import (
    home,
    run,
    session_live,
    session_raw,
    session_records,
    session_search,
    session_transcript,
)

__all__ = [
    "home",
    "run",
    "session_live",
    "session_raw",
    "session_records",
    "session_search",
    "session_transcript",
]
