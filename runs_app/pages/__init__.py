"""Pages of the console that show sessions together with their runs."""

from . import session_raw, session_records, session_transcript

__all__ = ["session_raw", "session_records", "session_transcript"]
