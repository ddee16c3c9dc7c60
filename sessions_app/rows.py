"""Rows as pages and packets read them: tuples, where a model instance for each would cost more than
the reading. A name that a row and its model share means the same; times are the column's text."""

from typing import NamedTuple

from .jsontext import JSONText


class MessageRow(NamedTuple):
    """What a message shows; made by `MessageQuerySet.rows`."""

    message_id: str
    session_id: str
    sequence: int
    role: str | None
    type: str
    body: JSONText
    size: int
    run_id: str | None
    session_version: int
    created_at: str
    removed_at: str | None
    superseded_at: str | None
