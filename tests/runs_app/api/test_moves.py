"""What moves a run over the API: each call, what it takes, and what it refuses."""

from typing import Any

import pytest
from time_machine import Traveller

from runs_app.models import Run
from sessions_app.models import Session
from tests.api_client import APIClient
from tests.domain import later
from tests.factories import add_messages, make_run, make_tool_call

ERROR = {"type": "crash", "message": "It broke."}
# A body that each move takes.
BODIES: dict[str, Any] = {
    "start": {},
    "heartbeat": {},
    "wait": {"reason": "approval"},
    "complete": {},
    "fail": {"error": ERROR},
    "cancel": {},
    "resume": {},
}
MOVES = list(BODIES)
ALL_BUT_A_HEARTBEAT = [move for move in MOVES if move != "heartbeat"]
OF_A_RUNNING_ONE = ["wait", "complete", "fail", "cancel"]


@pytest.fixture
def run(session: Session) -> Run:
    return make_run(session=session)


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


class TestStart:
    def test_begins_the_first_attempt(self, api: APIClient, session: Session) -> None:
        run = make_run(session=session, start=False)
        started = api.post(f"/runs/{run.pk}/start", {"attempt": 0}).json()
        assert (started["status"], started["attempt"]) == ("RUNNING", 1)
        assert started["started_at"] == started["heartbeat_at"] == "2026-03-01T12:00:00.000000Z"

    def test_of_a_started_one_is_409_with_its_state(self, api: APIClient, run: Run) -> None:
        answer = api.post(f"/runs/{run.pk}/start")
        assert refusal(answer) == (409, "invalid_transition")
        assert (answer.json()["current_status"], answer.json()["attempt"]) == ("RUNNING", 1)

    def test_beside_an_active_one_is_409_with_that_one(
        self, api: APIClient, session: Session, run: Run
    ) -> None:
        queued = make_run(session=session, start=False)
        answer = api.post(f"/runs/{queued.pk}/start")
        assert refusal(answer) == (409, "run_active")
        assert answer.json()["active_run_id"] == run.pk


class TestHeartbeat:
    def test_renews_the_lease(self, api: APIClient, run: Run, clock: Traveller) -> None:
        clock.move_to(later(200))
        beaten = api.post(f"/runs/{run.pk}/heartbeat", {"attempt": 1}).json()
        assert beaten["heartbeat_at"] == "2026-03-01T12:03:20.000000Z"
        assert beaten["lease_expires_at"] == "2026-03-01T12:08:20.000000Z"
        assert beaten.pop("cancel_requested") is False
        assert api.get(f"/runs/{run.pk}").json() == beaten

    def test_makes_no_version(self, api: APIClient, session: Session, run: Run) -> None:
        before = api.get(f"/sessions/{session.pk}").headers["ETag"]
        assert api.post(f"/runs/{run.pk}/heartbeat").json()["session_version"] == 2
        assert api.get(f"/sessions/{session.pk}").headers["ETag"] == before

    def test_of_a_cancelled_run_tells_its_worker(self, api: APIClient, run: Run) -> None:
        cancelled = api.post(f"/runs/{run.pk}/cancel", {"reason": "enough"}).json()
        answer = api.post(f"/runs/{run.pk}/heartbeat", {"attempt": 1})
        assert answer.status_code == 200
        assert answer.json() == {**cancelled, "cancel_requested": True}

    def test_in_a_closed_session_tells_too(
        self, api: APIClient, session: Session, run: Run
    ) -> None:
        api.post(f"/sessions/{session.pk}/close")
        answer = api.post(f"/runs/{run.pk}/heartbeat")
        assert answer.json()["cancel_requested"] is True

    def test_cannot_be_conditional(self, api: APIClient, run: Run) -> None:
        answer = api.post(f"/runs/{run.pk}/heartbeat", If_Match='"2"')
        assert refusal(answer) == (400, "invalid_request")

    def test_of_a_pending_run_is_409(self, api: APIClient, session: Session) -> None:
        queued = make_run(session=session, start=False)
        answer = api.post(f"/runs/{queued.pk}/heartbeat")
        assert refusal(answer) == (409, "invalid_transition")


