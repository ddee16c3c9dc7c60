"""Agents that write all kinds of things and remember each, and what must be stored of it.

What was acknowledged is there, once; what nobody answered was sent again with its key.
"""

import time
from contextlib import suppress
from threading import Event
from typing import Any

from tests.races.load import NO_ANSWER, Answer, Client, Write

# Of one write: longer than any outage here, and what comes after it.
PATIENCE_SECONDS = 300
_AGAIN_AFTER_SECONDS = 0.2


class Writer:
    """One agent: it writes all kinds of things, one after the other."""

    def __init__(self, number: int, session_id: str, client: Client) -> None:
        self.name = f"writer{number}"
        self.session_id = session_id
        self.client = client
        self.sent: list[Write] = []
        self.landed_unseen = 0
        self.told_to_wait = 0
        self.unanswered = 0

    def go(self) -> None:
        """Until the server is gone."""
        with suppress(*NO_ANSWER):
            while True:
                answer = self.client.send(self._begin())
                assert answer.ok, answer

    def go_on(self, stop: Event) -> None:
        """Until it is told to stop: what is put off, or not answered, is sent again."""
        while not stop.is_set():
            answer = self._insist(self._begin())
            assert answer.ok, answer

    def settle(self) -> None:
        """Send again what was not answered: the last write, with the key that it had."""
        if self.sent and self.sent[-1].answer is None:
            answer = self.client.insist(self.sent[-1])
            assert answer.ok, answer
            self.landed_unseen += answer.replayed

    def of_kind(self, method: str, end: str) -> list[Write]:
        return [w for w in self.sent if w.method == method and w.path.endswith(end)]

    def _begin(self) -> Write:
        self.sent.append(self._next())
        return self.sent[-1]

    def _insist(self, write: Write) -> Answer:
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < give_up_at:
            try:
                answer = self.client.send(write)
            except NO_ANSWER:
                self.unanswered += 1
                time.sleep(_AGAIN_AFTER_SECONDS)
                continue
            if not _is_put_off(answer):
                self.landed_unseen += answer.replayed
                return answer
            self.told_to_wait += 1
            time.sleep(float(answer.headers["Retry-After"]))
        raise TimeoutError(write)

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


def _is_put_off(answer: Answer) -> bool:
    """Whether it is one of the two refusals that waiting mends; both say how long."""
    return (answer.status, answer.code) in {
        (503, "database_busy"),
        (409, "idempotency_in_progress"),
    }


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


def check_stored(client: Client, writers: list[Writer]) -> None:
    """Assert that each session holds exactly what its writers were told that it does."""
    for session_id in {writer.session_id for writer in writers}:
        mine = [writer for writer in writers if writer.session_id == session_id]
        _check_messages(client, session_id, mine)
        _check_memory(client, session_id, mine)
        _check_runs(client, session_id, mine)
        # Every write has changed the session, and once.
        changes = 1 + sum(len(writer.sent) for writer in mine)
        assert client.session(session_id)["version"] == changes


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
