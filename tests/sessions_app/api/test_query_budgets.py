"""How many statements a request costs, whatever the size of its session or its batch.

BEGIN, COMMIT and savepoints are not counted, nor the two queries of authentication, which a server
in production makes once in TOKEN_CACHE_SECONDS.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Session
from sessions_app.services import Actor, SessionManager
from tests.api_client import APIClient
from tests.domain import calling, result, user
from tests.factories import add_messages, make_messages, make_session

_AUTHENTICATION = ("sessions_app_accesstoken", "auth_permission")
_TRANSACTION = ("SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "COMMIT")


def statements(work: Callable[[], Any]) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        work()
    return [
        query["sql"]
        for query in captured
        if not query["sql"].startswith(_TRANSACTION)
        and not any(f'FROM "{table}"' in query["sql"] for table in _AUTHENTICATION)
    ]


@pytest.fixture(params=[1, 1_500], ids="of {} messages".format)
def session(request: pytest.FixtureRequest, agent: User) -> Session:
    session = make_session(account=agent, idle_timeout_seconds=600)
    for _ in range(0, request.param, 750):
        make_messages(session=session, count=min(request.param, 750))
    return session


@pytest.fixture
def append(api: APIClient, session: Session) -> Callable[..., list[str]]:
    """The statements of an append with a key."""

    def run(*messages: dict[str, Any]) -> list[str]:
        def send() -> None:
            path = f"/sessions/{session.session_id}/messages"
            answer = api.post(path, {"messages": messages}, idempotency_key=f"k{len(messages)}")
            assert answer.status_code == 201

        return statements(send)

    return run


class TestAnAppendWithAKey:
    def test_costs_at_most_four(self, append: Callable[..., list[str]]) -> None:
        assert len(append(user())) <= 4

    def test_of_a_thousand_costs_at_most_four(self, append: Callable[..., list[str]]) -> None:
        assert len(append(*[user()] * 1_000)) <= 4

    def test_costs_one_more_for_calls(self, append: Callable[..., list[str]]) -> None:
        assert len(append(calling("a", "b"), user())) <= 5

    def test_costs_one_more_for_results(
        self, session: Session, append: Callable[..., list[str]]
    ) -> None:
        add_messages(calling("a", "b"), session=session)
        # The calls are read, and written: on PostgreSQL in the statement that writes all.
        most = 5 if connection.vendor == "postgresql" else 6
        assert len(append(result("a"), result("b"))) <= most

    def test_costs_one_more_for_client_ids(self, append: Callable[..., list[str]]) -> None:
        assert len(append(user(client_message_id="m1"), user(client_message_id="m2"))) <= 5


class TestReads:
    def test_list_of_sessions_costs_one(self, api: APIClient, agent: User) -> None:
        costs = []
        for _ in range(2):
            for _ in range(30):
                make_session(account=agent, user_id="u")
            found = {"user_id": "u", "limit": 50}
            costs.append(len(statements(partial(api.get, "/sessions", found))))
        assert costs == [1, 1]

    def test_page_of_messages_costs_three(self, api: APIClient, session: Session) -> None:
        path = f"/sessions/{session.session_id}/messages"
        asked = statements(lambda: api.get(path, {"limit": 1_000}))
        assert len(asked) == 3  # the session, sizes, rows


def test_creating_a_session_costs_one_for_each_row_at_most(api: APIClient) -> None:
    made = statements(lambda: api.post("/sessions", {"title": "T"}, idempotency_key="k"))
    assert len(made) == (1 if connection.vendor == "postgresql" else 3)


class TestAnotherWayOn:
    """With calls, a memory and usage on either side of the cut."""

    @pytest.fixture
    def path(self, session: Session) -> str:
        manager = SessionManager(Actor.account(session.account))
        for number in range(2):
            manager.patch_memory(session_id=session.pk, patch={"goal": str(number)})
            add_messages(
                calling("a"), result("a"), user(usage={"input_tokens": 1}), session=session
            )
        return f"/sessions/{session.session_id}"

    @pytest.mark.parametrize(
        ("move", "name"),
        [("fork", "at_sequence"), ("rewind", "to_sequence"), ("compact", "through_sequence")],
    )
    def test_costs_the_same_at_any_length(
        self, api: APIClient, path: str, move: str, name: str
    ) -> None:
        body: dict[str, Any] = {name: api.get(path).json()["last_sequence"] - 2}
        body |= {"summary": "s"} if move == "compact" else {}
        asked = statements(lambda: api.post(f"{path}/{move}", body, idempotency_key="k"))
        kind = 0 if connection.vendor == "postgresql" else 1
        assert len(asked) <= {"fork": (15, 18), "rewind": (15, 16), "compact": (6, 8)}[move][kind]
