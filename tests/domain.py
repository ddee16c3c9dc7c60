"""What tests of the domain share: an account at its managers, messages, and a look at all rows.

The clock stands at `NOON` while a test has its `desk`; ``now=`` says another moment.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.contrib.auth.models import User
from django.db.models import Model

from runs_app.models import Run
from runs_app.services import NewRun, RunManager
from sessions_app.models import Session, ToolCall
from sessions_app.services import Actor, NewSession, SessionManager

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_numbers = count(1)


def later(seconds: float = 0, **more: float) -> datetime:
    """So long after `NOON`."""
    return NOON + timedelta(seconds=seconds, **more)


class Desk:
    """One account, and what it can do."""

    def __init__(self, user: User | None = None, actor: Actor | None = None) -> None:
        self.user = user or User.objects.create_user(f"agent-{next(_numbers)}")
        self.actor = actor or Actor.account(self.user)
        self.sessions = SessionManager(self.actor)
        self.runs = RunManager(self.actor)

    def open(self, *, now: datetime = NOON, **fields: Any) -> str:
        """A session that has a title: without one, its first user message would give it one."""
        new = NewSession(**{"title": "Titled", **fields})
        return self.sessions.create(new, now=now)[0].session_id

    def run(self, session_id: str, *, now: datetime = NOON, **new: Any) -> Any:
        return self.runs.create(session_id=session_id, new=NewRun(**new), now=now)

    def append(
        self, session_id: str, *messages: dict[str, Any], now: datetime = NOON, **more: Any
    ) -> Any:
        return self.sessions.append(session_id=session_id, messages=messages, now=now, **more)

    def call(self, session_id: str, *, now: datetime = NOON, **more: Any) -> Any:
        """A tool call that the agent records by itself."""
        more = {"name": "ls", **more}
        return self.sessions.start_tool_call(session_id=session_id, now=now, **more)[0]


@pytest.fixture
def desk(db: None) -> Iterator[Desk]:
    with time_machine.travel(NOON, tick=False):
        yield Desk()


def session_in(desk: Desk, state: str) -> str:
    """A session with a little of all, led into a state; LAPSED is EXPIRED that nobody settled."""
    session_id = desk.open(
        title="T", idle_timeout_seconds=60, metadata={"a": 1}, working_memory={"goal": "g"}
    )
    desk.append(session_id, user(), calling("c1"))
    lead: dict[str, Any] = {
        "CLOSED": desk.sessions.close,
        "EXPIRED": desk.sessions.expire,
        "DELETED": desk.sessions.delete,
    }
    if state in lead:
        lead[state](session_id=session_id)
    return session_id


def system() -> SessionManager:
    """As the sweep comes."""
    return SessionManager(Actor.system())


def row(session_id: str) -> Any:
    return Session.objects.get(pk=session_id)


def run_row(run: Run) -> Any:
    return Run.objects.get(pk=run.run_id)


def call_row(call: ToolCall) -> Any:
    return ToolCall.objects.get(pk=call.id)


def calls_of(session_id: str) -> list[Any]:
    return list(ToolCall.objects.filter(session=session_id).order_by("id"))


def moves(session_id: str, *subjects: str) -> list[tuple[str | None, str | None, str]]:
    """The session's events as (from, to, kind of actor), in order."""
    events = row(session_id).events.order_by("sequence")
    events = events.filter(subject__in=subjects) if subjects else events
    return [(event.from_status, event.to_status, event.actor_type) for event in events]


def user(content: Any = "Hello", **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def assistant(content: Any = "Hi", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def calling(*ids: str, name: str = "ls", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    """An assistant message that calls a tool once for each id."""
    function = {"name": name, "arguments": arguments}
    calls = [{"id": each, "type": "function", "function": function} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(id: str, content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


def domain_models() -> list[type[Model]]:
    """Every table of ours."""
    return [
        model
        for app in ("sessions_app", "runs_app")
        for model in apps.get_app_config(app).get_models()
    ]


def dump() -> dict[str, list[dict[str, Any]]]:
    """Every row of every table of ours, as it is stored."""
    return {
        model._meta.label: list(model._base_manager.order_by("pk").values())
        for model in domain_models()
    }


def dump_of(session_id: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of one session, in every table of ours that has any."""
    return {
        label: [row for row in rows if row.get("session_id") == session_id]
        for label, rows in dump().items()
    }
