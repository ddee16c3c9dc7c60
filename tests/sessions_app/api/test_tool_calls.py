"""Tool calls over the API: recorded, finished, settled, found."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Session, ToolCall
from tests.api_client import APIClient
from tests.factories import add_messages, make_run, make_tool_call

FIELDS = [
    "object",
    "id",
    "session_id",
    "run_id",
    "tool_call_id",
    "name",
    "arguments",
    "status",
    "result",
    "error",
    "message_sequence",
    "result_sequence",
    "started_at",
    "finished_at",
    "duration_ms",
    "session_version",
]
CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"b": 1}'}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "done"}


@pytest.fixture
def path(session: Session) -> str:
    return f"/sessions/{session.session_id}/tool-calls"


def open_calls(api: APIClient, session: Session) -> list[str]:
    body = api.get(f"/sessions/{session.session_id}").json()
    assert body["open_tool_call_count"] == len(body["open_tool_calls"])
    return list(body["open_tool_calls"])


class TestStartingAToolCall:
    def test_answers_201_with_its_place(self, api: APIClient, path: str, session: Session) -> None:
        answer = api.post(path, {"name": "ls", "arguments": {"b": 1, "a": 2}})
        call = answer.json()
        assert answer.status_code == 201
        assert answer.headers["Location"] == f"/api/v1/tool-calls/{call['id']}"
        assert list(call) == FIELDS
        assert (call["status"], list(call["arguments"])) == ("RUNNING", ["b", "a"])
        assert api.get(f"/tool-calls/{call['id']}").json() == call
        assert open_calls(api, session) == [call["id"]]

    @pytest.mark.parametrize("arguments", [None, "", "{", [], 5, True, {"a": None}])
    def test_takes_any_arguments(self, api: APIClient, path: str, arguments: Any) -> None:
        call = api.post(path, {"name": "ls", "arguments": arguments}).json()
        assert call["arguments"] == arguments

    def test_enriches_the_call_that_a_message_made(
        self, api: APIClient, path: str, session: Session
    ) -> None:
        add_messages(CALLING, session=session)
        answer = api.post(path, {"name": "ls", "tool_call_id": "c1"})
        call = answer.json()
        assert (answer.status_code, "Location" in answer.headers) == (200, False)
        assert (call["message_sequence"], call["status"]) == (1, "RUNNING")
        assert call["arguments"] == '{"b": 1}'

    def test_never_opens_what_has_ended(self, api: APIClient, path: str, session: Session) -> None:
        add_messages(CALLING, RESULT, session=session)
        answer = api.post(path, {"name": "ls", "tool_call_id": "c1"})
        assert (answer.status_code, answer.json()["status"]) == (200, "SUCCEEDED")

    def test_writes_for_a_run(self, api: APIClient, path: str, session: Session) -> None:
        run = make_run(session=session)
        call = api.post(path, {"name": "ls", "run_id": run.run_id, "attempt": 1}).json()
        assert call["run_id"] == run.run_id
        refused = api.post(path, {"name": "ls", "run_id": run.run_id, "attempt": 0})
        assert (refused.status_code, refused.json()["code"]) == (409, "run_superseded")

    def test_is_done_once_per_key(self, api: APIClient, path: str) -> None:
        first = api.post(path, {"name": "ls"}, Idempotency_Key="k")
        again = api.post(path, {"name": "ls"}, Idempotency_Key="k")
        assert (again.status_code, again.json()) == (201, first.json())
        assert ToolCall.objects.count() == 1

    def test_compares_the_version(self, api: APIClient, path: str) -> None:
        assert api.post(path, {"name": "ls"}, If_Match='"2"').status_code == 412


class TestFinishingAToolCall:
    @pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "CANCELLED"])
    def test_says_how_it_ended(
        self, api: APIClient, path: str, session: Session, status: str
    ) -> None:
        call = make_tool_call(session=session)
        given = {"status": status, "result": {"b": 1}, "duration_ms": 12}
        body = api.post(f"/tool-calls/{call.id}/finish", given).json()
        assert {name: body[name] for name in given} == given
        assert body["finished_at"]
        assert open_calls(api, session) == []

    def test_keeps_the_error(self, api: APIClient, session: Session) -> None:
        call = make_tool_call(session=session)
        error = {"type": "TimeoutError", "message": "after 30 s"}
        body = api.post(f"/tool-calls/{call.id}/finish", {"status": "FAILED", "error": error})
        assert body.json()["error"] == error

    def test_fills_in_what_the_messages_did_not_say(self, api: APIClient, session: Session) -> None:
        add_messages(CALLING, RESULT, session=session)
        call = ToolCall.objects.get()
        given = {"status": "FAILED", "result": "other", "duration_ms": 1234}
        body = api.post(f"/tool-calls/{call.id}/finish", given).json()
        assert (body["status"], body["result"], body["duration_ms"]) == ("SUCCEEDED", "done", 1234)

    def test_is_done_once_per_key_and_session(self, api: APIClient, session: Session) -> None:
        """Its path does not name the session, and the record still goes with it."""
        path = f"/tool-calls/{make_tool_call(session=session).id}/finish"
        first = api.post(path, {"status": "SUCCEEDED", "result": "secret"}, Idempotency_Key="k")
        again = api.post(path, {"status": "SUCCEEDED", "result": "secret"}, Idempotency_Key="k")
        assert again.json() == first.json()
        api.delete(f"/sessions/{session.session_id}")
        gone = api.post(path, {"status": "SUCCEEDED", "result": "secret"}, Idempotency_Key="k")
        assert gone.status_code == 410

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"status": "RUNNING"},
            {"status": "succeeded"},
            {"status": None},
            {"status": []},
            {"status": "FAILED", "error": "boom"},
            {"status": "FAILED", "error": {"code": 1}},
            {"status": "FAILED", "error": {"type": 1}},
            {"status": "FAILED", "error": {"type": "x" * 256}},
            {"status": "FAILED", "error": {"message": "x" * 4001}},
            {"status": "FAILED", "duration_ms": -1},
            {"status": "FAILED", "duration_ms": 1.5},
            {"status": "FAILED", "duration_ms": True},
            {"status": "FAILED", "duration_ms": 10**20},
            {"status": "FAILED", "unknown": 1},
        ],
    )
    def test_refuses_what_is_no_outcome(self, api: APIClient, session: Session, body: Any) -> None:
        call = make_tool_call(session=session)
        assert api.post(f"/tool-calls/{call.id}/finish", body).status_code == 400
        assert open_calls(api, session) == [call.id]


class TestSettlingAToolCall:
    """Report PAIR-05: a dangling call could be repaired only by wiping the session."""

    def test_closes_it_once(self, api: APIClient, session: Session) -> None:
        add_messages(CALLING, {"role": "user", "content": "still there?"}, session=session)
        call = ToolCall.objects.get()
        path = f"/tool-calls/{call.id}/settle"
        first = api.post(path, {"reason": "worker died"}).json()
        again = api.post(path, {"reason": "again"})
        assert (first["status"], first["changed"]) == ("CANCELLED", True)
        assert first["error"] == {"type": "settled", "message": "worker died"}
        assert (again.status_code, again.json()) == (200, {**first, "changed": False})
        assert open_calls(api, session) == []
        events = api.get(f"/sessions/{session.session_id}/events").json()["data"]
        settled = [event for event in events if event["subject"] == "tool_call"]
        assert [event["reason"] for event in settled] == ["worker died"]
        history = api.get(f"/sessions/{session.session_id}/messages").json()["data"]
        assert len(history) == 2

    def test_refuses_an_answered_one(self, api: APIClient, session: Session) -> None:
        add_messages(CALLING, RESULT, session=session)
        call = ToolCall.objects.get()
        refused = api.post(f"/tool-calls/{call.id}/settle", {"reason": "r"})
        assert (refused.status_code, refused.json()["code"]) == (409, "invalid_transition")
        assert refused.json()["current_status"] == "SUCCEEDED"

    @pytest.mark.parametrize(
        "body", [None, {}, {"reason": None}, {"reason": 5}, {"reason": "x" * 1001}]
    )
    def test_needs_a_reason(self, api: APIClient, session: Session, body: Any) -> None:
        call = make_tool_call(session=session)
        assert api.post(f"/tool-calls/{call.id}/settle", body).status_code == 400

    @pytest.mark.parametrize("move", ["finish", "settle"])
    def test_compares_the_version(self, api: APIClient, session: Session, move: str) -> None:
        call = make_tool_call(session=session)
        body = {"reason": "r"} if move == "settle" else {"status": "SUCCEEDED"}
        assert api.post(f"/tool-calls/{call.id}/{move}", body, If_Match='"1"').status_code == 412
        assert api.post(f"/tool-calls/{call.id}/{move}", body, If_Match='"2"').status_code == 200


class TestTheListOfToolCalls:
    def test_has_the_newest_first(self, api: APIClient, path: str, session: Session) -> None:
        ids = [make_tool_call(session=session).id for _ in range(3)]
        assert [call["id"] for call in api.get(path).json()["data"]] == ids[::-1]

    def test_is_filtered(self, api: APIClient, path: str, session: Session) -> None:
        run = make_run(session=session)
        mine = make_tool_call(session=session, name="cat", run_id=run.run_id).id
        other = make_tool_call(session=session, name="ls").id
        api.post(f"/tool-calls/{other}/finish", {"status": "FAILED"})

        def found(**query: str) -> list[str]:
            return [call["id"] for call in api.get(path, query).json()["data"]]

        assert found(status="RUNNING") == found(name="cat") == found(run_id=run.run_id) == [mine]
        assert found(status="FAILED,SUCCEEDED") == [other]
        assert found(status="PENDING,RUNNING,FAILED") == [other, mine]
        assert found(run_id="run_of_nobody") == found(name="CAT") == []

    def test_ends_a_page_at_its_size(
        self, api: APIClient, path: str, session: Session, settings: Any
    ) -> None:
        for _ in range(3):
            make_tool_call(session=session, arguments="x" * 800)
        settings.MAX_PAGE_BYTES = 1000
        page = api.get(path).json()
        assert len(page["data"]) == 1
        assert page["next_cursor"]

    @pytest.mark.parametrize("count", [1, 20])
    def test_costs_three_queries(
        self, api: APIClient, path: str, session: Session, count: int
    ) -> None:
        """Authentication aside: the session, the sizes, and the calls that fit."""
        for _ in range(count):
            make_tool_call(session=session)
        with CaptureQueriesContext(connection) as queries:
            api.get(path)
        assert len(queries) == 2 + 3
