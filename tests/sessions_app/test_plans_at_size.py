"""How PostgreSQL finds what every request asks for, among a million messages (report BIG-02).

The statements are those that the endpoints really send, captured on the way. Without statistics of
full tables a planner says nothing about production, so the tables are full.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker

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
SELECT {values} FROM sessions_app_session, generate_series(1, {count}) AS number
WHERE session_id = %s
"""
_MESSAGES = """
INSERT INTO sessions_app_message ({columns})
SELECT {values} FROM sessions_app_message, generate_series(1, {count}) AS number
WHERE session_id = %s AND sequence = 1
"""
# A text for every fourth message; "common" is in all of them, "needle" in two.
_ENTRIES = """
INSERT INTO sessions_app_searchentry (account_id, session_id, kind, subject_id, terms)
SELECT message.account_id, message.session_id, 'message', message.message_id, (
    'common w' || number % 1000 || ' v' || number % 777
    || CASE WHEN number % 400000 = 8 THEN ' needle' ELSE '' END
)::tsvector
FROM (
    SELECT message_id, session_id, account_id, row_number() OVER (ORDER BY message_id) AS number
    FROM sessions_app_message JOIN sessions_app_session USING (session_id)
) AS message
WHERE number % 4 = 0
"""
_CALLS = """
INSERT INTO sessions_app_toolcall ({columns})
SELECT {values} FROM sessions_app_toolcall, generate_series(1, {count}) AS number
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
ITEM = "msg_" + "50000".rjust(26, "0")
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
# Authentication has small tables of its own, which a planner may as well scan.
_EXPLAINED = re.compile(
    r'(?!.*(?:FROM|UPDATE) "(?:sessions_app_accesstoken|auth_))'
    # Of a word that looks common, ten thousand texts are counted in whatever order they stand.
    r"(?!SELECT count\(\*\) FROM \(SELECT 1 .* LIMIT 10001\)).*(?:SELECT|WITH|UPDATE) "
)
_INDEX = re.compile(
    r"(?:Index Scan|Index Only Scan|Bitmap Index Scan)(?: Backward)?(?: using| on) (\w+)"
)


def multiply(statement: str, model: Any, session_id: str, count: int) -> None:
    own = _OWN[model._meta.db_table]
    columns = [field.column for field in model._meta.concrete_fields]
    values = ", ".join(own.get(column, column) for column in columns)
    with connection.cursor() as cursor:
        # As long as a million rows take on a machine that has other work, too.
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute(
            statement.format(columns=", ".join(columns), values=values, count=count), [session_id]
        )


def index_messages() -> None:
    with connection.cursor() as cursor:
        # To build an index of all takes a fifth of the time that to let it grow does.
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'search_terms'")
        (making,) = cursor.fetchone()
        cursor.execute("DELETE FROM sessions_app_searchentry")
        cursor.execute("DROP INDEX search_terms")
        cursor.execute(_ENTRIES)
        cursor.execute(making)


@pytest.fixture(scope="module", autouse=True)
def given_back(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """What was taken back still fills the tables, and the planner's idea of them: all tests after
    these would be ten times slower. No test leaves a row in them, so that TRUNCATE takes nothing
    else; VACUUM would read a million rows."""
    yield
    with django_db_blocker.unblock(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(f"TRUNCATE {', '.join([*_OWN, 'sessions_app_searchentry'])} CASCADE")


@pytest.fixture
def full(agent: User) -> Iterator[Session]:
    """The longest of 100,000 sessions that hold a million messages."""
    seed = make_session(account=agent, idle_timeout_seconds=86_400)
    add_messages(user("seed"), calling("c0"), result("c0"), session=seed)
    multiply(_SESSIONS, Session, seed.session_id, 100_000)
    multiply(_MESSAGES, Message, seed.session_id, 1_000_000)
    multiply(_CALLS, ToolCall, seed.session_id, 200_000)
    index_messages()
    session = Session.objects.get(pk=LONG)
    session.last_sequence = session.message_count = 100_000
    session.save()
    add_messages(calling("c1", "c2"), result("c1"), session=session)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    yield session
    # Or the end of the test would check a million references, for as long as all of this took.
    transaction.set_rollback(True)


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
    "read items behind one": (
        lambda api: api.get(f"/v1/conversations/{LONG}/items", {"after": ITEM}),
        {
            "sessions_app_session_pkey",
            "message_by_item",
            "sessions_app_message_pkey",
            "message_sequence_unique",
        },
    ),
    "add an item with an id": (
        lambda api: api.post(f"/v1/conversations/{LONG}/items", {"items": [THOUGHT]}),
        {"sessions_app_session_pkey", "message_by_item"},
    ),
    "list conversations": (
        lambda api: api.get("/v1/conversations", {"after": LONG}),
        {"sessions_app_session_pkey", "session_by_creation"},
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
    # The newest texts (of the only account), all by the index, what they are and whose.
    "search a rare word": (
        lambda api: api.get("/search", {"q": "needle"}),
        {
            "sessions_app_searchentry_pkey",
            "search_terms",
            "sessions_app_message_pkey",
            "sessions_app_session_pkey",
        },
    ),
    # The newest texts fill the page.
    "search a common word": (
        lambda api: api.get("/search", {"q": "comm"}),
        {"sessions_app_searchentry_pkey", "sessions_app_message_pkey", "sessions_app_session_pkey"},
    ),
    "list by a rare word": (
        lambda api: api.get("/sessions", {"q": "needle"}),
        {"search_terms", "sessions_app_session_pkey"},
    ),
    "list by a common word": (
        lambda api: api.get("/sessions", {"q": "comm"}),
        {"session_by_activity", "search_subject_unique"},
    ),
}


def test_each_hot_statement_finds_its_rows_by_its_index(api: APIClient, full: Session) -> None:
    found = {name: plans_of(request, api) for name, (request, _) in HOT.items()}
    scanned = {name: plan for name, plan in found.items() if "Seq Scan" in plan}
    assert scanned == {}
    used = {name: set(_INDEX.findall(plan)) for name, plan in found.items()}
    assert used == {name: indexes for name, (_, indexes) in HOT.items()}


@pytest.mark.soak
def test_the_last_one_is_found_by_its_index_among_a_million_sessions(
    api: APIClient, agent: User
) -> None:
    """Report of the plan: one index scan of one row, in the order of the index."""
    seed = make_session(account=agent)
    multiply(_SESSIONS, Session, seed.session_id, 1_000_000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sessions_app_session")
    plan = plans_of(HOT["continue the last one"][0], api)
    assert "Index Scan using session_by_user_and_agent" in plan
    assert not re.search("Sort|Seq Scan|Bitmap", plan)


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
