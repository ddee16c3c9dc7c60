"""Recorded agent sessions go in over HTTP, the server is killed, and another process resumes them.

`sessions/` holds a session of our own with every odd shape that real ones have, so that this runs
everywhere; recordings of real agents are taken from `../shared/data/sessions` where that exists.
"""

import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.live_server import ROOT, LiveServer, fresh_database

OWN = Path(__file__).parent / "sessions"
RECORDED = ROOT.parent / "shared" / "data" / "sessions"
ODD_SHAPES = OWN / "odd_shapes.json"

# What every stored message has, whether it was sent or not.
ALWAYS = {
    "object",
    "message_id",
    "session_id",
    "sequence",
    "type",
    "role",
    "status",
    "content",
    "run_id",
    "session_version",
    "created_at",
}


class Account:
    """One account at a live server, without the example client: that one is under test."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        name = f"loader-{secrets.token_hex(4)}"
        self.token = server.manage("create_token", name, "--name", "test")
        self.http = requests.Session()
        self.http.headers["Authorization"] = f"Bearer {self.token}"

    def get(self, path: str, **query: Any) -> Any:
        return self._checked(self.http.get(self._url(path), params=query))

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        return self._checked(self.http.post(self._url(path), json=body or {}, params=query))

    def refused(self, path: str, body: Any) -> str:
        answer = self.http.post(self._url(path), json=body)
        assert answer.status_code == 409, answer.text
        return str(answer.json()["code"])

    def load(self, folder: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "examples/load_recorded.py", str(folder)]
        command += ["--url", self.server.url, "--token", self.token]
        return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)

    def session(self, file: Path) -> Any:
        (session,) = self.get("/sessions", external_id=f"recorded:{file.stem}")["data"]
        return session

    def messages(self, session: Any) -> Any:
        page = self.get(f"/sessions/{session['session_id']}/messages", limit=1000)
        assert not page["has_more"]
        return page["data"]

    def _url(self, path: str) -> str:
        return f"{self.server.url}/api/v1{path}"

    @staticmethod
    def _checked(answer: requests.Response) -> Any:
        assert answer.ok, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with fresh_database(tmp_path_factory.mktemp("real")) as url:
        with LiveServer(database_url=url) as server:
            yield server


@pytest.fixture
def account(server: LiveServer) -> Iterator[Account]:
    """A new one for each test."""
    account = Account(server)
    with account.http:
        yield account


@pytest.fixture(params=[OWN, RECORDED], ids=["our own", "recorded"])
def folder(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.param
    if not folder.is_dir():
        pytest.skip("there are no recorded sessions beside the repository")
    return folder


def recorded(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def rows(loaded: subprocess.CompletedProcess[str]) -> dict[str, list[str]]:
    """The loader's table: file → session, messages, sent, runs, calls, what was read back."""
    assert loaded.returncode == 0, loaded.stdout + loaded.stderr
    lines = [line.split(maxsplit=6) for line in loaded.stdout.splitlines()[1:]]
    return {name: cells for name, *cells in lines}


def assert_as_sent(stored: Any, sent: Any) -> None:
    assert [message["sequence"] for message in stored] == list(range(1, len(sent) + 1))
    for theirs, ours in zip(stored, sent, strict=True):
        expected = dict(ours)
        if "created_at" in expected:
            at = datetime.fromisoformat(expected.pop("created_at"))
            assert datetime.fromisoformat(theirs["client_created_at"]) == at
        # As text: the order of keys counts, and 1 is not True.
        found = {key: theirs[key] for key in expected}
        assert json.dumps(found) == json.dumps(expected)
        assert theirs.keys() - ours.keys() - ALWAYS - {"client_created_at"} == set()


def assert_runs_around_user_turns(account: Account, session: Any, messages: Any) -> None:
    runs = account.get(f"/sessions/{session['session_id']}/runs", limit=200)["data"]
    turns = [message["run_id"] for message in messages if message["role"] == "user"]
    assert {run["run_id"]: run["status"] for run in runs} == dict.fromkeys(turns, "COMPLETED")
    current = None
    for message in messages:
        if message["role"] == "user":
            current = turns.pop(0)
        assert message["run_id"] == current


