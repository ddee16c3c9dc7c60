"""One session over the API: its shape, its codes, its headers."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from sessions_app.models import IdempotencyRecord, Session, SessionEvent
from tests.api_client import APIClient
from tests.factories import (
    make_lapsed_session,
    make_messages,
    make_run,
    make_session,
    make_tool_call,
)

# The contract's, in its order.
FIELDS = [
    "object",
    "session_id",
    "external_id",
    "agent_id",
    "user_id",
    "title",
    "status",
    "metadata",
    "working_memory",
    "working_memory_version",
    "version",
    "last_sequence",
    "message_count",
    "tool_call_count",
    "run_count",
    "open_tool_call_count",
    "open_tool_calls",
    "active_run_id",
    "usage",
    "idle_timeout_seconds",
    "expires_at",
    "created_at",
    "updated_at",
    "last_activity_at",
    "closed_at",
    "expired_at",
    "deleted_at",
    "parent_session_id",
    "forked_at_sequence",
    "imported_from",
]

EMPTY_MEMORY = {
    "goal": "",
    "plan": [],
    "completed": [],
    "errors": [],
    "important_files": [],
    "next_action": "",
    "extra": {},
}


class TestCreatingASession:
    def test_answers_201_with_its_place_and_version(self, api: APIClient) -> None:
        answer = api.post("/sessions", {"title": "T"})
        session = answer.json()
        assert answer.status_code == 201
        assert answer.headers["ETag"] == '"1"'
        assert answer.headers["Location"] == f"/api/v1/sessions/{session['session_id']}"
        assert list(session) == FIELDS
        assert api.get(f"/sessions/{session['session_id']}").json() == session

    @pytest.mark.parametrize("body", [None, {}])
    def test_needs_nothing(self, api: APIClient, body: Any) -> None:
        session = api.post("/sessions", body).json()
        assert session["metadata"] == {}
        assert session["working_memory"] == EMPTY_MEMORY
        assert (session["title"], session["idle_timeout_seconds"]) == (None, None)

    def test_takes_null_for_not_given(self, api: APIClient) -> None:
        names = ["agent_id", "user_id", "title", "external_id", "metadata", "working_memory"]
        names += ["idle_timeout_seconds", "parent_session_id"]
        answer = api.post("/sessions", dict.fromkeys(names))
        assert answer.status_code == 201

    def test_keeps_what_was_sent(self, api: APIClient) -> None:
        given = {
            "agent_id": "a",
            "user_id": "",
            "title": " T ",
            "external_id": "e",
            "metadata": {"b": [None, "", [], {}], "a": 10**30},
            "idle_timeout_seconds": 60,
        }
        session = api.post("/sessions", given).json()
        assert {name: session[name] for name in given} == given
        assert list(session["metadata"]) == ["b", "a"]
        assert session["expires_at"] is not None

    def test_begins_the_working_memory(self, api: APIClient) -> None:
        session = api.post("/sessions", {"working_memory": {"goal": "G"}}).json()
        assert session["working_memory"] == {**EMPTY_MEMORY, "goal": "G"}
        assert session["working_memory_version"] == 1

    def test_names_its_parent(self, api: APIClient, agent: User) -> None:
        parent = make_session(account=agent).session_id
        child = api.post("/sessions", {"parent_session_id": parent}).json()
        assert child["parent_session_id"] == parent

    def test_does_not_know_a_strangers_parent(self, stranger: APIClient, agent: User) -> None:
        parent = make_session(account=agent).session_id
        foreign = stranger.post("/sessions", {"parent_session_id": parent})
        unknown = stranger.post("/sessions", {"parent_session_id": parent[:-4] + "0000"})
        assert foreign.status_code == unknown.status_code == 404
        assert foreign.json()["code"] == unknown.json()["code"] == "not_found"

    def test_cannot_be_conditional(self, api: APIClient) -> None:
        assert api.post("/sessions", {}, If_Match='"1"').status_code == 400
        assert not Session.objects.exists()

    def test_is_done_once_per_key(self, api: APIClient) -> None:
        """Report DUP-01."""
        first = api.post("/sessions", {"title": "T"}, Idempotency_Key="k")
        again = api.post("/sessions", {"title": "T"}, Idempotency_Key="k")
        other = api.post("/sessions", {"title": "U"}, Idempotency_Key="k")
        assert again.json() == first.json()
        assert (again.status_code, again.headers["Idempotency-Replayed"]) == (201, "true")
        assert again.headers["Location"] == first.headers["Location"]
        assert other.json()["code"] == "idempotency_key_reused"
        assert Session.objects.count() == 1

    def test_answers_the_one_that_was_stored_after_the_key_lapsed(
        self, api: APIClient, settings: Settings
    ) -> None:
        headers = {"Idempotency-Key": "k"}
        first = api.post("/sessions", {"title": "A"}, **headers).json()["session_id"]
        lapsed = timezone.now() - timedelta(hours=settings.IDEMPOTENCY_TTL_HOURS)
        IdempotencyRecord.objects.update(created_at=lapsed)
        second = api.post("/sessions", {"title": "B"}, **headers).json()["session_id"]
        assert second != first
        assert api.get(f"/sessions/{second}").json()["title"] == "B"
        assert api.post("/sessions", {"title": "B"}, **headers).json()["session_id"] == second


class TestCreatingASessionAgain:
    """Report CON-02: an upsert wiped the history, or answered 500."""

    def test_is_a_conflict_that_names_the_first(self, api: APIClient, agent: User) -> None:
        session = make_session(account=agent, external_id="e")
        answer = api.post("/sessions", {"external_id": "e"})
        assert answer.status_code == 409
        assert answer.json()["code"] == "already_exists"
        assert answer.json()["session_id"] == session.session_id

    def test_returns_the_first_untouched_if_asked(self, api: APIClient, agent: User) -> None:
        session = make_session(account=agent, external_id="e", title="T")
        make_messages(session=session)
        before = api.get(f"/sessions/{session.session_id}").json()
        answer = api.post("/sessions", {"external_id": "e", "title": "U", "if_exists": "return"})
        assert (answer.status_code, answer.json()) == (200, before)
        assert "Location" not in answer.headers

    def test_says_the_effective_status(self, api: APIClient, agent: User) -> None:
        make_lapsed_session(account=agent, external_id="e")
        assert api.post("/sessions", {"external_id": "e"}).json()["current_status"] == "EXPIRED"
        found = api.post("/sessions", {"external_id": "e", "if_exists": "return"}).json()
        assert found["status"] == "EXPIRED"

    def test_makes_a_new_one_after_a_deletion(self, api: APIClient, agent: User) -> None:
        session = make_session(account=agent, external_id="e")
        api.delete(f"/sessions/{session.session_id}")
        answer = api.post("/sessions", {"external_id": "e", "if_exists": "return"})
        assert answer.status_code == 201
        assert answer.json()["session_id"] != session.session_id

    def test_tells_another_account_nothing(self, stranger: APIClient, agent: User) -> None:
        make_session(account=agent, external_id="e")
        assert stranger.post("/sessions", {"external_id": "e"}).status_code == 201


class TestReadingASession:
    def test_answers_304_to_who_holds_it(self, api: APIClient, agent: User) -> None:
        path = f"/sessions/{make_session(account=agent).session_id}"
        answer = api.get(path, If_None_Match='"1"')
        assert (answer.status_code, answer.headers["ETag"]) == (304, '"1"')
        assert api.get(path, If_None_Match='"2"').status_code == 200

    def test_shows_open_tool_calls(self, api: APIClient, agent: User) -> None:
        session = make_session(account=agent)
        calls = [make_tool_call(session=session).id for _ in range(2)]
        body = api.get(f"/sessions/{session.session_id}").json()
        assert (body["open_tool_call_count"], body["open_tool_calls"]) == (2, calls)

    def test_shows_the_active_run_until_its_deadline(
        self, api: APIClient, agent: User, time_machine: Any
    ) -> None:
        session = make_session(account=agent)
        path = f"/sessions/{session.session_id}"
        run = make_run(session=session, lease_seconds=60)
        version = api.get(path).headers["ETag"]
        assert api.get(path).json()["active_run_id"] == run.run_id
        time_machine.move_to(run.created_at.replace(year=run.created_at.year + 1))
        answer = api.get(path, If_None_Match=version)
        assert (answer.status_code, answer.json()["active_run_id"]) == (200, None)

    @pytest.mark.parametrize("path", ["", "/messages", "/working-memory", "/events", "/tool-calls"])
    def test_accepts_a_slash_at_the_end(self, api: APIClient, agent: User, path: str) -> None:
        session = make_session(account=agent)
        assert api.get(f"/sessions/{session.session_id}{path}/").status_code == 200

    @pytest.mark.parametrize("name", ["sess_0", "%00", "sess_%00", "a b", "%ff", "é", "x" * 300])
    def test_answers_404_to_a_name_of_nothing(self, api: APIClient, name: str) -> None:
        assert api.get(f"/sessions/{name}").status_code == 404


class TestALapsedSession:
    """Report TTL-03: hidden in lists, and still there by its id."""

    def test_is_expired_before_anybody_wrote_it_down(self, api: APIClient, agent: User) -> None:
        session = make_lapsed_session(account=agent)
        run = make_run(session=session, now=session.created_at)
        session.refresh_from_db()
        stored = session.version
        Session.objects.filter(pk=session.pk).update(expires_at=session.created_at)
        answer = api.get(f"/sessions/{session.session_id}", If_None_Match=f'"{stored}"')
        body = answer.json()
        assert answer.status_code == 200
        assert (body["status"], body["active_run_id"]) == ("EXPIRED", None)
        assert body["expired_at"] == body["expires_at"] == body["created_at"]
        assert run.run_id not in answer.content.decode()

    def test_is_readable_and_refuses_writes(self, api: APIClient, agent: User) -> None:
        path = f"/sessions/{make_lapsed_session(account=agent).session_id}"
        for part in ("", "/messages", "/working-memory", "/tool-calls", "/events"):
            assert api.get(path + part).status_code == 200
        refused = [
            api.post(f"{path}/messages", {"role": "user", "content": "late"}),
            api.post(f"{path}/messages/pop"),
            api.delete(f"{path}/messages/1"),
            api.put(f"{path}/working-memory", {}),
            api.patch(f"{path}/working-memory", {}),
            api.post(f"{path}/tool-calls", {"name": "ls"}),
            api.patch(path, {"title": "T"}),
        ]
        assert {(each.status_code, each.json()["code"]) for each in refused} == {
            (409, "session_expired")
        }
        assert {each.json()["current_status"] for each in refused} == {"EXPIRED"}

    def test_is_expired_already_when_somebody_expires_it(self, api: APIClient, agent: User) -> None:
        session = make_lapsed_session(account=agent)
        answer = api.post(f"/sessions/{session.session_id}/expire")
        assert (answer.status_code, answer.json()["changed"]) == (200, False)
        assert answer.json()["expired_at"] == answer.json()["expires_at"]
        assert SessionEvent.objects.filter(session=session, to_status="EXPIRED").count() == 1
