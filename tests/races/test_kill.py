"""SIGKILL under load: what was acknowledged is there, once, and the rest can be sent again.

Reports RUN-08 (sequences that began again after a restart) and DUP-01 (a retry that had landed).
"""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.live_server import LiveServer, fresh_database
from tests.races.invariants import broken, selecting
from tests.races.load import NO_ANSWER, Answer, Client, Write, together

WRITERS, SESSIONS = 16, 4


class Writer:
    """One agent: it writes all kinds of things, one after the other, until the server is gone."""

    def __init__(self, number: int, session_id: str, client: Client) -> None:
        self.name = f"writer{number}"
        self.session_id = session_id
        self.client = client
        self.sent: list[Write] = []
        self.landed_unseen = 0

    def go(self) -> None:
        with suppress(*NO_ANSWER):
            while True:
                write = self._next()
                self.sent.append(write)
                answer = self.client.send(write)
                assert answer.ok, answer

    def settle(self) -> None:
        """Send again what was not answered: the last write, with the key that it had."""
        if self.sent and self.sent[-1].answer is None:
            answer = self.client.insist(self.sent[-1])
            assert answer.ok, answer
            self.landed_unseen += answer.replayed

    def of_kind(self, method: str, end: str) -> list[Write]:
        return [w for w in self.sent if w.method == method and w.path.endswith(end)]

    def _next(self) -> Write:
        tag = f"{self.name} {len(self.sent)}"
        path = f"/sessions/{self.session_id}"
        if self.sent and self.sent[-1].path.endswith("/runs"):
            run_id = _answer(self.sent[-1]).body["run_id"]
            return Write("POST", f"/runs/{run_id}/complete", {"output": tag})
        kind = len(self.sent) % 6
        if kind == 2:
            return Write("POST", f"{path}/messages", {"messages": _call_and_result(tag)})
        if kind == 3:
            return Write("PATCH", f"{path}/working-memory", {"extra": {self.name: tag}})
        if kind == 4:
            run = {"input": tag, "if_active": "queue"}
            return Write("POST", f"{path}/runs", run)
        return Write("POST", f"{path}/messages", {"role": "user", "content": tag})


def _call_and_result(tag: str) -> list[dict[str, Any]]:
    function = {"name": "look", "arguments": f'{{"tag": "{tag}"}}'}
    call = {"id": tag, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": f"{tag} call", "tool_calls": [call]},
        {"role": "tool", "content": f"{tag} result", "tool_call_id": tag},
    ]


def _answer(write: Write) -> Answer:
    assert write.answer is not None
    return write.answer


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
        for session_id in {writer.session_id for writer in self.writers}:
            mine = [writer for writer in self.writers if writer.session_id == session_id]
            _check_messages(self.client, session_id, mine)
            _check_memory(self.client, session_id, mine)
            _check_runs(self.client, session_id, mine)
            # Every write has changed the session, and once.
            changes = 1 + sum(len(writer.sent) for writer in mine)
            assert self.client.session(session_id)["version"] == changes
        assert broken(selecting(self.server.database_url)) == {}


def _check_messages(client: Client, session_id: str, writers: list[Writer]) -> None:
    stored = client.messages(session_id)
    assert [message["sequence"] for message in stored] == list(range(1, len(stored) + 1))
    contents = {message["sequence"]: message["content"] for message in stored}
    written = [write for writer in writers for write in writer.of_kind("POST", "/messages")]
    expected: dict[int, str] = {}
    for write in written:
        sent = write.body.get("messages", [write.body])
        answered = _answer(write).body["messages"]
        for message, place in zip(sent, answered, strict=True):
            expected[place["sequence"]] = message["content"]
    assert contents == expected
    session = client.session(session_id)
    assert (session["last_sequence"], session["message_count"]) == (len(stored), len(stored))
    calls = sum("messages" in write.body for write in written)
    assert (session["tool_call_count"], session["open_tool_call_count"]) == (calls, 0)


def _check_memory(client: Client, session_id: str, writers: list[Writer]) -> None:
    patches = [(w.name, w.of_kind("PATCH", "/working-memory")) for w in writers]
    memory = client.get(f"/sessions/{session_id}/working-memory")
    assert memory["version"] == sum(len(mine) for _, mine in patches)
    newest = {name: mine[-1].body["extra"][name] for name, mine in patches if mine}
    assert memory["extra"] == newest


def _check_runs(client: Client, session_id: str, writers: list[Writer]) -> None:
    made = [_answer(w).body["run_id"] for wr in writers for w in wr.of_kind("POST", "/runs")]
    ended = {w.path: w.body["output"] for wr in writers for w in wr.of_kind("POST", "/complete")}
    assert client.session(session_id)["run_count"] == len(made) == len(set(made))
    for run in client.all(f"/sessions/{session_id}/runs"):
        output = ended.get(f"/runs/{run['run_id']}/complete")
        assert run["run_id"] in made
        assert run["output"] == output
        assert (run["status"] == "COMPLETED") == (output is not None)


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
        assert "Traceback" not in server.output, server.output
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
