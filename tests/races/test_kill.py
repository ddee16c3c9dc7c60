"""SIGKILL under load: what was acknowledged is there, once, and the rest can be sent again.

Reports RUN-08 (sequences that began again after a restart) and DUP-01 (a retry that had landed).
"""

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.live_server import LiveServer, fresh_database
from tests.races.invariants import broken, selecting
from tests.races.load import Client, together
from tests.races.writers import Writer, check_stored

WRITERS, SESSIONS = 16, 4


@dataclass
class Crashes:
    """A server that is killed again and again, and the writers who outlive it."""

    server: LiveServer
    client: Client
    writers: list[Writer]
    writes: int = 0
    unanswered: int = 0
    landed_unseen: int = 0

    def crash(self, after: float) -> None:
        """Kill the server under load, start it, and send again what was not answered."""
        threads = [threading.Thread(target=writer.go) for writer in self.writers]
        for thread in threads:
            thread.start()
        time.sleep(after)
        self.server.kill()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        self.unanswered += sum(w.sent[-1].answer is None for w in self.writers if w.sent)
        self.server.start()
        self.client.close()  # its connection died with the server; the next request makes another
        together([writer.settle for writer in self.writers])

    def check(self) -> None:
        self.writes = sum(len(writer.sent) for writer in self.writers)
        self.landed_unseen = sum(writer.landed_unseen for writer in self.writers)
        check_stored(self.client, self.writers)
        assert broken(selecting(self.server.database_url)) == {}


@pytest.fixture
def crashes(tmp_path: Path) -> Iterator[Crashes]:
    with fresh_database(tmp_path) as url, LiveServer(database_url=url) as server:
        clients = [Client(server) for _ in range(WRITERS + 1)]
        own = clients.pop()
        sessions = [own.new_session() for _ in range(SESSIONS)]
        writers = [
            Writer(number, sessions[number % SESSIONS], client)
            for number, client in enumerate(clients)
        ]
        yield Crashes(server, own, writers)
        assert server.faults == []
        for client in [own, *clients]:
            client.close()


@pytest.mark.parametrize("rounds", [2, pytest.param(50, marks=pytest.mark.soak)])
def test_nothing_acknowledged_is_lost_and_nothing_is_there_twice(crashes, rounds, request, capsys):
    for number in range(rounds):
        crashes.crash(after=random.uniform(0.3, 2))
        # All that there is, at first and at the end; in between now and then, since it grows.
        if number % 10 == 0 or number == rounds - 1:
            crashes.check()
    assert crashes.unanswered > 0, "the server was killed while nobody was writing"
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and request.node.get_closest_marker("soak"):
        with capsys.disabled():
            reporter.write_line(
                f" {rounds} kills, {crashes.writes} writes, {crashes.unanswered} of them "
                f"unanswered, {crashes.landed_unseen} of these stored all the same "
            )


def test_sequences_go_on_after_a_kill_and_are_never_used_again(client, server):
    session_id = client.new_session()
    path = f"/sessions/{session_id}/messages"
    hello = {"role": "user", "content": "hello"}
    client.post(path, {"messages": [hello] * 5})
    server.kill()
    server.start()
    client.close()
    assert client.post(path, hello)["last_sequence"] == 6
    assert client.request("DELETE", f"{path}/6").status == 204
    orphan = {"role": "tool", "tool_call_id": "nobody's", "content": "late"}
    assert client.request("POST", path, {"messages": [hello, orphan]}).status == 422
    assert client.post(path, hello)["last_sequence"] == 7
    found = client.get(f"{path}?after=5")
    assert [message["sequence"] for message in found["data"]] == [7]


@pytest.mark.soak
def test_a_run_whose_server_was_killed_is_interrupted_with_a_reason(client, server):
    session_id = client.new_session()
    run = client.post(f"/sessions/{session_id}/runs", {"lease_seconds": 10})
    server.kill()
    server.start()
    client.close()
    time.sleep(10)
    found = client.get(f"/runs/{run['run_id']}")
    assert (found["status"], found["ended_at"]) == ("INTERRUPTED", run["lease_expires_at"])
    server.manage("expire_sessions")
    event = client.events(session_id)[-1]
    assert (event["to_status"], event["actor"]["type"]) == ("INTERRUPTED", "system")
    assert event["reason"]
    assert client.post(f"/runs/{run['run_id']}/resume")["attempt"] == 2
