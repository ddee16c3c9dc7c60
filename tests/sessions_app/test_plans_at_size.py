"""How PostgreSQL finds what every request asks for, among a million messages (report BIG-02).

The statements are those that the endpoints really send, captured on the way. Without statistics of
full tables a planner says nothing about production, so the tables are full.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Message, Session, ToolCall
from tests.api_client import APIClient
from tests.domain import calling, result, user
from tests.factories import add_messages, make_session

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="reads plans of PostgreSQL"),
]

_SESSIONS = """
INSERT INTO sessions_app_session ({columns})
SELECT {values} FROM sessions_app_session, generate_series(1, 100000) AS number
WHERE session_id = %s
"""
_MESSAGES = """
INSERT INTO sessions_app_message ({columns})
SELECT {values} FROM sessions_app_message, generate_series(1, 1000000) AS number
WHERE session_id = %s AND sequence = 1
"""
_CALLS = """
INSERT INTO sessions_app_toolcall ({columns})
SELECT {values} FROM sessions_app_toolcall, generate_series(1, 200000) AS number
WHERE session_id = %s
"""
# What each copied row has of its own; a hundred thousand messages are one session's.
_OWN = {
    "sessions_app_session": {
        "session_id": "'sess_' || lpad(number::text, 26, '0')",
        "user_id": "'user-' || number %% 1000",
        "agent_id": "'agent-' || number %% 7",
        "last_activity_at": "last_activity_at - number * interval '1 second'",
    },
    "sessions_app_message": {
        "message_id": "'msg_' || lpad(number::text, 26, '0')",
        "session_id": "CASE WHEN number <= 100000 THEN 'sess_' || lpad('1', 26, '0') "
        "ELSE 'sess_' || lpad((number %% 100000 + 1)::text, 26, '0') END",
        "sequence": "number",
    },
    "sessions_app_toolcall": {
        "id": "'call_' || lpad(number::text, 26, '0')",
        "session_id": "CASE WHEN number <= 50000 THEN 'sess_' || lpad('1', 26, '0') "
        "ELSE 'sess_' || lpad((number %% 100000 + 1)::text, 26, '0') END",
    },
}
LONG = "sess_" + "1".rjust(26, "0")
PATH = f"/sessions/{LONG}"
# Authentication has small tables of its own, which a planner may as well scan.
_EXPLAINED = re.compile(r'(?!.*FROM "(?:sessions_app_accesstoken|auth_)).*(?:SELECT|WITH|UPDATE) ')
_INDEX = re.compile(
    r"(?:Index Scan|Index Only Scan|Bitmap Index Scan)(?: Backward)?(?: using| on) (\w+)"
)


def multiply(statement: str, model: Any, session_id: str) -> None:
    own = _OWN[model._meta.db_table]
    columns = [field.column for field in model._meta.concrete_fields]
    values = ", ".join(own.get(column, column) for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(statement.format(columns=", ".join(columns), values=values), [session_id])


@pytest.fixture
def full(agent: User) -> Session:
    """The longest of 100,000 sessions that hold a million messages."""
    seed = make_session(account=agent, idle_timeout_seconds=86_400)
    add_messages(user("seed"), calling("c0"), result("c0"), session=seed)
    multiply(_SESSIONS, Session, seed.session_id)
    multiply(_MESSAGES, Message, seed.session_id)
    multiply(_CALLS, ToolCall, seed.session_id)
    session = Session.objects.get(pk=LONG)
    session.last_sequence = session.message_count = 100_000
    session.save()
    add_messages(calling("c1", "c2"), result("c1"), session=session)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return session


# What a client sends, and the indexes by which its statements find their rows.
HOT: dict[str, tuple[Callable[[APIClient], Any], set[str]]] = {
    "append": (
        lambda api: api.post(f"{PATH}/messages", user(), idempotency_key="k"),
        {"sessions_app_session_pkey"},
    ),
    "append under a client's id": (
        lambda api: api.post(f"{PATH}/messages", user(client_message_id="m")),
        {"sessions_app_session_pkey", "message_client_id_unique"},
    ),
    "append a result": (
        lambda api: api.post(f"{PATH}/messages", result("c2")),
        {"sessions_app_session_pkey", "tool_call_unanswered"},
    ),
    "read a page": (
        lambda api: api.get(f"{PATH}/messages", {"after": 50_000}),
        {"sessions_app_session_pkey", "message_sequence_unique"},
    ),
    "list the newest": (lambda api: api.get("/sessions"), {"session_by_activity"}),
    "continue the last one": (
        lambda api: api.get("/sessions", {"user_id": "user-7", "agent_id": "agent-3", "limit": 1}),
        {"session_by_user_and_agent"},
    ),
    "list a user's": (
        lambda api: api.get("/sessions", {"user_id": "user-7"}),
        {"session_by_user_and_agent"},
    ),
    "list by creation": (
        lambda api: api.get("/sessions", {"order": "created_at"}),
        {"session_by_creation"},
    ),
    "find by external id": (
        lambda api: api.get("/sessions", {"external_id": "x"}),
        {"session_external_id_unique"},
    ),
}


def test_each_hot_statement_finds_its_rows_by_its_index(api: APIClient, full: Session) -> None:
    found = {name: plans_of(request, api) for name, (request, _) in HOT.items()}
    scanned = {name: plan for name, plan in found.items() if "Seq Scan" in plan}
    assert scanned == {}
    used = {name: set(_INDEX.findall(plan)) for name, plan in found.items()}
    assert used == {name: indexes for name, (_, indexes) in HOT.items()}


def plans_of(request: Callable[[APIClient], Any], api: APIClient) -> str:
    """The plans of all that the request asks and writes, in one text."""
    with CaptureQueriesContext(connection) as captured:
        assert request(api).status_code < 300
    plans = []
    for sql in [query["sql"] for query in captured if _EXPLAINED.match(query["sql"])]:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {sql}")
            plans += [line for (line,) in cursor.fetchall()]
    return "\n".join(plans)
