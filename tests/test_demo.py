"""The demo, played whole, and looked at from outside: what it printed, changed and stored."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

from tests.live_server import ROOT, fresh_database
from tests.providers import PROVIDERS, check, synthetic

MISSING = "ModuleNotFoundError: No module named 'requests'"

# In this order among what is printed.
NARRATIVE = [
    "Morning",
    MISSING,
    "next_action: Add requests to requirements.txt",
    "is RUNNING: nobody ended it",
    "SIGKILL",
    "nothing answers any more",
    "are all there, unchanged",
    "is INTERRUPTED: its lease ran out",
    "Afternoon",
    "resumed     from EXPIRED",
    "goal        My Flask project does not start",
    "completed   Look at the files",
    "next        Add requests to requirements.txt",
    "open        read_file was called, and nobody knows",
    "cut off     run_",
    "user        continue",
    "model       openai_chat: chat.completions.create(messages=<",
    "model       openai_responses: responses.create(input=<",
    "model       anthropic: messages.create(system='', messages=<",
    "started: GET / -> 200 The bookshop is open",
    "the session is CLOSED",
]


def play(folder: Path, database_url: str) -> str:
    # The demo runs under the settings that a reader has, not under those of this suite.
    environment = {**os.environ, "DATABASE_URL": database_url, "ENV_FILE": ""}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    command = [sys.executable, "examples/demo.py", "--folder", str(folder)]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=PIPE, stderr=STDOUT, text=True
    ) as demo:
        try:
            printed, _ = demo.communicate(timeout=240)
        finally:
            # Asked politely it takes its server with it, which a plain kill would leave behind.
            demo.terminate()
    assert demo.returncode == 0, printed
    return printed


def assert_told_in_order(printed: str) -> None:
    position = 0
    for words in NARRATIVE:
        found = printed.find(words, position)
        assert found >= 0, f"{words!r} is missing, or too early, in:\n{printed}"
        position = found


def assert_project_repaired(project: Path) -> None:
    assert (project / "requirements.txt").read_text() == "Flask==3.1.2\nrequests\n"
    started = subprocess.run(
        [sys.executable, "-S", "start.py"],
        cwd=project,
        check=True,
        capture_output=True,
        text=True,
    )
    assert started.stdout == "started: GET / -> 200 The bookshop is open\n"


def assert_session_closed_with_both_runs(outcome: Any) -> None:
    first, second = sorted(outcome["runs"], key=lambda run: run["run_id"])
    assert outcome["session"]["status"] == "CLOSED"
    assert (first["status"], first["attempt"], first["retry_of"]) == ("INTERRUPTED", 1, None)
    assert (second["status"], second["retry_of"]) == ("COMPLETED", first["run_id"])
    assert second["input"] == {"text": "continue"}
    assert "200 The bookshop is open" in second["output"]["text"]


def assert_history_of_both_processes(outcome: Any) -> None:
    messages = outcome["messages"]
    assert [message["sequence"] for message in messages] == list(range(1, len(messages) + 1))
    asked = [message["content"] for message in messages if message["role"] == "user"]
    assert asked == ["My Flask project does not start. Please repair it.", "continue"]
    by_run = [message["run_id"] for message in messages]
    first, second = sorted({run["run_id"] for run in outcome["runs"]})
    assert by_run == [first] * by_run.count(first) + [second] * by_run.count(second)


def assert_every_tool_call_recorded(outcome: Any) -> None:
    calls = sorted(outcome["tool_calls"], key=lambda call: call["id"])
    assert [(call["name"], call["status"]) for call in calls] == [
        ("list_files", "SUCCEEDED"),
        ("read_file", "SUCCEEDED"),
        ("read_file", "SUCCEEDED"),
        ("run_python", "FAILED"),
        ("remember", "SUCCEEDED"),
        ("read_file", "CANCELLED"),  # interrupted by the crash, and closed with the session
        ("append_line", "SUCCEEDED"),
        ("run_python", "SUCCEEDED"),
        ("remember", "SUCCEEDED"),
    ]


def assert_nothing_left_to_do(outcome: Any) -> None:
    memory = outcome["session"]["working_memory"]
    assert memory["completed"] == memory["plan"]
    assert memory["next_action"] == ""
    assert memory["errors"] == [MISSING]
    assert memory["extra"] == {"missing_packages": ["requests"]}


def assert_every_api_takes_the_session(outcome: Any) -> None:
    """The agent's requests, by the official types and rules; one result is not a tool's."""
    for api, request in outcome["requests"].items():
        messages = request.get("messages", request.get("input"))
        check(api, messages, request.get("system"))
        assert len(synthetic(messages)) == 1
        assert "continue" in json.dumps(messages)
    assert set(outcome["requests"]) == set(PROVIDERS)


def assert_no_server_left(printed: str) -> None:
    port = re.search(r"the server answers at http://127.0.0.1:(\d+)", printed)
    assert port
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(port[1]))) != 0


class TestDemo:
    # In one test, because one play takes long and everything is to be seen in it.
    def test_shows_a_session_that_outlives_its_agent_and_its_server(self, tmp_path: Path) -> None:
        with fresh_database(tmp_path, migrated=False) as database_url:
            printed = play(tmp_path, database_url)
        outcome = json.loads((tmp_path / "outcome.json").read_text())
        assert_told_in_order(printed)
        assert_project_repaired(tmp_path / "bookshop")
        assert_session_closed_with_both_runs(outcome)
        assert_history_of_both_processes(outcome)
        assert_every_tool_call_recorded(outcome)
        assert_nothing_left_to_do(outcome)
        assert_every_api_takes_the_session(outcome)
        assert_no_server_left(printed)
