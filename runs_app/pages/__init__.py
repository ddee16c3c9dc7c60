"""Our own pages of the admin site: what lists and forms cannot show."""

from . import home, run, session_raw, session_records, session_transcript

__all__ = ["home", "run", "session_raw", "session_records", "session_transcript"]
