"""Appending messages over the API: answers, keys, conditions, limits, and what it costs."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import IdempotencyRecord, Message, Session
from tests.api_client import APIClient
from tests.factories import make_messages, make_run, make_session

HELLO = {"role": "user", "content": "Hello"}
CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "done"}


@pytest.fixture
def path(session: Session) -> str:
    return f"/sessions/{session.session_id}/messages"


def known(text: str, name: str = "m1") -> dict[str, Any]:
    return {"role": "user", "content": text, "client_message_id": name}


class TestAppending:
    def test_one_message_answers_it(self, api: APIClient, path: str, session: Session) -> None:
        answer = api.post(path, HELLO)
        body = answer.json()
        (message,) = body.pop("messages")
        assert (answer.status_code, body) == (
            201,
            {"created_count": 1, "last_sequence": 1, "version": 2},
        )
        assert answer.headers["Location"] == f"/api/v1{path}/1"
        assert api.get(f"{path}/1").json() == message
        assert {**message, **HELLO} == message
        assert (message["sequence"], message["status"]) == (1, "completed")

    def test_several_messages_keeps_their_order(self, api: APIClient, path: str) -> None:
        make = [{"role": "user", "content": str(number)} for number in range(30)]
        body = api.post(path, {"messages": make}).json()
        assert [message["sequence"] for message in body["messages"]] == list(range(1, 31))
        assert [message["content"] for message in body["messages"]] == [
            str(number) for number in range(30)
        ]
        assert (body["created_count"], body["last_sequence"]) == (30, 30)

    def test_names_only_if_that_is_preferred(self, api: APIClient, path: str) -> None:
        answer = api.post(path, {"messages": [HELLO, HELLO]}, Prefer="return=minimal")
        stored = api.get(path).json()["data"]
        expected = [{key: each[key] for key in ("message_id", "sequence")} for each in stored]
        assert answer.headers["Preference-Applied"] == "return=minimal"
        assert answer.json()["messages"] == expected

    @pytest.mark.parametrize("prefer", ["", "return=representation", "respond-async", "minimal"])
    def test_answers_whole_messages_otherwise(self, api: APIClient, path: str, prefer: str) -> None:
        answer = api.post(path, HELLO, Prefer=prefer)
        assert "Preference-Applied" not in answer.headers
        assert answer.json()["messages"][0]["content"] == "Hello"

    def test_writes_for_a_run(self, api: APIClient, path: str, session: Session) -> None:
        run = make_run(session=session)
        claim = {"run_id": run.run_id, "attempt": 1}
        single = api.post(path, {**HELLO, **claim}).json()["messages"][0]
        (batched,) = api.post(path, {"messages": [HELLO], **claim}).json()["messages"]
        assert single["run_id"] == batched["run_id"] == run.run_id
        assert {"attempt", "expected_last_sequence"}.isdisjoint(single)

    def test_refuses_a_superseded_attempt(
        self, api: APIClient, path: str, session: Session
    ) -> None:
        run = make_run(session=session)
        refused = api.post(path, {**HELLO, "run_id": run.run_id, "attempt": 0})
        assert (refused.status_code, refused.json()["code"]) == (409, "run_superseded")
        assert refused.json()["attempt"] == 1

    @pytest.mark.parametrize("extra", [{}, {"attempt": 1}])
    def test_does_not_know_another_sessions_run(
        self, api: APIClient, path: str, agent: User, extra: dict[str, Any]
    ) -> None:
        run = make_run(session=make_session(account=agent))
        assert api.post(path, {**HELLO, "run_id": run.run_id, **extra}).status_code == 404

    def test_compares_the_expected_sequence(
        self, api: APIClient, path: str, session: Session
    ) -> None:
        make_messages(session=session, count=2)
        refused = api.post(path, {**HELLO, "expected_last_sequence": 1})
        assert (refused.status_code, refused.json()["code"]) == (409, "sequence_mismatch")
        assert refused.json()["last_sequence"] == 2
        taken = api.post(path, {"messages": [HELLO], "expected_last_sequence": 2})
        assert taken.status_code == 201

    def test_compares_the_version(self, api: APIClient, path: str) -> None:
        assert api.post(path, HELLO, If_Match='"2"').json()["code"] == "version_mismatch"
        assert api.post(path, HELLO, If_Match='"1"').status_code == 201

    def test_stores_all_or_nothing(self, api: APIClient, path: str) -> None:
        """Report PAIR-04: an orphan result made each later turn fail."""
        refused = api.post(path, {"messages": [HELLO, {**RESULT, "tool_call_id": "ghost"}]})
        assert (refused.status_code, refused.json()["code"]) == (422, "orphan_tool_result")
        assert refused.json()["tool_call_id"] == "ghost"
        assert refused.json()["pointer"] == "/messages/1/tool_call_id"
        assert not Message.objects.exists()

    def test_points_into_a_single_message(self, api: APIClient, path: str) -> None:
        refused = api.post(path, {"role": "user", "content": 5}).json()
        assert refused["errors"][0]["pointer"] == "/content"
        orphan = api.post(path, RESULT).json()
        assert orphan["pointer"] == "/tool_call_id"

    def test_counts_usage(self, api: APIClient, path: str, session: Session) -> None:
        api.post(path, {**HELLO, "usage": {"input_tokens": 5, "cost_usd": "0.1", "own": 1}})
        usage = api.get(f"/sessions/{session.session_id}").json()["usage"]
        assert (usage["input_tokens"], usage["cost_usd"]) == (5, "0.1")

    @pytest.mark.parametrize("before", [0, 400])
    def test_costs_the_same_in_a_long_session(
        self, api: APIClient, path: str, session: Session, before: int
    ) -> None:
        """Report BIG-02. Authentication aside: savepoint, lock, what is written, release."""
        if before:
            make_messages(session=session, count=before)
        with CaptureQueriesContext(connection) as queries:
            api.post(path, {"messages": [HELLO, HELLO]})
        statements = [query["sql"].split()[0] for query in queries][2:]
        written = ["WITH"] if connection.vendor == "postgresql" else ["INSERT", "UPDATE"]
        assert statements == ["SAVEPOINT", "SELECT", *written, "RELEASE"]


class TestAKnownClientMessageId:
    def test_answers_the_stored_message(self, api: APIClient, path: str) -> None:
        first = api.post(path, known("one")).json()
        again = api.post(path, known("one"))
        assert (again.status_code, again.json()["created_count"]) == (200, 0)
        assert again.json()["messages"] == first["messages"]
        assert again.json()["version"] == first["version"]
        assert "Location" not in again.headers

    def test_gives_numbers_to_new_messages_only(self, api: APIClient, path: str) -> None:
        api.post(path, known("one"))
        answer = api.post(path, {"messages": [HELLO, known("one"), known("two", "m2")]})
        body = answer.json()
        assert (answer.status_code, body["created_count"]) == (201, 2)
        assert [message["sequence"] for message in body["messages"]] == [2, 1, 3]
        assert answer.headers["Location"] == f"/api/v1{path}/2"

    def test_refuses_other_content(self, api: APIClient, path: str) -> None:
        api.post(path, known("one"))
        refused = api.post(path, known("two"))
        assert (refused.status_code, refused.json()["code"]) == (422, "client_message_id_reused")
        assert refused.json()["client_message_id"] == "m1"

    def test_counts_before_the_expected_sequence(self, api: APIClient, path: str) -> None:
        api.post(path, {**known("one"), "expected_last_sequence": 0})
        assert api.post(path, {**known("one"), "expected_last_sequence": 0}).status_code == 200

    def test_completes_a_pair_whose_answer_was_lost(self, api: APIClient, path: str) -> None:
        """Report PAIR-03."""
        api.post(path, CALLING)
        result = {**RESULT, "client_message_id": "r1"}
        assert api.post(path, result).status_code == 201
        assert api.post(path, result).status_code == 200
        assert Message.objects.count() == 2

    def test_belongs_to_its_session(self, api: APIClient, path: str, agent: User) -> None:
        api.post(path, known("one"))
        other = f"/sessions/{make_session(account=agent).session_id}/messages"
        assert api.post(other, known("two")).status_code == 201


class TestAKeyedAppend:
    """Report DUP-01: a retry after a lost answer made a second turn."""

    def test_is_done_once(self, api: APIClient, path: str) -> None:
        batch = {"messages": [CALLING, RESULT]}
        first = api.post(path, batch, Idempotency_Key="k")
        again = api.post(path, batch, Idempotency_Key="k")
        assert (again.status_code, again.json()) == (201, first.json())
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.headers["Location"] == first.headers["Location"]
        assert Message.objects.count() == 2

    def test_keeps_the_range_and_not_the_messages(self, api: APIClient, path: str) -> None:
        api.post(path, {"messages": [HELLO] * 5}, Idempotency_Key="k")
        kept = repr(IdempotencyRecord.objects.get().answer)
        assert "Hello" not in kept
        assert "[[1,5]]" in kept

    def test_replays_in_place_beside_known_messages(self, api: APIClient, path: str) -> None:
        api.post(path, known("one"))
        batch = {"messages": [HELLO, known("one"), HELLO]}
        first = api.post(path, batch, Idempotency_Key="k").json()
        assert api.post(path, batch, Idempotency_Key="k").json() == first

    def test_replays_as_short_as_it_was(self, api: APIClient, path: str) -> None:
        first = api.post(path, HELLO, Idempotency_Key="k", Prefer="return=minimal")
        again = api.post(path, HELLO, Idempotency_Key="k")
        assert again.json() == first.json()
        assert again.headers["Preference-Applied"] == "return=minimal"

    def test_replays_after_the_session_was_closed(self, api: APIClient, path: str) -> None:
        first = api.post(path, HELLO, Idempotency_Key="k").json()
        api.post(path.replace("messages", "close"))
        assert api.post(path, HELLO, Idempotency_Key="k").json() == first

    def test_refuses_another_body(self, api: APIClient, path: str) -> None:
        api.post(path, HELLO, Idempotency_Key="k")
        refused = api.post(path, {**HELLO, "content": "Bye"}, Idempotency_Key="k")
        assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")

    def test_belongs_to_its_session_and_account(
        self, api: APIClient, path: str, agent: User
    ) -> None:
        api.post(path, HELLO, Idempotency_Key="k")
        other = f"/sessions/{make_session(account=agent).session_id}/messages"
        assert "Idempotency-Replayed" not in api.post(other, HELLO, Idempotency_Key="k").headers

    def test_is_not_recorded_when_refused(self, api: APIClient, path: str) -> None:
        assert api.post(path, RESULT, Idempotency_Key="k").status_code == 422
        api.post(path, CALLING)
        assert api.post(path, RESULT, Idempotency_Key="k").status_code == 201

    def test_is_twice_without_a_key(self, api: APIClient, path: str) -> None:
        api.post(path, HELLO)
        api.post(path, HELLO)
        assert Message.objects.count() == 2


class TestALimit:
    def test_of_the_body_is_413(self, api: APIClient, path: str, settings: Any) -> None:
        settings.MAX_BODY_BYTES = 1000
        refused = api.post(path, {"role": "user", "content": "x" * 1000})
        assert (refused.status_code, refused.json()["code"]) == (413, "payload_too_large")

    def test_of_the_batch_is_413(self, api: APIClient, path: str) -> None:
        assert api.post(path, {"messages": [HELLO] * 1000}).status_code == 201
        refused = api.post(path, {"messages": [HELLO] * 1001})
        assert (refused.status_code, refused.json()["code"]) == (413, "payload_too_large")

    def test_of_metadata_is_413(self, api: APIClient, path: str) -> None:
        big = {"metadata": {"a": "x" * 16 * 1024}}
        assert api.post("/sessions", big).status_code == 413
        assert api.patch(path.removesuffix("/messages"), big).status_code == 413
        fits = {"metadata": {"a": "x" * (16 * 1024 - len('{"a":""}'))}}
        assert api.post("/sessions", fits).status_code == 201

    def test_of_the_working_memory_is_413(self, api: APIClient, path: str) -> None:
        memory = path.replace("messages", "working-memory")
        assert api.put(memory, {"goal": "x" * 256 * 1024}).status_code == 413
        assert api.patch(memory, {"goal": "x" * 256 * 1024}).status_code == 413
        assert api.put(memory, {"goal": "x" * 255 * 1024}).status_code == 200
        assert (
            api.post("/sessions", {"working_memory": {"goal": "x" * 256 * 1024}}).status_code == 413
        )