class TestWait:
    def test_has_a_deadline_of_seven_days(self, api: APIClient, run: Run) -> None:
        waiting = api.post(f"/runs/{run.pk}/wait", {"reason": "approval"}).json()
        assert (waiting["status"], waiting["wait_reason"]) == ("WAITING", "approval")
        assert waiting["lease_expires_at"] == "2026-03-08T12:00:00.000000Z"

    def test_has_the_deadline_that_was_given(self, api: APIClient, run: Run) -> None:
        body = {"reason": "approval", "timeout_seconds": 60}
        waiting = api.post(f"/runs/{run.pk}/wait", body).json()
        assert waiting["lease_expires_at"] == "2026-03-01T12:01:00.000000Z"

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"reason": None},
            {"reason": "x" * 1001},
            {"reason": "x", "timeout_seconds": 0},
            {"reason": "x", "timeout_seconds": 315_360_001},
            {"reason": "x", "timeout_seconds": 1.5},
            {"reason": "x", "timeout": 5},
        ],
    )
    def test_is_read_strictly(self, api: APIClient, run: Run, body: Any) -> None:
        assert refusal(api.post(f"/runs/{run.pk}/wait", body)) == (400, "invalid_request")

    def test_is_ended_by_a_resume_with_a_new_attempt(self, api: APIClient, run: Run) -> None:
        api.post(f"/runs/{run.pk}/wait", {"reason": "approval"})
        resumed = api.post(f"/runs/{run.pk}/resume", {"attempt": 1}).json()
        assert (resumed["status"], resumed["attempt"]) == ("RUNNING", 2)
        assert resumed["wait_reason"] is None


class TestComplete:
    def test_keeps_the_output(self, api: APIClient, run: Run, clock: Traveller) -> None:
        clock.move_to(later(1.5))
        done = api.post(f"/runs/{run.pk}/complete", {"output": {"b": 2**70, "a": None}}).json()
        assert done["status"] == "COMPLETED"
        assert done["output"] == {"b": 2**70, "a": None}
        assert (done["ended_at"], done["duration_ms"]) == ("2026-03-01T12:00:01.500000Z", 1500)
        assert done["lease_expires_at"] is None

    def test_replaces_the_usage_of_the_run(
        self, api: APIClient, session: Session, run: Run
    ) -> None:
        said = {"role": "assistant", "content": "", "usage": {"input_tokens": 5}}
        add_messages(said, session=session, run_id=run.pk)
        add_messages(said, session=session)
        usage = {"input_tokens": 7, "cost_usd": 0.25, "provider": "x"}
        done = api.post(f"/runs/{run.pk}/complete", {"usage": usage}).json()
        assert (done["usage"]["input_tokens"], done["usage"]["cost_usd"]) == (7, "0.25")
        total = api.get(f"/sessions/{session.pk}").json()["usage"]
        assert (total["input_tokens"], total["cost_usd"]) == (12, "0.25")

    def test_keeps_the_counted_usage_where_none_is_given(
        self, api: APIClient, session: Session, run: Run
    ) -> None:
        said = {"role": "assistant", "content": "", "usage": {"input_tokens": 5}}
        add_messages(said, session=session, run_id=run.pk)
        done = api.post(f"/runs/{run.pk}/complete", {"usage": None}).json()
        assert done["usage"]["input_tokens"] == 5

    @pytest.mark.parametrize(
        ("usage", "pointer"),
        [
            ([], "/usage"),
            ({"input_tokens": -1}, "/usage/input_tokens"),
            ({"input_tokens": "5"}, "/usage/input_tokens"),
            ({"output_tokens": 1.0}, "/usage/output_tokens"),
            ({"output_tokens": 10**20}, "/usage/output_tokens"),
            ({"cost_usd": "much"}, "/usage/cost_usd"),
            ({"cost_usd": "NaN"}, "/usage/cost_usd"),
            ({"cost_usd": -1}, "/usage/cost_usd"),
            ({"cost_usd": True}, "/usage/cost_usd"),
        ],
    )
    @pytest.mark.parametrize("move", ["complete", "fail"])
    def test_reads_usage_strictly(
        self, api: APIClient, run: Run, move: str, usage: Any, pointer: str
    ) -> None:
        answer = api.post(f"/runs/{run.pk}/{move}", {**BODIES[move], "usage": usage})
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["pointer"] == pointer
        assert api.get(f"/runs/{run.pk}").json()["status"] == "RUNNING"


class TestFail:
    def test_keeps_the_error(self, api: APIClient, run: Run) -> None:
        failed = api.post(f"/runs/{run.pk}/fail", {"error": {**ERROR, "retryable": True}}).json()
        assert failed["status"] == "FAILED"
        assert failed["error"] == {**ERROR, "retryable": True}

    @pytest.mark.parametrize(
        ("error", "pointer"),
        [
            (None, "/error"),
            ([], "/error"),
            ({"type": "crash"}, "/error/message"),
            ({"message": "It broke."}, "/error/type"),
            ({**ERROR, "type": 5}, "/error/type"),
            ({**ERROR, "type": "x" * 256}, "/error/type"),
            ({**ERROR, "message": None}, "/error/message"),
            ({**ERROR, "retryable": "yes"}, "/error/retryable"),
            ({**ERROR, "traceback": ""}, "/error/traceback"),
        ],
    )
    def test_reads_the_error_strictly(
        self, api: APIClient, run: Run, error: Any, pointer: str
    ) -> None:
        answer = api.post(f"/runs/{run.pk}/fail", {"error": error})
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["pointer"] == pointer

    def test_needs_an_error(self, api: APIClient, run: Run) -> None:
        assert refusal(api.post(f"/runs/{run.pk}/fail")) == (400, "invalid_request")


