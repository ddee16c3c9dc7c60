"""PostgreSQL crashes, is gone, locked, frozen, or has no room: what was acknowledged is there once,
the rest is told to wait, and the server recovers by itself."""

import random
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from django.db import connection

from tests.live_server import LiveServer
from tests.outage.places import Cluster, cluster, open_folder, small_disk
from tests.outage.storm import Storm

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="soaked with SQLite"),
]


@pytest.fixture
def postgresql() -> Iterator[Cluster]:
    with open_folder() as folder, cluster(folder) as made:
        yield made


@pytest.fixture
def storm(postgresql: Cluster) -> Iterator[Storm]:
    with LiveServer(database_url=postgresql.url) as server:
        made = Storm(server, postgresql)
        yield made
        made.close()


def test_that_crashes_loses_nothing(storm: Storm, postgresql: Cluster, say: Callable) -> None:
    rounds = 20
    with storm.blowing():
        for number in range(rounds):
            storm.wait_for_writes(50)
            time.sleep(random.uniform(0, 0.5))
            if number % 2:
                postgresql.kill_a_backend()
            else:
                postgresql.stop("immediate")
                time.sleep(random.uniform(0, 2))
            postgresql.ensure_started()
        storm.wait_for_writes(50)
    say(f"{rounds} crashes of PostgreSQL: {storm.figures()}")


def test_that_is_gone_is_said_and_comes_back(
    storm: Storm, postgresql: Cluster, outage_seconds: float, say: Callable
) -> None:
    with storm.blowing():
        storm.wait_for_writes(100)
        postgresql.stop("immediate")
        gone_at = time.monotonic()
        time.sleep(outage_seconds)
        assert storm.seen.said(since=gone_at + 1) == {503}
        postgresql.start()
        started_at = time.monotonic()
        storm.wait_for_writes(100)
        recovered = time.monotonic() - started_at
    assert storm.told_to_wait() > 0
    say(f"gone for {outage_seconds:.0f} s, 100 writes {recovered:.1f} s later: {storm.figures()}")


def test_that_is_locked_is_said_and_comes_back(
    storm: Storm, postgresql: Cluster, outage_seconds: float, say: Callable
) -> None:
    with storm.blowing():
        storm.wait_for_writes(100)
        with psycopg.connect(postgresql.url) as holder:
            holder.execute("LOCK TABLE sessions_app_session IN ACCESS EXCLUSIVE MODE")
            time.sleep(outage_seconds)
        storm.wait_for_writes(100)
    assert storm.told_to_wait() > 0
    say(f"locked for {outage_seconds:.0f} s: {storm.figures()}")


def test_that_is_frozen_is_said_and_comes_back(
    storm: Storm, postgresql: Cluster, outage_seconds: float, say: Callable
) -> None:
    """No statement timeout of its own ends what a frozen server does not even begin."""
    with storm.blowing():
        storm.wait_for_writes(100)
        with postgresql.frozen():
            frozen_at = time.monotonic()
            time.sleep(outage_seconds)
            assert storm.told_to_wait() > 0
            # It stands in line with all other requests: a probe that waits less gets no answer.
            assert 200 not in storm.seen.said(since=frozen_at + 1)
        storm.wait_for_writes(100)
    say(f"frozen for {outage_seconds:.0f} s: {storm.figures()}")


def test_that_is_slow_is_waited_for(
    storm: Storm, postgresql: Cluster, outage_seconds: float, say: Callable
) -> None:
    until = time.monotonic() + outage_seconds
    with storm.blowing():
        storm.wait_for_writes(100)
        while time.monotonic() < until:
            with postgresql.frozen():
                time.sleep(0.9)
            time.sleep(0.1)
        storm.wait_for_writes(100)
    say(f"at a tenth of its speed for {outage_seconds:.0f} s: {storm.figures()}")


def test_whose_disk_is_full_loses_nothing(outage_seconds: float, say: Callable) -> None:
    with small_disk(160) as disk, cluster(disk.folder) as made:
        with LiveServer(database_url=made.url) as server:
            storm = Storm(server, made)
            with storm.blowing():
                storm.wait_for_writes(100)
                disk.fill()
                time.sleep(outage_seconds)
                disk.free()
                made.ensure_started()
                storm.wait_for_writes(100)
            storm.close()
    assert storm.told_to_wait() > 0
    say(f"no room on its disk for {outage_seconds:.0f} s: {storm.figures()}")
