"""Report TTL-01: time, the sweep and a writer at the same deadline, by the clocks of processes."""

import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tests.races.load import Answer, Client, together

IDLE = {"idle_timeout_seconds": 1}
# When 20 writers begin, seen from their sessions' deadlines; on a busy machine each takes a while.
OFFSETS = [timedelta(milliseconds=10 * (number - 18)) for number in range(20)]


def wait_until(moment: datetime) -> None:
    while (left := (moment - datetime.now(UTC)).total_seconds()) > 0:
        time.sleep(left)


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=pytest.mark.soak)])
@pytest.mark.usefixtures("sweeping")
def test_an_append_at_the_deadline_wins_or_is_refused(client, clients, rounds):
    outcomes: Counter[str] = Counter()
    for number in range(rounds + 10):
        if number >= rounds and len(outcomes) == 2:
            break  # more rounds only where the machine was too busy for the race
        writers = zip(clients, OFFSETS, strict=True)
        for session, answer in together([partial(_append, *writer) for writer in writers]):
            outcomes[_judge(client, session, answer)] += 1
    assert set(outcomes) == {"stored", "refused"}, "all on one side of the deadline is no race"


def _append(client: Client, offset: timedelta) -> tuple[Any, Answer]:
    session = client.post("/sessions", IDLE)
    wait_until(datetime.fromisoformat(session["expires_at"]) + offset)
    message = {"role": "user", "content": "at the last moment"}
    return session, client.request("POST", f"/sessions/{session['session_id']}/messages", message)


def _judge(client: Client, before: Any, answer: Answer) -> str:
    session_id, deadline = before["session_id"], before["expires_at"]
    stored = client.messages(session_id)
    after = client.session(session_id)
    if answer.ok:
        assert [message["created_at"] < deadline for message in stored] == [True]
        assert after["expires_at"] > deadline
        return "stored"
    assert (answer.status, answer.code) == (409, "session_expired")
    assert stored == []
    assert (after["status"], after["expired_at"]) == ("EXPIRED", deadline)
    return "refused"


@pytest.mark.soak
@pytest.mark.usefixtures("sweeping")
def test_the_end_of_a_run_at_its_lease(client, clients):
    """A worker that completes, an operator who cancels, and the sweep, at the lease's end."""
    runs = []
    for _ in range(10):
        path = f"/sessions/{client.new_session()}/runs"
        runs.append(client.post(path, {"lease_seconds": 10}))
    calls = []
    for number, run in enumerate(runs):
        moment = datetime.fromisoformat(run["lease_expires_at"]) + OFFSETS[2 * number]
        for way, each in (("complete", clients[number]), ("cancel", clients[-1 - number])):
            calls.append(partial(_end_at, each, f"/runs/{run['run_id']}/{way}", moment))
    answers = together(calls)
    for run, completed, cancelled in zip(runs, answers[::2], answers[1::2], strict=True):
        status = client.get(f"/runs/{run['run_id']}")["status"]
        if completed.ok:
            assert (status, cancelled.code) == ("COMPLETED", "run_ended")
        else:
            assert completed.code in {"run_interrupted", "run_ended"}
            assert (status, cancelled.status) == ("CANCELLED", 200)


def _end_at(client: Client, path: str, moment: datetime) -> Answer:
    wait_until(moment)
    return client.request("POST", path, {})


def test_several_sweeps_at_once_settle_each_session_once(client, clients, server):
    kept = [client.new_session(idle_timeout_seconds=3600) for _ in range(3)]
    sessions = together([partial(each.post, "/sessions", IDLE) for each in clients])
    wait_until(max(datetime.fromisoformat(session["expires_at"]) for session in sessions))
    together([partial(server.manage, "expire_sessions", "--batch", "7")] * 3)
    for session in sessions:
        changes = [event["to_status"] for event in client.events(session["session_id"])]
        assert changes == ["ACTIVE", "EXPIRED"]
    assert {client.session(session_id)["status"] for session_id in kept} == {"ACTIVE"}
