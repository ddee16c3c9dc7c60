"""Report LOCK-01: a lock that is held longer than anyone may wait is said, and loses nothing."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from functools import partial

import psycopg
import pytest

from tests.live_server import LiveServer, fresh_database
from tests.races.invariants import broken, selecting
from tests.races.load import Write, together


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One that waits a second for a lock."""
    with fresh_database(tmp_path_factory.mktemp("busy")) as url:
        with LiveServer(database_url=url, DB_LOCK_TIMEOUT=1) as server:
            yield server
            assert broken(selecting(url)) == {}


@pytest.fixture
def select(server):
    return selecting(server.database_url)


@contextlib.contextmanager
def locked(server: LiveServer, session_id: str) -> Iterator[None]:
    """Hold the write lock (SQLite) or the session's row (PostgreSQL) until the block ends."""
    url = server.database_url
    if url.startswith("postgres"):
        with psycopg.connect(url) as connection:
            query = "SELECT 1 FROM sessions_app_session WHERE session_id = %s FOR UPDATE"
            connection.execute(query, [session_id])
            yield
        return
    holder = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)
    try:
        holder.execute("BEGIN IMMEDIATE")
        yield
    finally:
        holder.close()


def append_to(session_id: str) -> Write:
    return Write("POST", f"/sessions/{session_id}/messages", {"role": "user", "content": "once"})


def test_a_write_is_told_to_come_later_and_is_stored_once(client, server):
    session_id = client.new_session()
    write = append_to(session_id)
    with locked(server, session_id):
        began = time.monotonic()
        busy = client.send(write)
        waited = time.monotonic() - began
        # Readers do not wait for the writer.
        assert client.messages(session_id) == []
    assert (busy.status, busy.code) == (503, "database_busy")
    assert int(busy.headers["Retry-After"]) >= 1
    assert 0.9 < waited < 5
    stored = client.send(write)
    assert (stored.status, stored.replayed) == (201, False)
    again = client.send(write)
    assert (again.status, again.replayed, again.body) == (201, True, stored.body)
    assert client.session(session_id)["last_sequence"] == 1


def test_duplicates_of_a_waiting_write_are_stored_once(client, clients, server):
    session_id = client.new_session()
    write = append_to(session_id)
    sent = [Write(write.method, write.path, write.body, key=write.key) for _ in range(4)]
    with locked(server, session_id):
        answers = together([partial(c.send, w) for c, w in zip(clients, sent, strict=False)])
    assert {answer.code for answer in answers} <= {"database_busy", "idempotency_in_progress"}
    assert {answer.status for answer in answers} <= {503, 409}
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers)
    retried = together([partial(c.insist, w) for c, w in zip(clients, sent, strict=False)])
    assert [answer.status for answer in retried] == [201] * 4
    assert client.session(session_id)["last_sequence"] == 1


def test_every_kind_of_write_is_told_to_come_later(client, clients, server):
    session_id = client.new_session()
    run_id = client.post(f"/sessions/{session_id}/runs")["run_id"]
    before = client.session(session_id)
    path = f"/sessions/{session_id}"
    writes = [
        Write("PATCH", path, {"title": "later"}),
        Write("PATCH", f"{path}/working-memory", {"goal": "later"}),
        Write("POST", f"{path}/close", {}),
        Write("POST", f"/runs/{run_id}/heartbeat", {}),
        Write("POST", f"/runs/{run_id}/complete", {}),
        Write("DELETE", path),
    ]
    with locked(server, session_id):
        answers = together([partial(c.send, w) for c, w in zip(clients, writes, strict=False)])
    assert [(a.status, a.code) for a in answers] == [(503, "database_busy")] * len(writes)
    assert client.session(session_id) == before


def test_a_lock_that_is_short_is_waited_for(client, server):
    session_id = client.new_session()

    def hold() -> None:
        with locked(server, session_id):
            time.sleep(0.5)

    def send() -> None:
        time.sleep(0.1)
        client.send(write)

    write = append_to(session_id)
    together([hold, send])
    assert write.answer is not None
    assert write.answer.status == 201
