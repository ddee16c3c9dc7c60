"""What an account may own: one of each kind that a path, a body or a filter can name."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from runs_app.services.creation import MAX_LEASE
from sessions_app.ids import new_id
from sessions_app.models import Session
from sessions_app.services import Actor, SessionManager
from tests.factories import add_messages, make_run, make_session, make_tool_call

Things = Mapping[str, str]

_PREFIXES = {
    "session_id": "sess",
    "unnamed_session_id": "sess",
    "run_id": "run",
    "queued_run_id": "run",
    "interrupted_run_id": "run",
    "item_id": "msg",
    "id": "call",
}


def furnish(
    account: User,
    *,
    marker: str,
    now: datetime | None = None,
    lease_seconds: int = MAX_LEASE,
    **fields: Any,
) -> Things:
    """A session with everything in it; ``marker`` stands in every text that a client sends.

    Its run goes on for as long as a run may without a word, since many tests share it.
    """
    moment = now or timezone.now()
    session = make_session(account=account, now=moment, **_named(marker), **fields)
    run = make_run(
        session=session,
        now=moment,
        input=marker,
        agent_id=f"agent {marker}",
        lease_seconds=lease_seconds,
    )
    waiting = make_session(account=account, title=f"unnamed {marker}", now=moment)
    queued = make_run(session=waiting, start=False, now=moment, metadata={"m": marker})
    first, *_ = add_messages(*_conversation(marker), session=session, run_id=run.run_id, now=moment)
    call = make_tool_call(session=session, name=f"tool {marker}", now=moment)
    return {
        "session_id": session.session_id,
        "unnamed_session_id": waiting.session_id,
        "run_id": run.run_id,
        "queued_run_id": queued.run_id,
        "interrupted_run_id": _interrupted(account, marker, moment),
        "id": call.id,
        "sequence": "1",
        "item_id": first.message_id,
        "version": "1",
        "external_id": str(session.external_id),
        "client_message_id": f"client {marker}",
        "tool_call_id": f"provider {marker}",
        "agent_id": f"agent {marker}",
        "user_id": f"user {marker}",
    }


def furnish_in_every_state(account: User, *, marker: str) -> dict[str, Things]:
    """The same in each state that a session can be in, by the state's name."""
    manager = SessionManager(Actor.account(account))
    found = {name: furnish(account, marker=f"{marker} {name}") for name in ("active", "closed")}
    manager.close(session_id=found["closed"]["session_id"])
    found["expired"] = furnish(account, marker=f"{marker} expired")
    manager.expire(session_id=found["expired"]["session_id"])
    found["deleted"] = furnish(account, marker=f"{marker} deleted")
    manager.delete(session_id=found["deleted"]["session_id"])
    found["lapsed"] = furnish(
        account,
        marker=f"{marker} lapsed",
        now=timezone.now() - timedelta(hours=1),
        lease_seconds=60,
        idle_timeout_seconds=60,
    )
    return found


def unknown_like(things: Things) -> Things:
    """Ids of the same form that name nothing."""
    made = {name: new_id(prefix) for name, prefix in _PREFIXES.items()}
    names = {name: f"unknown {new_id('name')}" for name in things if name not in made}
    return {**names, **made, "sequence": things["sequence"], "version": things["version"]}


def owned_by(things: Things, told: str) -> bool:
    """Whether an answer tells of them: by the session's id, or the door's for it, or by an item."""
    id_in_each_name = things["session_id"].removeprefix("sess_")
    return id_in_each_name in told or things["item_id"] in told


def all_rows() -> list[tuple[str, str]]:
    """Every row of every table, as text behind the table's name, to be compared."""
    with connection.cursor() as cursor:
        cursor.execute(_everything())
        return sorted(cursor.fetchall())


def rows_of(account: User) -> set[str]:
    """Every row that belongs to the account's sessions."""
    ids = list(Session.objects.filter(account=account).values_list("pk", flat=True))
    return {
        f"{table} {row}"
        for table, row in all_rows()
        if any(session_id in row for session_id in ids)
    }


@cache
def _everything() -> str:
    """One statement for all tables, since it is made before and after thousands of requests;
    without what only migrations write."""
    still = {"auth_permission", "django_content_type", "django_migrations"}
    tables = sorted(set(connection.introspection.table_names()) - still)
    return " UNION ALL ".join(
        f"SELECT '{table}', {_as_text(table)} FROM {table}" for table in tables
    )


def _as_text(table: str) -> str:
    """What makes a text of a row that no other row has."""
    if connection.vendor == "postgresql":
        return f"{table}::text"
    with connection.cursor() as cursor:
        columns = connection.introspection.get_table_description(cursor, table)
    return " || ',' || ".join(f'quote("{column.name}")' for column in columns)


def _named(marker: str) -> dict[str, Any]:
    return {
        "title": f"title {marker}",
        "external_id": f"external {marker}",
        "agent_id": f"agent {marker}",
        "user_id": f"user {marker}",
        "metadata": {"project": f"project {marker}"},
        "working_memory": {"goal": f"goal {marker}"},
    }


def _conversation(marker: str) -> list[dict[str, Any]]:
    call = {
        "id": f"provider {marker}",
        "type": "function",
        "function": {"name": "ls", "arguments": f'"{marker}"'},
    }
    first = {"role": "user", "content": marker, "client_message_id": f"client {marker}"}
    return [
        first,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": f"still {marker}"},
    ]


def _interrupted(account: User, marker: str, moment: datetime) -> str:
    """A run whose worker has vanished, in a session of its own: only there may it go on."""
    earlier = moment - timedelta(hours=1)
    session = make_session(account=account, title=f"paused {marker}", now=earlier)
    return make_run(session=session, lease_seconds=10, now=earlier, input=marker).run_id
