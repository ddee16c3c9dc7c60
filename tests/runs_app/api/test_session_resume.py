"""Resuming a session over the API: the transition, and the packet that it answers with."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from time_machine import Traveller

from sessions_app.models import Session, SessionEvent
from tests.api_client import APIClient
from tests.domain import later
from tests.factories import make_messages, make_run, make_session


class TestResumingASession:
    @pytest.mark.parametrize(("ending", "status"), [("close", "CLOSED"), ("expire", "EXPIRED")])
    def test_makes_it_active_again(
        self, api: APIClient, session: Session, ending: str, status: str
    ) -> None:
        api.post(f"/sessions/{session.pk}/{ending}")
        answer = api.post(f"/sessions/{session.pk}/resume", {"reason": "back"})
        packet = answer.json()
        assert answer.status_code == 200
        assert (packet["resumed_from"], packet["changed"]) == (status, True)
        assert packet["session"] == api.get(f"/sessions/{session.pk}").json()
        assert packet["session"]["status"] == "ACTIVE"
        assert answer.headers["ETag"] == f'"{packet["session"]["version"]}"'
        event = SessionEvent.objects.latest("sequence")
        assert (event.from_status, event.to_status, event.reason) == (status, "ACTIVE", "back")

    @pytest.mark.parametrize("where", ["query", "body"])
    def test_takes_the_window_from_query_or_body(
        self, api: APIClient, session: Session, where: str
    ) -> None:
        make_messages(session=session, count=5)
        asked: dict[str, Any] = {where: {"last_n": 2}}
        packet = api.post(f"/sessions/{session.pk}/resume", **asked).json()
        assert [message["sequence"] for message in packet["messages"]] == [4, 5]

    @pytest.mark.parametrize("body", [None, {}, {"reason": None}, {"reason": ""}])
    def test_of_an_active_one_changes_nothing(
        self, api: APIClient, session: Session, body: Any
    ) -> None:
        answer = api.post(f"/sessions/{session.pk}/resume", body)
        assert answer.status_code == 200
        assert (answer.json()["resumed_from"], answer.json()["changed"]) == (None, False)
        assert answer.headers["ETag"] == '"1"'
        assert SessionEvent.objects.count() == 1

    def test_answers_with_the_context(self, api: APIClient, session: Session) -> None:
        make_messages(session=session, count=3)
        make_run(session=session)
        api.post(f"/sessions/{session.pk}/expire")
        packet = api.post(f"/sessions/{session.pk}/resume", query={"last_n": 2}).json()
        context = api.get(f"/sessions/{session.pk}/context", {"last_n": 2}).json()
        assert [message["sequence"] for message in packet["messages"]] == [2, 3]
        assert packet.pop("changed") is True
        assert packet == context | {"resumed_from": "EXPIRED"}

    def test_settles_what_lapsed_first(self, api: APIClient, agent: User, clock: Traveller) -> None:
        session = make_session(account=agent, idle_timeout_seconds=600)
        make_run(session=session)
        clock.move_to(later(hours=1))
        packet = api.post(f"/sessions/{session.pk}/resume").json()
        assert packet["resumed_from"] == "EXPIRED"
        assert packet["interrupted_run"]["ended_at"] == "2026-03-01T12:05:00.000000Z"
        assert packet["session"]["expires_at"] == "2026-03-01T13:10:00.000000Z"
        moves = [
            (event["subject"], event["to_status"], event["actor"]["type"])
            for event in api.get(f"/sessions/{session.pk}/events").json()["data"]
        ]
        assert moves[-3:] == [
            ("run", "INTERRUPTED", "system"),
            ("session", "EXPIRED", "system"),
            ("session", "ACTIVE", "account"),
        ]

    def test_compares_the_version(self, api: APIClient, session: Session) -> None:
        api.post(f"/sessions/{session.pk}/close")
        answer = api.post(f"/sessions/{session.pk}/resume", If_Match='"1"')
        assert (answer.status_code, answer.json()["version"]) == (412, 2)
        answer = api.post(f"/sessions/{session.pk}/resume", If_Match='"2"')
        assert answer.json()["changed"] is True

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"reason": 5}, "/reason"),
            ({"reason": "x" * 1001}, "/reason"),
            ({"last": 5}, "/last"),
            ({"last_n": 0}, "/last_n"),
            ({"last_n": "5"}, "/last_n"),
            ({"format": "claude"}, "/format"),
            ({"max_tokens": "5"}, "/max_tokens"),
            ({"mark_synthetic": "no"}, "/mark_synthetic"),
            ([1], ""),
        ],
    )
    def test_is_read_strictly(
        self, api: APIClient, session: Session, body: Any, pointer: str
    ) -> None:
        answer = api.post(f"/sessions/{session.pk}/resume", body)
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["pointer"] == pointer


class TestRepeatingAResume:
    def test_answers_the_transition_and_the_packet_of_now(
        self, api: APIClient, session: Session
    ) -> None:
        path = f"/sessions/{session.pk}"
        api.post(f"{path}/close")
        first = api.post(f"{path}/resume", Idempotency_Key="k")
        make_messages(session=session)
        again = api.post(f"{path}/resume", Idempotency_Key="k")
        assert again.status_code == 200
        assert again.headers["Idempotency-Replayed"] == "true"
        assert (again.json()["resumed_from"], again.json()["changed"]) == ("CLOSED", True)
        assert len(again.json()["messages"]) == len(first.json()["messages"]) + 1
        assert again.headers["ETag"] == f'"{again.json()["session"]["version"]}"'

    def test_does_not_resume_again(self, api: APIClient, session: Session) -> None:
        path = f"/sessions/{session.pk}"
        for _ in range(2):
            api.post(f"{path}/close")
            packet = api.post(f"{path}/resume", Idempotency_Key="k").json()
        assert packet["session"]["status"] == "CLOSED"
        assert packet["resumed_from"] == "CLOSED"

    def test_with_another_window_is_another_request(self, api: APIClient, session: Session) -> None:
        path = f"/sessions/{session.pk}/resume"
        api.post(path, query={"last_n": 5}, Idempotency_Key="k")
        answer = api.post(path, query={"last_n": 6}, Idempotency_Key="k")
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")

    def test_of_a_deleted_session_is_410(self, api: APIClient, session: Session) -> None:
        api.post(f"/sessions/{session.pk}/resume", Idempotency_Key="k")
        api.delete(f"/sessions/{session.pk}")
        answer = api.post(f"/sessions/{session.pk}/resume", Idempotency_Key="k")
        assert (answer.status_code, answer.json()["code"]) == (410, "session_deleted")
