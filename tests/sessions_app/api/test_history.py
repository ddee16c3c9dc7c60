"""Reading messages over the API, and taking them away again."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Message, Session
from tests.api_client import APIClient
from tests.factories import add_messages, make_messages, make_run

# The token with its account, and the account's permissions.
AUTHENTICATION = 2
CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "done"}


@pytest.fixture
def path(session: Session) -> str:
    return f"/sessions/{session.session_id}/messages"


def sequences(page: dict[str, Any]) -> list[int]:
    return [message["sequence"] for message in page["data"]]


class TestTheHistory:
    def test_of_an_empty_session_is_empty(self, api: APIClient, path: str) -> None:
        assert api.get(path).json() == {
            "data": [],
            "first_sequence": None,
            "last_sequence": None,
            "has_more": False,
        }

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ({}, (range(1, 11), False)),
            ({"limit": 3}, ([1, 2, 3], True)),
            ({"limit": 10}, (range(1, 11), False)),
            ({"limit": 3, "order": "desc"}, ([10, 9, 8], True)),
            ({"after": 7}, ([8, 9, 10], False)),
            ({"after": 0, "limit": 1}, ([1], True)),
            ({"before": 3}, ([1, 2], False)),
            ({"after": 3, "before": 6}, ([4, 5], False)),
            ({"before": 6, "order": "desc", "limit": 2}, ([5, 4], True)),
            ({"after": 10}, ([], False)),
            ({"after": 6, "before": 3}, ([], False)),
            ({"after": 2**63 - 1}, ([], False)),
        ],
    )
    def test_is_read_in_pages(
        self,
        api: APIClient,
        path: str,
        session: Session,
        query: dict[str, Any],
        expected: tuple[Any, bool],
    ) -> None:
        make_messages(session=session, count=10)
        page = api.get(path, query).json()
        numbers, more = expected
        assert (sequences(page), page["has_more"]) == (list(numbers), more)
        assert page["first_sequence"] == min(numbers, default=None)
        assert page["last_sequence"] == max(numbers, default=None)

    @pytest.mark.parametrize("limit", [1, 7, 50])
    def test_is_walked_in_order_of_the_sequence(
        self, api: APIClient, path: str, session: Session, limit: int
    ) -> None:
        """Reports ORD-01, PAG-01: all 30 have one time."""
        make_messages(session=session, count=30)
        for order, bound, last in (("asc", "after", "last"), ("desc", "before", "first")):
            seen: list[int] = []
            query: dict[str, Any] = {"limit": limit, "order": order}
            while True:
                page = api.get(path, query).json()
                seen += sequences(page)
                if not page["has_more"]:
                    break
                query[bound] = page[f"{last}_sequence"]
            assert seen == list(range(1, 31))[:: 1 if order == "asc" else -1]

    def test_is_filtered(self, api: APIClient, path: str, session: Session) -> None:
        run = make_run(session=session)
        item = {"type": "web_search_call", "id": "ws_1"}
        add_messages({"role": "user", "content": "a"}, session=session)
        add_messages({"role": "assistant", "content": "b"}, session=session, run_id=run.run_id)
        add_messages({"item": item}, session=session)
        assert sequences(api.get(path, {"role": "assistant"}).json()) == [2]
        assert sequences(api.get(path, {"run_id": run.run_id}).json()) == [2]
        assert sequences(api.get(path, {"run_id": "run_of_nobody"}).json()) == []
        assert sequences(api.get(path, {"type": "web_search_call"}).json()) == [3]
        assert sequences(api.get(path, {"type": "message", "role": "user"}).json()) == [1]

    def test_shows_superseded_messages_if_asked(
        self, api: APIClient, path: str, session: Session
    ) -> None:
        make_messages(session=session, count=3)
        Message.objects.filter(session=session, sequence=3).update(superseded_at=session.created_at)
        assert sequences(api.get(path).json()) == [1, 2]
        page = api.get(path, {"include_superseded": "true"}).json()
        assert sequences(page) == [1, 2, 3]
        assert ["superseded_at" in message for message in page["data"]] == [False, False, True]

    def test_ends_a_page_at_its_size(
        self, api: APIClient, path: str, session: Session, settings: Any
    ) -> None:
        for length in (10, 3000, 10, 10):
            add_messages({"role": "user", "content": "x" * length}, session=session)
        settings.MAX_PAGE_BYTES = 1000
        first = api.get(path).json()
        second = api.get(path, {"after": 1}).json()
        third = api.get(path, {"after": 2}).json()
        assert [sequences(page) for page in (first, second, third)] == [[1], [2], [3, 4]]
        assert [page["has_more"] for page in (first, second, third)] == [True, True, False]

    @pytest.mark.parametrize("count", [1, 60])
    def test_costs_three_queries_and_loads_what_it_shows(
        self, api: APIClient, path: str, session: Session, count: int
    ) -> None:
        """The session, the sizes, and the messages that fit."""
        make_messages(session=session, count=count)
        with CaptureQueriesContext(connection) as queries:
            api.get(path)
        assert len(queries) == AUTHENTICATION + 3
        loading = queries[-1]["sql"]
        assert '"text"' not in loading


class TestOneMessage:
    def test_is_read_by_its_sequence(self, api: APIClient, path: str, session: Session) -> None:
        make_messages(session=session, count=2)
        assert api.get(f"{path}/2").json()["content"] == "Message 2"

    @pytest.mark.parametrize(
        "name",
        ["0", "3", "-1", "01", "1.0", "1e0", "+1", " 1", "٣", "abc", "9" * 19, "9" * 30, "%00"],
    )
    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    def test_answers_404_to_what_is_no_sequence(
        self, api: APIClient, path: str, session: Session, name: str, method: str
    ) -> None:
        """Report DATA-04: an integer too large for the database was a 500."""
        make_messages(session=session, count=2)
        assert api.send(method, f"{path}/{name}").status_code == 404

    def test_is_purged_and_keeps_its_place(
        self, api: APIClient, path: str, session: Session
    ) -> None:
        add_messages({"role": "user", "content": "secret", "own": "secret"}, session=session)
        make_messages(session=session)
        assert api.delete(f"{path}/1").status_code == 204
        message = api.get(f"{path}/1").json()
        assert (message["content"], message["role"]) == (None, "user")
        assert message["removed_at"]
        assert "own" not in message
        assert sequences(api.get(path).json()) == [2]
        assert sequences(api.get(path, {"include_superseded": "true"}).json()) == [2]
        assert api.delete(f"{path}/1").status_code == 204

    def test_keeps_a_call_that_has_a_result(
        self, api: APIClient, path: str, session: Session
    ) -> None:
        add_messages(CALLING, RESULT, session=session)
        refused = api.delete(f"{path}/1")
        assert (refused.status_code, refused.json()["code"]) == (409, "has_result")
        assert api.delete(f"{path}/2").status_code == 204
        assert api.delete(f"{path}/1").status_code == 204

    def test_compares_the_version(self, api: APIClient, path: str, session: Session) -> None:
        make_messages(session=session)
        assert api.delete(f"{path}/1", If_Match='"1"').status_code == 412
        assert api.delete(f"{path}/1", If_Match='"2"').status_code == 204

    def test_is_never_numbered_again(self, api: APIClient, path: str, session: Session) -> None:
        """Report RUN-08."""
        make_messages(session=session, count=2)
        api.post(f"{path}/pop")
        added = api.post(path, {"role": "user", "content": "next"}).json()
        assert added["messages"][0]["sequence"] == 3


class TestPopping:
    def test_returns_the_newest_message(self, api: APIClient, path: str, session: Session) -> None:
        make_messages(session=session, count=2)
        newest = api.get(f"{path}/2").json()
        answer = api.post(f"{path}/pop")
        assert (answer.status_code, answer.json()) == (200, newest)
        assert sequences(api.get(path).json()) == [1]

    def test_a_result_leaves_its_call_unanswered(
        self, api: APIClient, path: str, session: Session
    ) -> None:
        add_messages(CALLING, RESULT, session=session)
        assert api.post(f"{path}/pop").json()["role"] == "tool"
        (call,) = api.get(f"/sessions/{session.session_id}/tool-calls").json()["data"]
        assert (call["status"], call["result"], call["result_sequence"]) == ("PENDING", None, None)

    def test_a_turn_returns_all_of_it_in_order(
        self, api: APIClient, path: str, session: Session
    ) -> None:
        make_messages(session=session)
        add_messages({"role": "user", "content": "go"}, CALLING, RESULT, session=session)
        stored = api.get(path, {"after": 1}).json()["data"]
        assert api.post(f"{path}/pop", {"turn": True}).json() == {"messages": stored}
        assert sequences(api.get(path).json()) == [1]

    @pytest.mark.parametrize("body", [None, {"turn": False}, {"turn": True}])
    def test_finds_nothing_in_an_empty_session(self, api: APIClient, path: str, body: Any) -> None:
        assert api.post(f"{path}/pop", body).status_code == 404

    def test_is_answered_again_by_its_key(
        self, api: APIClient, path: str, session: Session
    ) -> None:
        make_messages(session=session, count=2)
        first = api.post(f"{path}/pop", Idempotency_Key="k").json()
        again = api.post(f"{path}/pop", Idempotency_Key="k")
        assert (again.json(), again.headers["Idempotency-Replayed"]) == (first, "true")
        assert sequences(api.get(path).json()) == [1]

    def test_compares_the_version(self, api: APIClient, path: str, session: Session) -> None:
        make_messages(session=session)
        assert api.post(f"{path}/pop", If_Match='"1"').status_code == 412
