"""Workers are killed under load, one or all of them, on the database that the suite runs on."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live_server import LiveServer, fresh_database
from tests.outage.storm import Storm

pytestmark = pytest.mark.soak

# One that dies sooner after its start is taken for broken: then the whole command ends, and it is
# for the service manager to start it again.
_PAUSE_SECONDS = 6


def test_that_are_killed_lose_nothing(tmp_path: Path, say: Callable) -> None:
    rounds = 10
    with fresh_database(tmp_path) as url, LiveServer(database_url=url) as server:
        storm = Storm(server)
        with storm.blowing():
            for number in range(rounds):
                storm.wait_for_writes(50)
                time.sleep(_PAUSE_SECONDS)
                for worker in server.workers[: 1 + number % 2]:
                    os.kill(worker, signal.SIGKILL)
            storm.wait_for_writes(50)
        storm.close()
    say(f"{rounds} times a worker or both were killed: {storm.figures()}")
