"""Rows as pages and packets read them: tuples, where a model instance for each would cost more than
the reading. A name that a row and its model share means the same; times are the column's text.
Where an instance it is, it is made here."""

from typing import Any, NamedTuple, TypeVar

from django.db.models import Model
from django.db.models.base import ModelState

from .jsontext import JSONText

Row = TypeVar("Row", bound=Model)


class MessageRow(NamedTuple):
    """What a message shows; made by `MessageQuerySet.rows`."""

    message_id: str
    session_id: str
    sequence: int
    role: str | None
    type: str
    body: JSONText
    size: int
    item_id: str | None
    run_id: str | None
    session_version: int
    created_at: str
    removed_at: str | None
    superseded_at: str | None


class ToolCallRow(NamedTuple):
    """What a tool call shows; made by `ToolCallQuerySet.rows`."""

    id: str
    session_id: str
    run_id: str | None
    tool_call_id: str | None
    name: str
    arguments: JSONText | None
    status: str
    result: JSONText | None
    error_type: str | None
    error_message: str | None
    size: int
    message_sequence: int | None
    result_sequence: int | None
    started_at: str | None
    finished_at: str | None
    duration_ms: int | None
    session_version: int
    superseded_at: str | None


class SessionRow(NamedTuple):
    """What a session shows in a list; made by `SessionQuerySet.rows`."""

    session_id: str
    external_id: str | None
    agent_id: str | None
    user_id: str | None
    title: str | None
    status: str
    metadata: JSONText
    version: int
    working_memory_version: int
    last_sequence: int
    message_count: int
    tool_call_count: int
    open_tool_call_count: int
    run_count: int
    active_run_id: str | None
    active_run_deadline: str | None
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    reasoning_tokens: int
    cost_nanousd: int
    idle_timeout_seconds: int | None
    expires_at: str | None
    created_at: str
    updated_at: str
    last_activity_at: str
    closed_at: str | None
    expired_at: str | None
    deleted_at: str | None
    parent_session_id: str | None
    forked_at_sequence: int | None
    imported_from: str | None


def instance(model: type[Row], values: dict[str, Any], *, alias: str | None) -> Row:
    """An instance with these values, by their attributes' names, as ``from_db`` makes it in four
    times the time: it calls receivers of signals that nothing here has, and sets by descriptors.

    ``alias`` is the database where the row is; None: it is nowhere yet.
    """
    made = model.__new__(model)
    state = ModelState()
    state.db, state.adding = alias, alias is None
    vars(made).update(values, _state=state)
    return made
