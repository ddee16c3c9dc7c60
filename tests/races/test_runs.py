"""Workers and operators that want different things of one run at the same moment."""

from collections import Counter
from functools import partial
from typing import Any

import pytest

from tests.races.load import Answer, Client, together


def new_run(client: Client, session_id: str, **fields: Any) -> str:
    return str(client.post(f"/sessions/{session_id}/runs", fields)["run_id"])


def post(client: Client, path: str, body: Any = None) -> partial[Answer]:
    """A POST, for `together` to make."""
    return partial(client.request, "POST", path, body or {})


@pytest.mark.parametrize("rounds", [50, pytest.param(300, marks=pytest.mark.soak)])
def test_cancel_against_complete_has_one_winner(client, clients, rounds):
    """Report RUN-04: a cancel that was acknowledged, and then overwritten by a late success."""
    winners: Counter[str] = Counter()
    for number in range(rounds):
        session_id = client.new_session()
        run_id = new_run(client, session_id)
        calls = [
            post(clients[0], f"/runs/{run_id}/cancel", {"reason": "enough"}),
            post(clients[1], f"/runs/{run_id}/complete", {"output": "done"}),
        ]
        # Whoever is called first has a little start; each is first in half of the rounds.
        answers = together(calls if number % 2 else calls[::-1])
        winners[_winner(client, session_id, run_id, answers)] += 1
    assert set(winners) == {"COMPLETED", "CANCELLED"}, "a race that one side always wins is none"


def _winner(client: Client, session_id: str, run_id: str, answers: list[Answer]) -> str:
    """The status that the one winner gave; the loser was told of it."""
    won, lost = sorted(answers, key=lambda answer: answer.status)
    assert (won.status, lost.status, lost.code) == (200, 409, "run_ended")
    run = client.get(f"/runs/{run_id}")
    assert run["status"] == won.body["status"] == lost.body["current_status"]
    assert run["ended_at"] == won.body["ended_at"] == lost.body["ended_at"] >= run["started_at"]
    assert (run["output"] == "done") == (run["status"] == "COMPLETED")
    ends = [event["to_status"] for event in client.events(session_id) if event["subject"] == "run"]
    assert ends == ["PENDING", "RUNNING", run["status"]]
    return str(run["status"])


@pytest.mark.parametrize("rounds", [10, pytest.param(100, marks=pytest.mark.soak)])
def test_of_several_starts_one_is_active(client, clients, rounds):
    for _ in range(rounds):
        session_id = client.new_session()
        path = f"/sessions/{session_id}/runs"
        answers = together([post(each, path) for each in clients[:4]])
        assert sorted(answer.status for answer in answers) == [201, 409, 409, 409]
        (started,) = [answer.body for answer in answers if answer.ok]
        assert started["status"] == "RUNNING"
        refused = [answer.body for answer in answers if not answer.ok]
        assert {(r["code"], r["active_run_id"]) for r in refused} == {
            ("run_active", started["run_id"])
        }
        assert client.session(session_id)["run_count"] == 1


def test_starts_that_take_each_others_place_leave_one(client, clients):
    session_id = client.new_session()
    path = f"/sessions/{session_id}/runs"
    answers = together([post(each, path, {"if_active": "cancel"}) for each in clients[:8]])
    assert {answer.status for answer in answers} == {201}
    runs = client.get(path)["data"]
    assert Counter(run["status"] for run in runs) == {"RUNNING": 1, "CANCELLED": 7}


def test_of_several_queued_runs_one_starts(client, clients):
    session_id = client.new_session()
    queued = [new_run(client, session_id, start=False) for _ in range(6)]
    calls = [post(each, f"/runs/{run}/start") for each, run in zip(clients, queued, strict=False)]
    answers = together(calls)
    assert sorted(answer.status for answer in answers) == [200] + [409] * 5
    assert {answer.code for answer in answers if not answer.ok} == {"run_active"}


def test_a_waiting_run_is_resumed_by_one_worker(client, clients):
    """Report CON-06: two workers that resume one run must not both go on."""
    session_id = client.new_session()
    run_id = new_run(client, session_id)
    client.post(f"/runs/{run_id}/wait", {"reason": "approval"})
    answers = together([post(each, f"/runs/{run_id}/resume") for each in clients[:5]])
    assert sorted(answer.status for answer in answers) == [200] + [409] * 4
    assert client.get(f"/runs/{run_id}")["attempt"] == 2


def test_nothing_of_a_superseded_worker_is_stored(client, clients):
    """The first worker goes on writing while a second one takes the run over."""
    session_id = client.new_session()
    run_id = new_run(client, session_id)
    client.post(f"/runs/{run_id}/wait", {"reason": "approval"})

    def old_worker() -> list[Answer]:
        message = {"role": "assistant", "content": "old", "run_id": run_id, "attempt": 1}
        path = f"/sessions/{session_id}/messages"
        return [clients[0].request("POST", path, message) for _ in range(20)]

    def new_worker() -> list[Answer]:
        return [clients[1].request("POST", f"/runs/{run_id}/resume", {"attempt": 1})]

    written, (resumed,) = together([old_worker, new_worker])
    assert resumed.status == 200
    taken_over = resumed.body["session_version"]
    assert all(answer.body["version"] < taken_over for answer in written if answer.ok)
    assert {answer.code for answer in written if not answer.ok} == {"run_superseded"}
    assert len(client.messages(session_id)) == sum(answer.ok for answer in written)


@pytest.mark.parametrize("rounds", [15, pytest.param(100, marks=pytest.mark.soak)])
def test_resume_against_close_against_a_run(client, clients, rounds):
    """Whatever comes first, nothing is left unfinished in a session that is closed."""
    outcomes: Counter[str] = Counter()
    for number in range(rounds):
        session_id = client.new_session()
        if number % 2:
            client.post(f"/sessions/{session_id}/close")
        answers = together(
            [
                post(clients[0], f"/sessions/{session_id}/close"),
                post(clients[1], f"/sessions/{session_id}/resume"),
                post(clients[2], f"/sessions/{session_id}/runs"),
                post(
                    clients[3], f"/sessions/{session_id}/messages", {"role": "user", "content": "x"}
                ),
            ]
        )
        closed, resumed, run, message = answers
        assert (closed.status, resumed.status) == (200, 200)
        assert {run.status, message.status} <= {201, 409}
        assert {a.code for a in (run, message) if not a.ok} <= {"session_closed"}
        session = client.session(session_id)
        outcomes[session["status"]] += 1
        assert session["message_count"] == message.ok
        assert session["run_count"] == run.ok
    assert set(outcomes) <= {"ACTIVE", "CLOSED"}
