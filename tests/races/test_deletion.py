"""Report DEL-01: a late write that brings a deleted session back to life."""

import time
from collections import Counter
from functools import partial
from itertools import cycle

import pytest

from tests.races.load import Answer, Client, together

TABLES = ("sessions_app_message", "sessions_app_toolcall", "sessions_app_workingmemoryrevision")
# Before a deletion, so that of all rounds some writes come first and some last.
_PAUSES = cycle(number / 500 for number in range(10))
CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}


@pytest.mark.parametrize("rounds", [15, pytest.param(100, marks=pytest.mark.soak)])
def test_delete_against_every_kind_of_write(client, clients, select, rounds):
    outcomes: Counter[int] = Counter()
    deleted = []
    for _ in range(rounds):
        session_id = client.new_session(working_memory={"goal": "to be forgotten"})
        run_id = client.post(f"/sessions/{session_id}/runs")["run_id"]
        answers = together([partial(write, session_id, run_id) for write in _writers(clients)])
        assert answers[0][0].status == 204
        # A run goes with its session: afterwards there is no such run.
        assert {answer.status for answer in answers[1]} <= {200, 404, 410}
        outcomes.update(answer.status for each in answers[2:] for answer in each)
        assert client.request("GET", f"/sessions/{session_id}").status == 410
        deleted.append(session_id)
    assert set(outcomes) <= {200, 201, 410}
    assert outcomes[410] > 0
    assert outcomes[201] > 0
    _assert_nothing_left(select, deleted)


def _writers(clients: list[Client]) -> list:
    def delete(session_id: str, _run_id: str) -> list[Answer]:
        time.sleep(next(_PAUSES))
        return [clients[0].request("DELETE", f"/sessions/{session_id}")]

    def append(client: Client, session_id: str, run_id: str) -> list[Answer]:
        message = {"role": "assistant", "content": None, "tool_calls": [CALL], "run_id": run_id}
        path = f"/sessions/{session_id}/messages"
        return [client.request("POST", path, message) for _ in range(3)]

    def patch(session_id: str, _run_id: str) -> list[Answer]:
        path = f"/sessions/{session_id}/working-memory"
        return [clients[3].request("PATCH", path, {"goal": "late"}) for _ in range(3)]

    def heartbeat(_session_id: str, run_id: str) -> list[Answer]:
        return [clients[4].request("POST", f"/runs/{run_id}/heartbeat", {})]

    def resume(session_id: str, _run_id: str) -> list[Answer]:
        return [clients[5].request("POST", f"/sessions/{session_id}/resume", {})]

    appends = [partial(append, client) for client in clients[1:3]]
    return [delete, heartbeat, *appends, patch, resume]


def _assert_nothing_left(select, deleted: list[str]) -> None:
    ids = ", ".join(f"'{session_id}'" for session_id in deleted)
    for table in (*TABLES, "runs_app_run", "sessions_app_metadataterm"):
        assert select(f"SELECT count(*) FROM {table} WHERE session_id IN ({ids})") == [(0,)]
    unfinished = f"""
        SELECT session_id, status, purged_at FROM sessions_app_session
        WHERE session_id IN ({ids}) AND (status <> 'DELETED' OR purged_at IS NULL)
    """
    assert select(unfinished) == []
