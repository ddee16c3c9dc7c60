"""One run over the API: its shape, its codes, its headers."""

from typing import Any

import pytest

from runs_app.models import Run
from sessions_app.models import Session
from tests.api_client import APIClient
from tests.factories import add_messages, make_run

# The contract's, in its order.
FIELDS = (
    "object run_id session_id agent_id model status attempt input output error usage metadata "
    "retry_of parent_run_id first_sequence last_sequence created_at started_at ended_at "
    "duration_ms heartbeat_at lease_expires_at wait_reason cancel_reason session_version"
)


class TestCreatingARun:
    def test_answers_201_with_its_place(self, api: APIClient, session: Session) -> None:
        answer = api.post(f"/sessions/{session.pk}/runs", {"input": {"task": "t"}})
        run = answer.json()
        assert answer.status_code == 201
        assert answer.headers["Location"] == f"/api/v1/runs/{run['run_id']}"
        assert " ".join(run) == FIELDS
        assert api.get(f"/runs/{run['run_id']}").json() == run

    @pytest.mark.parametrize("body", [None, {}])
    def test_starts_it_with_a_lease(self, api: APIClient, session: Session, body: Any) -> None:
        run = api.post(f"/sessions/{session.pk}/runs", body).json()
        assert (run["status"], run["attempt"]) == ("RUNNING", 1)
        assert run["created_at"] == run["started_at"] == run["heartbeat_at"]
        assert run["started_at"] == "2026-03-01T12:00:00.000000Z"
        assert run["lease_expires_at"] == "2026-03-01T12:05:00.000000Z"
        assert run["ended_at"] is run["duration_ms"] is None
        assert api.get(f"/sessions/{session.pk}").json()["active_run_id"] == run["run_id"]

    def test_leaves_it_pending_for_a_day(self, api: APIClient, session: Session) -> None:
        run = api.post(f"/sessions/{session.pk}/runs", {"start": False}).json()
        assert (run["status"], run["attempt"]) == ("PENDING", 0)
        assert run["lease_expires_at"] == "2026-03-02T12:00:00.000000Z"
        assert run["started_at"] is run["heartbeat_at"] is None

    def test_keeps_what_was_sent(self, api: APIClient, session: Session) -> None:
        given = {
            "input": {"b": [None, "", [], {}, 1.5], "a": 10**30},
            "agent_id": "a",
            "model": "",
            "metadata": {"z": 1, "y": None},
        }
        run = api.post(f"/sessions/{session.pk}/runs", given).json()
        assert {name: run[name] for name in given} == given
        assert list(run["input"]) == ["b", "a"]

    @pytest.mark.parametrize("value", [0, False, "", [], "text", 2**64 + 1, -0.5])
    def test_takes_any_json_as_input(self, api: APIClient, session: Session, value: Any) -> None:
        run = api.post(f"/sessions/{session.pk}/runs", {"input": value}).json()
        assert run["input"] == value
        assert type(run["input"]) is type(value)

    def test_takes_null_for_not_given(self, api: APIClient, session: Session) -> None:
        names = ["input", "agent_id", "model", "metadata", "lease_seconds", "retry_of"]
        answer = api.post(f"/sessions/{session.pk}/runs", dict.fromkeys([*names, "parent_run_id"]))
        assert answer.status_code == 201
        assert answer.json()["metadata"] == {}

    def test_takes_the_agent_of_the_session(self, api: APIClient) -> None:
        session = api.post("/sessions", {"agent_id": "coder"}).json()["session_id"]
        assert api.post(f"/sessions/{session}/runs").json()["agent_id"] == "coder"

    def test_names_what_it_retries_and_its_parent(self, api: APIClient, session: Session) -> None:
        parent = make_run(session=session)
        body = {"retry_of": parent.pk, "parent_run_id": parent.pk}
        run = api.post(f"/sessions/{session.pk}/runs", body).json()
        assert (run["retry_of"], run["parent_run_id"]) == (parent.pk, parent.pk)
        assert run["status"] == "RUNNING"

    def test_is_refused_three_levels_below_a_top_level_run(
        self, api: APIClient, session: Session
    ) -> None:
        run = make_run(session=session)
        for _ in range(2):
            run = make_run(session=session, parent_run_id=run.pk)
        answer = api.post(f"/sessions/{session.pk}/runs", {"parent_run_id": run.pk})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        assert [each["pointer"] for each in answer.json()["errors"]] == ["/parent_run_id"]
        assert Run.objects.count() == 3

    def test_tells_the_session_version_that_made_it(self, api: APIClient, session: Session) -> None:
        run = api.post(f"/sessions/{session.pk}/runs").json()
        assert run["session_version"] == api.get(f"/sessions/{session.pk}").json()["version"] == 2


