"""`manage.py serve` as its users meet it: started, pasted from, killed, stopped."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from tests.live_server import LiveServer, faults_in, fresh_database
from tests.processes import alive, children_of, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Set up by its own first run, from nothing."""
    with fresh_database(tmp_path_factory.mktemp("serve"), migrated=False) as url:
        with LiveServer(database_url=url, WORKERS=1) as server:
            yield server


@pytest.fixture
def server(installed: LiveServer) -> LiveServer:
    """The same for all, started again where the test before has ended it."""
    if not installed.runs:
        installed.start()
    return installed


class TestTheFirstRun:
    def test_prints_lines_that_work_when_pasted(self, server):
        if not shutil.which("curl"):
            pytest.skip("curl is not installed")
        lines = [line for line in server.output.splitlines() if "curl -sS" in line]
        finished = subprocess.run(
            ["bash", "-euo", "pipefail"],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            check=True,
        )
        session_id, answers = finished.stdout.split("\n", 1)
        assert re.fullmatch("sess_[0-9a-z]{26}", session_id)
        appended, end = json.JSONDecoder().raw_decode(answers)
        packet = json.loads(answers[end:])
        assert appended["created_count"] == 1
        assert packet["session"]["session_id"] == session_id
        assert [message["content"] for message in packet["messages"]] == ["Hello"]

    def test_shows_its_secrets_once(self, server):
        assert "operator / " in server.output
        token = server.token
        server.restart()
        assert server.output.count(token) == 4  # the line itself and three commands
        assert "printed at the first run" in server.output

    def test_makes_an_operator_who_can_log_in(self, server):
        (password,) = re.findall(r"operator / (\S+)", server.output)
        checked = server.manage(
            "shell",
            "--no-imports",
            "-c",
            "from django.contrib.auth import authenticate;"
            f"print(authenticate(username='operator', password='{password}').is_superuser)",
        )
        assert checked == "True"


def test_a_chunked_body_arrives_whole(server):
    client = http.client.HTTPConnection("127.0.0.1", server.port)
    headers = {
        "Authorization": f"Bearer {server.token}",
        "Content-Type": "application/json",
        "Transfer-Encoding": "chunked",
    }
    parts = iter([b'{"agent_id": ', b'"chunked"}'])
    client.request("POST", "/api/v1/sessions", parts, headers, encode_chunked=True)
    response = client.getresponse()
    body = json.load(response)
    client.close()
    assert (response.status, body.get("agent_id")) == (201, "chunked")


def test_a_refusal_leaves_the_connection_to_the_next_request(server):
    """Also when the body arrives after all that the refusal needed."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        for _ in range(2):
            connection.sendall(
                b"POST /api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer no\r\n"
                b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n"
            )
            time.sleep(0.2)
            connection.sendall(b"{}")
            answer = b""
            while b'"request_id"' not in answer:
                answer += connection.recv(10_000)
            assert answer.startswith(b"HTTP/1.1 401")


class TestStopping:
    def test_sigterm_ends_every_process_and_is_a_success(self, server):
        processes = processes_of(server)
        assert len(processes) >= 4
        assert server.stop() == 0
        assert not alive(processes)

    @pytest.mark.skipif("connection.vendor != 'sqlite'", reason="one file is SQLite's")
    def test_leaves_the_database_as_one_file(self, server):
        path = Path(server.database_url.removeprefix("sqlite:///"))
        assert server.stop() == 0
        log = path.with_name(f"{path.name}-wal")
        assert not log.exists() or log.stat().st_size == 0

    def test_ctrl_c_does_too_without_a_word(self, server):
        processes = processes_of(server)
        before = len(server.output)
        os.killpg(server.process.pid, signal.SIGINT)
        assert server.process.wait(20) == 0
        assert not alive(processes)
        assert "Unexpected exit" not in server.output[before:]
        assert faults_in(server.output[before:]) == []

    def test_children_follow_a_parent_that_was_killed(self, server):
        processes = processes_of(server)
        server.process.kill()
        server.process.wait()
        wait_until(lambda: not alive(processes))

    def test_a_killed_worker_is_replaced(self, server):
        (worker,) = server.workers
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: answers(server))
        assert server.process.poll() is None

    def test_a_killed_server_process_fails_the_command(self, server):
        processes = processes_of(server)
        os.kill(children_of(server.process.pid)[0], signal.SIGKILL)
        assert server.process.wait(20) not in {0, None}
        wait_until(lambda: not alive(processes))

    def test_a_killed_sweep_is_started_again(self, server):
        main, sweep = children_of(server.process.pid)
        os.kill(sweep, signal.SIGKILL)
        wait_until(lambda: len(set(children_of(server.process.pid)) - {main, sweep}) == 1)
        assert answers(server)

    def test_starts_again_on_the_same_port_after_sigkill(self, server):
        token = server.token
        for _ in range(3):
            server.kill()
            server.start()
        assert server.token == token
        assert answers(server)


def test_a_taken_port_is_said_before_anything_is_made(tmp_path):
    database = tmp_path / "never.sqlite3"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = LiveServer(database_url=f"sqlite:///{database}", PORT=taken.getsockname()[1])
        server.start(wait=False)
        assert server.process.wait(30) == 1
    assert "Cannot listen on 127.0.0.1" in server.output
    assert "Agent token" not in server.output
    assert not database.exists()


def test_a_database_that_does_not_answer_is_said_in_a_line():
    server = LiveServer(database_url="postgres://nobody@127.0.0.1:1/nothing")
    server.start(wait=False)
    assert server.process.wait(30) == 1
    assert "The database cannot be used" in server.output
    assert server.faults == []


def test_servers_that_start_together_set_the_database_up_once(tmp_path):
    with fresh_database(tmp_path, migrated=False) as url:
        first, second = LiveServer(database_url=url), LiveServer(database_url=url)
        with contextlib.ExitStack() as running:
            for server in (first, second):
                running.callback(server.stop)
                server.start(wait=False)
            wait_until(lambda: answers(first) and answers(second), 60)
            assert sorted(server.output.count("Agent token") for server in (first, second)) == [
                0,
                1,
            ]


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="connections cost there")
def test_threads_keep_their_connections(server):
    assert connection.vendor == "postgresql"
    url = server.database_url
    with psycopg.connect(url, autocommit=True) as watcher:
        for _ in range(30):
            answers(server)
        before = backends(watcher)
        for _ in range(30):
            answers(server)
        assert before <= backends(watcher)  # a thread that was idle so far opens its own


def backends(watcher: psycopg.Connection) -> set[int]:
    rows = watcher.execute(
        "SELECT pid FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'dossier'"
    )
    return {pid for (pid,) in rows}


def answers(server: LiveServer) -> bool:
    try:
        with urllib.request.urlopen(f"{server.url}/readyz", timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


def processes_of(server: LiveServer) -> list[int]:
    main, sweep = children_of(server.process.pid)
    return [server.process.pid, main, sweep, *children_of(main)]
