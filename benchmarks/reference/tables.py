"""The reference's two tables: what the product answers of a session and a message is a column."""

import json
from datetime import datetime
from typing import Any

from uuid_utils.compat import uuid7

TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")
_TEXTS = (
    *("external_id", "agent_id", "user_id", "title", "metadata", "active_run_id"),
    *("parent_session_id", "imported_from"),
)
_COUNTS = (
    *("working_memory_version", "version", "last_sequence", "message_count", "tool_call_count"),
    *("run_count", "open_tool_call_count", *TOKENS, "cost_nanousd"),
)
_MAYBE = ("idle_timeout_seconds", "forked_at_sequence")
_MOMENTS = (
    *("expires_at", "created_at", "updated_at", "last_activity_at"),
    *("closed_at", "expired_at", "deleted_at"),
)

SESSION = ("session_id", "status", *_TEXTS, *_COUNTS, *_MAYBE, *_MOMENTS)
SESSION_COLUMNS = ", ".join(SESSION)
SESSION_PLACES = ", ".join(["%s"] * len(SESSION))
MESSAGE_COLUMNS = "message_id, session_id, sequence, session_version, created_at"


def statements(moment: str) -> list[str]:
    """That make the tables; ``moment`` is the type of a time."""
    columns = [f"{name} text" for name in ("status", *_TEXTS)]
    columns += [f"{name} bigint" for name in (*_COUNTS, *_MAYBE)]
    columns += [f"{name} {moment}" for name in _MOMENTS]
    return f"""
CREATE TABLE reference_session (session_id varchar(32) PRIMARY KEY, {", ".join(columns)});
CREATE INDEX reference_by_user ON reference_session
  (user_id, last_activity_at DESC, session_id DESC);
CREATE TABLE reference_message (message_id varchar(32) PRIMARY KEY, session_id varchar(32),
  sequence bigint, session_version bigint, created_at {moment}, body text,
  UNIQUE (session_id, sequence))""".split(";")


def new_session(given: dict[str, Any], now: datetime, *, length: int = 0) -> list[Any]:
    """A row, in the order of `SESSION`."""
    values: dict[str, Any] = dict.fromkeys(SESSION) | dict.fromkeys(_COUNTS, 0) | given
    values |= {"session_id": uuid7().hex, "status": "ACTIVE", "version": 1}
    values |= {"metadata": json.dumps(given.get("metadata", {}))}
    values |= {"last_sequence": length, "message_count": length}
    values |= dict.fromkeys(("created_at", "updated_at", "last_activity_at"), now)
    return list(values.values())