class TestCreatingASecondRun:
    def test_is_409_with_the_active_one(self, api: APIClient, session: Session) -> None:
        first = make_run(session=session)
        answer = api.post(f"/sessions/{session.pk}/runs")
        assert answer.status_code == 409
        assert answer.json()["code"] == "run_active"
        assert answer.json()["active_run_id"] == first.pk
        assert Run.objects.count() == 1

    def test_cancels_the_active_one_on_demand(self, api: APIClient, session: Session) -> None:
        first = make_run(session=session)
        second = api.post(f"/sessions/{session.pk}/runs", {"if_active": "cancel"}).json()
        assert second["status"] == "RUNNING"
        assert api.get(f"/runs/{first.pk}").json()["status"] == "CANCELLED"

    def test_queues_on_demand(self, api: APIClient, session: Session) -> None:
        make_run(session=session)
        second = api.post(f"/sessions/{session.pk}/runs", {"if_active": "queue"}).json()
        assert second["status"] == "PENDING"


class TestARunInput:
    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"lease": 5}, "/lease"),
            ({"lease_seconds": 9}, "/lease_seconds"),
            ({"lease_seconds": 86_401}, "/lease_seconds"),
            ({"lease_seconds": 10**20}, "/lease_seconds"),
            ({"lease_seconds": "300"}, "/lease_seconds"),
            ({"lease_seconds": 300.0}, "/lease_seconds"),
            ({"lease_seconds": True}, "/lease_seconds"),
            ({"start": "false"}, "/start"),
            ({"start": None}, "/start"),
            ({"if_active": "replace"}, "/if_active"),
            ({"if_active": None}, "/if_active"),
            ({"metadata": []}, "/metadata"),
            ({"agent_id": 5}, "/agent_id"),
            ({"agent_id": "x" * 256}, "/agent_id"),
            ({"model": "x" * 256}, "/model"),
            ({"retry_of": ["run"]}, "/retry_of"),
            ({"parent_run_id": {}}, "/parent_run_id"),
        ],
    )
    def test_that_is_wrong_is_named(
        self, api: APIClient, session: Session, body: Any, pointer: str
    ) -> None:
        answer = api.post(f"/sessions/{session.pk}/runs", body)
        assert answer.status_code == 400
        assert answer.json()["code"] == "invalid_request"
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
        assert not Run.objects.exists()

    @pytest.mark.parametrize("seconds", [10, 86_400])
    def test_may_be_at_the_bounds_of_the_lease(
        self, api: APIClient, session: Session, seconds: int
    ) -> None:
        answer = api.post(f"/sessions/{session.pk}/runs", {"lease_seconds": seconds})
        assert answer.status_code == 201

    @pytest.mark.parametrize("body", [[], "run", 5, [{}], b"null"])
    def test_is_an_object(self, api: APIClient, session: Session, body: Any) -> None:
        answer = api.post(f"/sessions/{session.pk}/runs", body or b"[]")
        assert answer.status_code == 400

    @pytest.mark.parametrize("raw", [b"{", b'{"input": NaN}', b'{"input": 1, "input": 2}', b"\xff"])
    def test_is_json(self, api: APIClient, session: Session, raw: bytes) -> None:
        answer = api.post(f"/sessions/{session.pk}/runs", raw)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_json")

    def test_may_be_nested_a_hundred_levels(self, api: APIClient, session: Session) -> None:
        deep: Any = []
        for _ in range(99):
            deep = [deep]
        assert api.post(f"/sessions/{session.pk}/runs", {"input": deep}).json()["input"] == deep
        answer = api.post(f"/sessions/{session.pk}/runs", {"input": [deep], "start": False})
        assert answer.status_code == 400

    def test_that_is_too_large_is_413(self, api: APIClient, session: Session) -> None:
        answer = api.post(f"/sessions/{session.pk}/runs", {"metadata": {"x": "y" * 20_000}})
        assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")


class TestARun:
    def test_shows_the_range_of_its_messages(self, api: APIClient, session: Session) -> None:
        user = {"role": "user", "content": "Hello"}
        add_messages(user, session=session)
        run = make_run(session=session)
        add_messages(user, user, session=session, run_id=run.pk)
        add_messages(user, session=session)
        shown = api.get(f"/runs/{run.pk}").json()
        assert (shown["first_sequence"], shown["last_sequence"]) == (2, 3)

    def test_counts_the_usage_of_its_messages(self, api: APIClient, session: Session) -> None:
        run = make_run(session=session)
        said = {"role": "assistant", "content": "", "usage": {"input_tokens": 5, "cost_usd": "0.1"}}
        add_messages(said, said, session=session, run_id=run.pk)
        shown = api.get(f"/runs/{run.pk}").json()
        assert shown["usage"]["input_tokens"] == 10
        assert shown["usage"]["cost_usd"] == "0.2"
        assert shown["session_version"] == 3

    def test_takes_no_query(self, api: APIClient, session: Session) -> None:
        run = make_run(session=session)
        assert api.get(f"/runs/{run.pk}", {"full": "1"}).status_code == 400