class TestCancel:
    def test_keeps_the_reason(self, api: APIClient, run: Run) -> None:
        cancelled = api.post(f"/runs/{run.pk}/cancel", {"reason": "enough"}).json()
        assert (cancelled["status"], cancelled["cancel_reason"]) == ("CANCELLED", "enough")

    def test_needs_no_reason(self, api: APIClient, run: Run) -> None:
        assert api.post(f"/runs/{run.pk}/cancel").json()["cancel_reason"] is None

    def test_takes_a_pending_run(self, api: APIClient, session: Session) -> None:
        queued = make_run(session=session, start=False)
        cancelled = api.post(f"/runs/{queued.pk}/cancel", {"reason": None}).json()
        assert (cancelled["status"], cancelled["duration_ms"]) == ("CANCELLED", None)

    def test_cancels_the_children_and_their_tool_calls(
        self, api: APIClient, session: Session, run: Run
    ) -> None:
        child = make_run(session=session, parent_run_id=run.pk)
        call = make_tool_call(session=session, run_id=child.pk)
        api.post(f"/runs/{run.pk}/cancel")
        assert api.get(f"/runs/{child.pk}").json()["status"] == "CANCELLED"
        assert api.get(f"/tool-calls/{call.pk}").json()["status"] == "CANCELLED"


class TestEveryMove:
    @pytest.mark.parametrize("move", MOVES)
    def test_of_an_older_attempt_is_409_with_the_current_one(
        self, api: APIClient, run: Run, move: str
    ) -> None:
        api.post(f"/runs/{run.pk}/wait", {"reason": "approval"})
        api.post(f"/runs/{run.pk}/resume")
        answer = api.post(f"/runs/{run.pk}/{move}", {**BODIES[move], "attempt": 1})
        assert refusal(answer) == (409, "run_superseded")
        assert answer.json()["attempt"] == 2

    @pytest.mark.parametrize("attempt", [2, -1, "1", 1.0, True, 2**70])
    @pytest.mark.parametrize("move", MOVES)
    def test_of_an_attempt_that_never_was_is_400(
        self, api: APIClient, run: Run, move: str, attempt: Any
    ) -> None:
        answer = api.post(f"/runs/{run.pk}/{move}", {**BODIES[move], "attempt": attempt})
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["pointer"] == "/attempt"

    @pytest.mark.parametrize("move", ALL_BUT_A_HEARTBEAT)
    def test_of_an_ended_run_is_409_with_its_state(
        self, api: APIClient, run: Run, move: str
    ) -> None:
        api.post(f"/runs/{run.pk}/complete")
        answer = api.post(f"/runs/{run.pk}/{move}", BODIES[move])
        assert refusal(answer) == (409, "run_ended")
        assert answer.json()["current_status"] == "COMPLETED"
        assert answer.json()["ended_at"] == "2026-03-01T12:00:00.000000Z"

    @pytest.mark.parametrize("move", OF_A_RUNNING_ONE)
    def test_compares_the_version_of_the_session(
        self, api: APIClient, session: Session, run: Run, move: str
    ) -> None:
        answer = api.post(f"/runs/{run.pk}/{move}", BODIES[move], If_Match='"1"')
        assert refusal(answer) == (412, "version_mismatch")
        assert answer.json()["version"] == 2
        assert api.get(f"/runs/{run.pk}").json()["status"] == "RUNNING"
        answer = api.post(f"/runs/{run.pk}/{move}", BODIES[move], If_Match='"2"')
        assert answer.status_code == 200
        assert answer.json()["session_version"] == 3

    @pytest.mark.parametrize("move", ALL_BUT_A_HEARTBEAT)
    @pytest.mark.parametrize("ending", ["close", "expire"])
    def test_in_a_session_that_has_ended_is_409(
        self, api: APIClient, run: Run, move: str, ending: str
    ) -> None:
        api.post(f"/sessions/{run.session_id}/{ending}")
        answer = api.post(f"/runs/{run.pk}/{move}", BODIES[move])
        assert refusal(answer) == (409, f"session_{ending}d")
        assert "resume" in answer.json()["detail"].lower()

    @pytest.mark.parametrize("move", MOVES)
    def test_is_done_once_for_a_key(self, api: APIClient, session: Session, move: str) -> None:
        run = make_run(session=session, start=move != "start")
        if move == "resume":
            api.post(f"/runs/{run.pk}/wait", {"reason": "approval"})
        first, again = (
            api.post(f"/runs/{run.pk}/{move}", BODIES[move], Idempotency_Key="k") for _ in "12"
        )
        assert first.status_code == again.status_code == 200
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.json() == first.json()
