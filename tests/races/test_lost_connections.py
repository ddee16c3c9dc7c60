"""PostgreSQL ends connections, or changes below them: that is said, and passes by itself."""

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from config import connections
from tests.live_server import LiveServer
from tests.races.load import Answer, Client, Write

# More than there are threads that have a connection.
_IN_A_ROW = 20
_AT_MOST = 300


@pytest.fixture(autouse=True)
def postgresql(server: LiveServer) -> Iterator[None]:
    if not server.database_url.startswith("postgres"):
        pytest.skip("SQLite has no connections that end")
    yield
    # The next test has the same server, some thread of which may not have noticed yet.
    time.sleep(connections.SURE_FOR_SECONDS)


def execute(server: LiveServer, statement: str) -> None:
    with psycopg.connect(server.database_url, autocommit=True) as connection:
        connection.execute(statement)


def end_all_connections(server: LiveServer) -> None:
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    execute(server, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")


def settled(call: Callable[[], Answer]) -> list[int]:
    """What is answered until all threads have noticed."""
    answers: list[Answer] = []
    while not (len(answers) >= _IN_A_ROW and all(each.ok for each in answers[-_IN_A_ROW:])):
        assert len(answers) < _AT_MOST, answers[-1]
        answers.append(call())
    return [answer.status for answer in answers if not answer.ok]


def create(client: Client) -> Answer:
    return client.request("POST", "/sessions", {})


def test_a_create_is_told_to_come_later(client, server):
    settled(lambda: create(client))  # slowly, as each thread prepares
    for _ in range(3):
        settled(lambda: create(client))
        end_all_connections(server)
        assert set(settled(lambda: create(client))) <= {503}


def test_a_write_with_a_key_is_stored_once(client, server):
    session_id = client.new_session()
    for number in range(2):
        end_all_connections(server)
        path = f"/sessions/{session_id}/messages"
        answer = client.insist(Write("POST", path, {"role": "user", "content": "once"}))
        assert (answer.status, answer.body["last_sequence"]) == (201, number + 1)


def test_a_read_is_told_to_come_later_after_a_migration(client, server):
    session_id = client.new_session(title="here")

    def read() -> Answer:
        return client.request("GET", f"/sessions/{session_id}")

    settled(read)
    for length in (600, 500):
        execute(server, f"ALTER TABLE sessions_app_session ALTER title TYPE varchar({length})")
        assert set(settled(read)) <= {503}
