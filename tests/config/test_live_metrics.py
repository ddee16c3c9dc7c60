"""/metrics of a real server: whatever worker answers, it tells of all of them."""

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from config import metrics
from tests.live_server import LiveServer, fresh_database
from tests.processes import children_of, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

TOKEN = "a-token-that-is-long-enough"
COUNTED = 'dossier_request_seconds_count{method="GET",route="sessions",status="200"}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For temporary files, of the server alone."""
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[LiveServer]:
    with fresh_database(folder) as url:
        with LiveServer(
            database_url=url, WORKERS=2, THREADS=1, METRICS_TOKEN=TOKEN, TMPDIR=str(folder)
        ) as server:
            yield server


def get(server: LiveServer, path: str, token: str) -> str:
    request = urllib.request.Request(
        f"{server.url}{path}", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(answer.read().decode())


def counted(server: LiveServer) -> float:
    lines = get(server, "/metrics", TOKEN).splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(COUNTED))


def test_a_worker_that_died_is_forgotten_by_two_who_ask_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    file = tmp_path / f"gauge_livesum_{process.pid}.db"
    file.touch()
    remove = os.remove

    def remove_as_second(path: str) -> None:
        remove(path)
        remove(path)

    monkeypatch.setattr(os, "remove", remove_as_second)
    metrics._forget_dead(tmp_path)
    assert not file.exists()


def test_two_workers_count_together_and_lose_nothing_with_one_of_them(
    server: LiveServer, folder: Path
) -> None:
    sent = 0

    def both_have_answered() -> bool:
        nonlocal sent
        with ThreadPoolExecutor(8) as pool:  # more than one of them has threads for
            list(pool.map(lambda _: get(server, "/api/v1/sessions", server.token), range(8)))
        sent += 8
        return len([*folder.glob("dossier-metrics-*/histogram_*.db")]) == 2

    def answers() -> bool:
        try:
            return counted(server) == sent
        except OSError:  # who is gone had that connection
            return False

    wait_until(both_have_answered)
    assert counted(server) == sent
    (main, *_) = children_of(server.process.pid)
    (worker, *_) = children_of(main)
    os.kill(worker, signal.SIGKILL)
    wait_until(answers)
    server.stop()
    assert not [*folder.glob("dossier-metrics-*")]
