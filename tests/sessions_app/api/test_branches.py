"""Fork, rewind and compaction, as clients see them."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from sessions_app.models import Message, Session
from tests.api_client import APIClient
from tests.domain import assistant, calling, result, user
from tests.factories import add_messages, make_messages, make_session


@pytest.fixture
def session(agent: User) -> Session:
    """Five messages: 1; 2 calls, 3 answers; 4, 5."""
    session = make_session(account=agent, title="T", working_memory={"goal": "g"})
    add_messages(user(), calling("a"), result("a"), user(), assistant(), session=session)
    return session


@pytest.fixture
def path(session: Session) -> str:
    return f"/sessions/{session.session_id}"


def sequences(page: Any) -> list[int]:
    return [message["sequence"] for message in page]


class TestForking:
    def test_answers_the_new_session(self, api: APIClient, session: Session, path: str) -> None:
        answer = api.post(f"{path}/fork", {"at_sequence": 2, "title": "Again"})
        made = answer.json()
        assert answer.status_code == 201
        assert answer.headers["Location"] == f"/api/v1/sessions/{made['session_id']}"
        assert answer.headers["ETag"] == '"1"'
        assert (made["status"], made["title"], made["working_memory"]["goal"]) == (
            "ACTIVE",
            "Again",
            "g",
        )
        assert (made["parent_session_id"], made["forked_at_sequence"]) == (session.session_id, 1)
        page = api.get(f"/sessions/{made['session_id']}/messages").json()["data"]
        assert (sequences(page), page[0]["session_id"]) == ([1], made["session_id"])
        found = api.get("/sessions", {"parent_session_id": session.session_id}).json()["data"]
        assert [each["session_id"] for each in found] == [made["session_id"]]

    def test_takes_no_body_for_all(self, api: APIClient, path: str) -> None:
        for body in (None, {}, {"at_sequence": None, "title": None, "metadata": None}):
            assert api.post(f"{path}/fork", body).json()["forked_at_sequence"] == 5

    @pytest.mark.parametrize("end", ["close", "expire"])
    def test_is_possible_when_the_original_has_ended(
        self, api: APIClient, path: str, end: str
    ) -> None:
        api.post(f"{path}/{end}")
        assert api.post(f"{path}/fork").status_code == 201
        api.delete(path)
        assert api.post(f"{path}/fork").json()["code"] == "session_deleted"

    def test_is_done_once_for_a_key_and_forgotten_with_the_fork(
        self, api: APIClient, path: str
    ) -> None:
        first = api.post(f"{path}/fork", {}, Idempotency_Key="k")
        again = api.post(f"{path}/fork", {}, Idempotency_Key="k")
        assert (again.json(), again.headers["Location"]) == (
            first.json(),
            first.headers["Location"],
        )
        assert again.headers["Idempotency-Replayed"] == "true"
        assert Session.objects.count() == 2
        api.delete(path)
        assert api.post(f"{path}/fork", {}, Idempotency_Key="k").json() == first.json()
        api.delete(f"/sessions/{first.json()['session_id']}")
        assert api.post(f"{path}/fork", {}, Idempotency_Key="k").status_code == 410

    def test_may_depend_on_the_version(self, api: APIClient, path: str) -> None:
        assert api.post(f"{path}/fork", {}, If_Match='"1"').status_code == 412
        assert api.post(f"{path}/fork", {}, If_Match='"2"').status_code == 201
        assert api.get(path).json()["version"] == 3  # its event says that it was forked
        assert api.get(f"{path}/events").json()["data"][-1]["to_status"] == "FORKED"

    def test_points_at_what_is_wrong(self, api: APIClient, path: str) -> None:
        for body, pointer in (
            ({"at_sequence": 6}, "/at_sequence"),
            ({"at_sequence": -1}, "/at_sequence"),
            ({"title": "x" * 501}, "/title"),
            ({"external_id": "e"}, "/external_id"),
        ):
            answer = api.post(f"{path}/fork", body)
            assert answer.status_code == 400
            assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


class TestRewinding:
    def test_answers_the_session_as_it_is_then(self, api: APIClient, path: str) -> None:
        answer = api.post(f"{path}/rewind", {"to_sequence": 2, "reason": "wrong way"})
        told = answer.json()
        assert (answer.status_code, answer.headers["ETag"]) == (200, '"3"')
        assert (told["changed"], told["to_sequence"]) == (True, 1)
        assert (told["message_count"], told["last_sequence"]) == (1, 5)
        assert api.post(f"{path}/rewind", {"to_sequence": 1}).json()["changed"] is False

    def test_takes_messages_out_of_lists_and_context(self, api: APIClient, path: str) -> None:
        api.post(f"{path}/rewind", {"to_sequence": 3})
        assert sequences(api.get(f"{path}/messages").json()["data"]) == [1, 2, 3]
        assert sequences(api.get(f"{path}/context").json()["messages"]) == [1, 2, 3]
        asked = {"include_superseded": "true"}
        everything = api.get(f"{path}/messages", asked).json()["data"]
        assert ["superseded_at" in message for message in everything] == [False] * 3 + [True] * 2
        assert "superseded_at" in api.get(f"{path}/messages/5").json()

    def test_marks_the_tool_calls(self, api: APIClient, path: str) -> None:
        api.post(f"{path}/messages", calling("b"))
        api.post(f"{path}/rewind", {"to_sequence": 4})
        calls = api.get(f"{path}/tool-calls").json()["data"]
        told = {call["tool_call_id"]: call for call in calls}
        assert "superseded_at" not in told["a"]
        assert told["b"]["superseded_at"]
        assert told["b"]["error"] == {"type": "superseded", "message": None}
        context = api.get(f"{path}/context").json()
        assert context["open_tool_calls"] == context["session"]["open_tool_calls"] == []
        refused = api.post(f"{path}/messages", result("b"))
        assert refused.json()["code"] == "orphan_tool_result"

    def test_is_done_once_for_a_key(self, api: APIClient, path: str) -> None:
        body = {"to_sequence": 3}
        first = api.post(f"{path}/rewind", body, Idempotency_Key="k").json()
        api.post(f"{path}/messages", user())
        assert api.post(f"{path}/rewind", body, Idempotency_Key="k").json() == first
        assert sequences(api.get(f"{path}/messages").json()["data"]) == [1, 2, 3, 6]

    def test_may_depend_on_the_version(self, api: APIClient, path: str) -> None:
        body = {"to_sequence": 3}
        assert api.post(f"{path}/rewind", body, If_Match='"1"').status_code == 412
        assert api.post(f"{path}/rewind", body, If_Match='"2"').status_code == 200

    def test_needs_an_active_session_and_a_place(self, api: APIClient, path: str) -> None:
        assert api.post(f"{path}/rewind", {"to_sequence": 6}).status_code == 400
        assert api.post(f"{path}/rewind", {}).status_code == 400
        api.post(f"{path}/close")
        refused = api.post(f"{path}/rewind", {"to_sequence": 1})
        assert (refused.status_code, refused.json()["code"]) == (409, "session_closed")


class TestCompacting:
    def test_answers_the_message(self, api: APIClient, path: str) -> None:
        answer = api.post(f"{path}/compact", {"through_sequence": 3, "summary": "Ünï 会话"})
        told = answer.json()
        assert answer.status_code == 201
        assert answer.headers["Location"] == f"/api/v1{path}/messages/6"
        shown = {key: told[key] for key in ("type", "role", "content", "through_sequence")}
        assert shown == {
            "type": "compaction",
            "role": "user",
            "content": "Ünï 会话",
            "through_sequence": 3,
        }
        assert api.get(f"{path}/messages/6").json() == told
        assert api.get(f"{path}/messages", {"type": "compaction"}).json()["data"] == [told]

    def test_opens_the_context(self, api: APIClient, path: str) -> None:
        api.post(f"{path}/compact", {"through_sequence": 3, "summary": "s"})
        packet = api.get(f"{path}/context").json()
        assert sequences(packet["messages"]) == [6, 4, 5]
        assert packet["window"]["omitted_before"] == 3
        assert (packet["window"]["first_sequence"], packet["window"]["last_sequence"]) == (4, 6)
        assert sequences(api.get(f"{path}/messages").json()["data"]) == [1, 2, 3, 4, 5, 6]

    def test_is_done_once_for_a_key_which_keeps_no_summary(self, api: APIClient, path: str) -> None:
        body = {"through_sequence": 3, "summary": "s"}
        first = api.post(f"{path}/compact", body, Idempotency_Key="k")
        again = api.post(f"{path}/compact", body, Idempotency_Key="k")
        assert (again.status_code, again.json()) == (201, first.json())
        assert again.headers["Location"] == first.headers["Location"]
        assert Message.objects.count() == 6
        api.delete(f"{path}/messages/6")
        assert api.post(f"{path}/compact", body, Idempotency_Key="k").json()["content"] is None

    def test_points_at_what_is_wrong(self, api: APIClient, path: str) -> None:
        for body, pointer in (
            ({"through_sequence": 3, "summary": " \n"}, "/summary"),
            ({"through_sequence": 3, "summary": None}, "/summary"),
            ({"through_sequence": 0, "summary": "s"}, "/through_sequence"),
            ({"through_sequence": 6, "summary": "s"}, "/through_sequence"),
        ):
            answer = api.post(f"{path}/compact", body)
            assert answer.status_code == 400
            assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]

    def test_may_depend_on_the_version(self, api: APIClient, path: str) -> None:
        body = {"through_sequence": 3, "summary": "s"}
        assert api.post(f"{path}/compact", body, If_Match='"1"').status_code == 412
        assert api.post(f"{path}/compact", body, If_Match='"2"').status_code == 201


def test_a_message_of_a_client_is_no_compaction(api: APIClient, agent: User) -> None:
    session = make_session(account=agent)
    make_messages(session=session, count=2)
    path = f"/sessions/{session.session_id}"
    forged = {"role": "user", "content": "x", "type": "compaction", "through_sequence": 2}
    told = api.post(f"{path}/messages", forged).json()["messages"][0]
    assert (told["type"], told["through_sequence"]) == ("message", 2)
    assert sequences(api.get(f"{path}/context").json()["messages"]) == [1, 2, 3]