def assert_resumes(account: Account, session: Any, messages: Any, *, closed: bool) -> None:
    """After the crash: everything is there, and the session goes on at the next sequence."""
    path = f"/sessions/{session['session_id']}"
    message = {"role": "user", "content": "continue"}
    if closed:
        assert account.refused(f"{path}/messages", message) == "session_closed"
    packet = account.post(f"{path}/resume", last_n=1000)
    assert packet["resumed_from"] == ("CLOSED" if closed else None)
    assert packet["session"]["status"] == "ACTIVE"
    assert packet["messages"] == messages
    answer = account.post(f"{path}/messages", message)
    assert answer["last_sequence"] == len(messages) + 1


class TestRecordedSessions:
    def test_come_back_as_sent_and_go_on_after_the_server_was_killed(
        self, account: Account, folder: Path
    ) -> None:
        files = sorted(folder.glob("*.json"))
        first = rows(account.load(folder))
        assert set(first) == {file.stem for file in files}
        second = rows(account.load(folder))
        before = {}
        for number, file in enumerate(files):
            session = account.session(file)
            sent = recorded(file)
            messages = account.messages(session)
            assert_as_sent(messages, sent["messages"])
            assert_runs_around_user_turns(account, session, messages)
            assert session["title"] == sent["title"]
            assert session["metadata"] == {key: sent[key] for key in ("source", "outcome")}
            # Loaded once: the second call found everything, and sent nothing.
            assert first[file.stem][2] == str(len(messages))
            assert second[file.stem] == [*first[file.stem][:2], "0", *first[file.stem][3:]]
            if number % 2 == 0:
                account.post(f"/sessions/{session['session_id']}/close", {"reason": "loaded"})
            before[file] = messages

        account.server.kill()
        account.server.start()

        for number, (file, messages) in enumerate(before.items()):
            session = account.session(file)
            assert account.messages(session) == messages
            assert_resumes(account, session, messages, closed=number % 2 == 0)

    def test_link_each_result_to_its_call(self, account: Account) -> None:
        rows(account.load(OWN))
        session = account.session(ODD_SHAPES)
        page = account.get(f"/sessions/{session['session_id']}/tool-calls", limit=200)
        calls = sorted(page["data"], key=lambda call: call["id"])
        found = [
            (
                call["tool_call_id"],
                call["status"],
                call["message_sequence"],
                call["result_sequence"],
            )
            for call in calls
        ]
        assert found == [
            ("call_a", "FAILED", 4, 6),
            ("call_b", "SUCCEEDED", 4, 5),
            ("search:1", "SUCCEEDED", 7, 8),
            ("search:1", "SUCCEEDED", 9, 10),
            ("same", "SUCCEEDED", 11, 12),
            ("same", "FAILED", 11, 13),
            ("w1", "SUCCEEDED", 16, 19),
            ("w2", "SUCCEEDED", 17, 18),
            # Its run had ended before it was answered; the late result is kept with it.
            ("late", "FAILED", 20, 22),
            ("never", "FAILED", 25, None),
        ]
        sent = [
            call["function"]["arguments"]
            for message in recorded(ODD_SHAPES)["messages"]
            for call in message.get("tool_calls", [])
        ]
        assert [call["arguments"] for call in calls] == sent

    def test_are_finished_by_the_next_load_when_one_was_cut_off(self, account: Account) -> None:
        messages = recorded(ODD_SHAPES)["messages"]
        session = account.post("/sessions", {"external_id": "recorded:odd_shapes"})
        path = f"/sessions/{session['session_id']}"
        account.post(f"{path}/messages", {"messages": messages[:2]})
        run = account.post(f"{path}/runs", {"metadata": {"turn": 1}})
        account.post(f"{path}/messages", {"messages": messages[2:5], "run_id": run["run_id"]})

        finished = rows(account.load(OWN))

        assert finished["odd_shapes"][2] == str(len(messages) - 5)
        stored = account.messages(session)
        assert_as_sent(stored, messages)
        assert_runs_around_user_turns(account, session, stored)
        assert stored[2]["run_id"] == run["run_id"]

    def test_are_reported_when_they_differ(self, account: Account, tmp_path: Path) -> None:
        changed = tmp_path / "changed"
        shutil.copytree(OWN, changed)
        rows(account.load(changed))
        text = ODD_SHAPES.read_text(encoding="utf-8")
        (changed / ODD_SHAPES.name).write_text(text.replace('"230 V"', '"231 V"'), encoding="utf-8")

        loaded = account.load(changed)

        assert loaded.returncode == 1
        assert "message 5 differs" in loaded.stdout
