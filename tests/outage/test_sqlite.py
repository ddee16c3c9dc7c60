"""A file that is locked, slow to get, or has no room: what was acknowledged is there once, the rest
is told to wait, and the server recovers by itself."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from tests.live_server import LiveServer
from tests.outage.places import small_disk
from tests.outage.storm import Storm

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="soaked with PostgreSQL"),
]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder / "live.sqlite3"


@pytest.fixture
def storm(database: Path) -> Iterator[Storm]:
    with LiveServer(database_url=f"sqlite:///{database}") as server:
        made = Storm(server)
        yield made
        made.close()


@contextmanager
def locked(database: Path) -> Iterator[None]:
    holder = sqlite3.connect(database, isolation_level=None, timeout=60)
    try:
        holder.execute("BEGIN IMMEDIATE")
        yield
    finally:
        holder.close()


def test_that_is_locked_is_said_and_comes_back(
    storm: Storm, database: Path, outage_seconds: float, say: Callable
) -> None:
    with storm.blowing():
        storm.wait_for_writes(100)
        with locked(database):
            locked_at = time.monotonic()
            time.sleep(outage_seconds)
            # Reading goes on, as far as threads are left that do not wait to write.
            assert storm.seen.said(since=locked_at) <= {200}
        storm.wait_for_writes(100)
    assert storm.told_to_wait() > 0
    say(f"locked for {outage_seconds:.0f} s: {storm.figures()}")


def test_that_is_slow_to_get_is_waited_for(
    storm: Storm, database: Path, outage_seconds: float, say: Callable
) -> None:
    until = time.monotonic() + outage_seconds
    with storm.blowing():
        storm.wait_for_writes(100)
        while time.monotonic() < until:
            with locked(database):
                time.sleep(0.9)
            time.sleep(0.1)
        storm.wait_for_writes(100)
    say(f"locked nine tenths of {outage_seconds:.0f} s: {storm.figures()}")


def test_whose_folder_is_gone_is_said_and_comes_back(
    storm: Storm, database: Path, outage_seconds: float, say: Callable
) -> None:
    """Who has it open goes on with it; who has not, as a worker that has just begun, waits."""
    folder = database.parent
    with storm.blowing():
        storm.wait_for_writes(100)
        folder.rename(folder.with_name("elsewhere"))
        for worker in storm.server.workers:
            os.kill(worker, signal.SIGKILL)
        time.sleep(outage_seconds)
        folder.with_name("elsewhere").rename(folder)
        storm.wait_for_writes(100)
    assert storm.told_to_wait() > 0
    assert {200, 503} <= storm.seen.said(since=0)
    say(f"its folder gone for {outage_seconds:.0f} s: {storm.figures()}")


def test_whose_disk_is_full_loses_nothing(outage_seconds: float, say: Callable) -> None:
    with small_disk(32) as disk:
        with LiveServer(database_url=f"sqlite:///{disk.folder / 'live.sqlite3'}") as server:
            storm = Storm(server)
            with storm.blowing():
                storm.wait_for_writes(100)
                disk.fill()
                time.sleep(outage_seconds)
                disk.free()
                storm.wait_for_writes(100)
            storm.close()
    assert storm.told_to_wait() > 0
    say(f"no room on its disk for {outage_seconds:.0f} s: {storm.figures()}")
