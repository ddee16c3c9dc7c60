"""Changing and ending a session over the API."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from sessions_app.models import Session
from tests.api_client import APIClient
from tests.factories import make_messages, make_run, make_session, make_tool_call


@pytest.fixture
def session(agent: User) -> Session:
    return make_session(
        account=agent, idle_timeout_seconds=3600, metadata={"a": 1, "b": {"x": 1, "y": 2}}
    )


@pytest.fixture
def path(session: Session) -> str:
    return f"/sessions/{session.session_id}"


class TestPatchingASession:
    """Report CON-08: a partial update replaced the whole document."""

    def test_leaves_what_is_absent(self, api: APIClient, path: str) -> None:
        before = api.get(path).json()
        answer = api.patch(path, {"metadata": {"c": 2}})
        after = answer.json()
        assert (answer.status_code, answer.headers["ETag"]) == (200, '"2"')
        assert after["metadata"] == {"a": 1, "b": {"x": 1, "y": 2}, "c": 2}
        changed = {name for name in after if after[name] != before[name]}
        assert changed == {"metadata", "version", "updated_at"}

    @pytest.mark.parametrize(
        ("patch", "left"),
        [
            ({"a": None}, {"b": {"x": 1, "y": 2}}),
            ({"b": {"x": None}}, {"a": 1, "b": {"y": 2}}),
            ({"b": 1}, {"a": 1, "b": 1}),
            ({"a": {"n": {"m": None, "k": 1}}}, {"a": {"n": {"k": 1}}, "b": {"x": 1, "y": 2}}),
            (None, {}),
        ],
    )
    def test_merges_metadata(self, api: APIClient, path: str, patch: Any, left: Any) -> None:
        assert api.patch(path, {"metadata": patch}).json()["metadata"] == left

    def test_takes_a_merge_patch_by_its_media_type(self, api: APIClient, path: str) -> None:
        answer = api.patch(path, {"title": "T"}, Content_Type="application/merge-patch+json")
        assert answer.json()["title"] == "T"

    def test_resets_by_null(self, api: APIClient, path: str) -> None:
        after = api.patch(path, {"title": None, "idle_timeout_seconds": None}).json()
        assert (after["title"], after["expires_at"]) == (None, None)

    def test_changes_nothing_if_it_is_empty(self, api: APIClient, path: str) -> None:
        before = api.get(path).json()
        assert api.patch(path, {}).json() == before

    def test_names_agent_and_user_once(self, api: APIClient, path: str) -> None:
        assert api.patch(path, {"agent_id": "a", "user_id": "u"}).json()["user_id"] == "u"
        assert api.patch(path, {"agent_id": "a"}).status_code == 200
        refused = api.patch(path, {"agent_id": "b"})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/agent_id")

    @pytest.mark.parametrize(
        "name", ["status", "session_id", "version", "external_id", "expires_at"]
    )
    def test_cannot_touch_the_rest(self, api: APIClient, path: str, name: str) -> None:
        refused = api.patch(path, {name: None})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, f"/{name}")

    def test_compares_the_version(self, api: APIClient, path: str) -> None:
        assert api.patch(path, {"title": "T"}, If_Match='"1"').status_code == 200
        refused = api.patch(path, {"title": "U"}, If_Match='"1"')
        assert (refused.status_code, refused.json()["code"]) == (412, "version_mismatch")
        assert refused.json()["version"] == 2
        assert api.get(path).json()["title"] == "T"


class TestClosingASession:
    def test_keeps_every_byte_and_cancels_what_is_open(
        self, api: APIClient, path: str, session: Session
    ) -> None:
        make_messages(session=session, count=3)
        make_tool_call(session=session)
        make_run(session=session)
        before = api.get(f"{path}/messages").json()
        answer = api.post(f"{path}/close", {"reason": "done"})
        body = answer.json()
        assert (body["status"], body["changed"], body["active_run_id"]) == ("CLOSED", True, None)
        assert body["open_tool_calls"] == []
        assert answer.headers["ETag"] == f'"{body["version"]}"'
        assert api.get(f"{path}/messages").json() == before

    def test_happens_once(self, api: APIClient, path: str) -> None:
        first = api.post(f"{path}/close").json()
        again = api.post(f"{path}/close")
        assert (again.status_code, again.json()) == (200, {**first, "changed": False})

    def test_refuses_writes_afterwards(self, api: APIClient, path: str) -> None:
        api.post(f"{path}/close")
        refused = api.post(f"{path}/messages", {"role": "user", "content": "late"})
        assert (refused.status_code, refused.json()["code"]) == (409, "session_closed")
        assert refused.json()["current_status"] == "CLOSED"
        assert "resume" in refused.json()["detail"]

    def test_and_expiring_exclude_each_other(self, api: APIClient, agent: User) -> None:
        for first, second in (("close", "expire"), ("expire", "close")):
            path = f"/sessions/{make_session(account=agent).session_id}"
            assert api.post(f"{path}/{first}", {"reason": "r"}).json()["changed"] is True
            refused = api.post(f"{path}/{second}")
            assert (refused.status_code, refused.json()["code"]) == (409, "invalid_transition")

    def test_compares_the_version(self, api: APIClient, path: str) -> None:
        assert api.post(f"{path}/close", If_Match='"7"').status_code == 412
        assert api.post(f"{path}/close", If_Match='"1"').status_code == 200

    def test_stands_in_the_events(self, api: APIClient, path: str) -> None:
        api.post(f"{path}/close", {"reason": "done"})
        event = api.get(f"{path}/events").json()["data"][-1]
        assert (event["from_status"], event["to_status"]) == ("ACTIVE", "CLOSED")
        assert (event["reason"], event["actor"]) == ("done", {"type": "account", "id": "agent"})


class TestDeletingASession:
    """Report DEL-01: a late write brought it back."""

    def test_answers_204_and_then_410(self, api: APIClient, path: str) -> None:
        answer = api.delete(path, query={"reason": "asked for"})
        assert (answer.status_code, answer.content) == (204, b"")
        gone = api.get(path)
        assert (gone.status_code, gone.json()["code"]) == (410, "session_deleted")
        assert gone.json()["deleted_at"]

    def test_leaves_no_way_back(
        self, api: APIClient, path: str, session: Session, agent: User
    ) -> None:
        make_messages(session=session)
        call = make_tool_call(session=session)
        api.delete(path)
        before = Session.objects.values().get(pk=session.pk)
        late = [
            api.get(f"{path}/messages"),
            api.get(f"{path}/messages/1"),
            api.get(f"{path}/working-memory"),
            api.get(f"{path}/working-memory/revisions"),
            api.get(f"{path}/events"),
            api.get(f"{path}/tool-calls"),
            api.post(f"{path}/messages", {"role": "user", "content": "late"}),
            api.post(f"{path}/messages/pop"),
            api.delete(f"{path}/messages/1"),
            api.put(f"{path}/working-memory", {}),
            api.patch(f"{path}/working-memory", {}),
            api.post(f"{path}/tool-calls", {"name": "ls"}),
            api.patch(path, {"title": "T"}),
            api.post(f"{path}/close"),
            api.post(f"{path}/expire"),
            api.delete(path),
        ]
        assert {answer.status_code for answer in late} == {410}
        finish = {"status": "SUCCEEDED"}
        assert api.post(f"/tool-calls/{call.id}/finish", finish).status_code == 404
        assert Session.objects.values().get(pk=session.pk) == before

    def test_leaves_lists_unless_they_ask_for_it(self, api: APIClient, path: str) -> None:
        api.delete(path)
        assert api.get("/sessions").json()["data"] == []
        (tombstone,) = api.get("/sessions", {"status": "DELETED"}).json()["data"]
        assert (tombstone["metadata"], tombstone["title"]) == ({}, None)

    def test_is_answered_again_by_its_key_only(self, api: APIClient, path: str) -> None:
        api.post(f"{path}/messages", {"role": "user", "content": "x"}, Idempotency_Key="m")
        assert api.delete(path, Idempotency_Key="k").status_code == 204
        again = api.delete(path, Idempotency_Key="k")
        assert (again.status_code, again.headers["Idempotency-Replayed"]) == (204, "true")
        late = api.post(f"{path}/messages", {"role": "user", "content": "x"}, Idempotency_Key="m")
        assert late.status_code == 410

    def test_compares_the_version(self, api: APIClient, path: str) -> None:
        assert api.delete(path, If_Match='"9"').status_code == 412
        assert api.get(path).status_code == 200
