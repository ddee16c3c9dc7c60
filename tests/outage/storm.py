"""A server under load while its database fails, and what was seen of it meanwhile."""

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.live_server import LiveServer
from tests.outage.places import Cluster
from tests.races.invariants import broken, selecting
from tests.races.load import Client
from tests.races.writers import PATIENCE_SECONDS, Writer, check_stored

WRITERS, SESSIONS = 12, 4
# WORKERS x (THREADS + 1) + 1 with the defaults: docs/OPERATIONS.md, "The arithmetic".
MOST_CONNECTIONS = 2 * (4 + 1) + 1
_LOOK_EVERY_SECONDS = 0.5


@dataclass
class Seen:
    """What /readyz said, and how many connections there were, all the time."""

    readiness: list[tuple[float, int]] = field(default_factory=list)
    connections: list[int] = field(default_factory=list)

    def said(self, since: float, until: float = float("inf")) -> set[int]:
        """What /readyz answered then, of questions asked before as well."""
        return {status for at, status in self.readiness if since <= at <= until}


class Storm:
    """Writers that do not give up, on a server as it is installed."""

    def __init__(self, server: LiveServer, cluster: Cluster | None = None) -> None:
        self.server = server
        self.cluster = cluster
        self.seen = Seen()
        self._own = Client(server)
        sessions = [self._own.new_session() for _ in range(SESSIONS)]
        self.writers = [
            Writer(number, sessions[number % SESSIONS], Client(server)) for number in range(WRITERS)
        ]
        self._stop = threading.Event()
        self._failures: list[BaseException] = []

    @contextmanager
    def blowing(self) -> Iterator[Self]:
        """Write until the block ends; then each has its last write acknowledged."""
        before = self.descriptors()
        threads = [threading.Thread(target=self._guarded, args=(self._watch,))]
        threads += [
            threading.Thread(target=self._guarded, args=(writer.go_on, self._stop))
            for writer in self.writers
        ]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(PATIENCE_SECONDS)
        assert not self._failures, self._failures[0]
        assert not any(thread.is_alive() for thread in threads)
        self._check(before)

    def acknowledged(self) -> int:
        return sum(write.answer is not None for writer in self.writers for write in writer.sent)

    def wait_for_writes(self, count: int) -> None:
        """Until so many more were acknowledged: the server works (again)."""
        goal, deadline = self.acknowledged() + count, time.monotonic() + PATIENCE_SECONDS
        while self.acknowledged() < goal:
            assert time.monotonic() < deadline, "no write is acknowledged"
            assert not self._failures, self._failures[0]
            time.sleep(0.05)

    def descriptors(self) -> int:
        """How many files and sockets the workers have open."""
        return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in self.server.workers)

    def told_to_wait(self) -> int:
        return sum(writer.told_to_wait for writer in self.writers)

    def figures(self) -> str:
        unanswered = sum(writer.unanswered for writer in self.writers)
        landed = sum(writer.landed_unseen for writer in self.writers)
        most = max(self.seen.connections, default=0)
        connections = f", at most {most} connections" if most else ""
        return (
            f"{self.acknowledged()} writes acknowledged and stored once, {self.told_to_wait()} "
            f"answers 503, {unanswered} without an answer ({landed} of these writes had "
            f"landed){connections}"
        )

    def close(self) -> None:
        for client in [self._own, *(writer.client for writer in self.writers)]:
            client.close()

    def _check(self, descriptors_before: int) -> None:
        check_stored(self._own, self.writers)
        assert broken(selecting(self.server.database_url)) == {}
        assert self.readyz() == 200
        assert "Traceback" not in self.server.output, self.server.output[-5000:]
        assert all(count <= MOST_CONNECTIONS for count in self.seen.connections)
        # Each thread may have a connection to the database that it had not before (three files at
        # most), and each writer one to a worker; hundreds of requests have failed meanwhile.
        assert self.descriptors() <= descriptors_before + 3 * MOST_CONNECTIONS + 2 * WRITERS

    def _guarded(self, work: Callable[..., None], *arguments: object) -> None:
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001 (the test's own thread raises it)
            self._failures.append(error)

    def _watch(self) -> None:
        while not self._stop.is_set():
            status = self.readyz()
            self.seen.readiness.append((time.monotonic(), status))
            if self.cluster is not None:
                with suppress(Exception):
                    self.seen.connections.append(self.cluster.count_connections())
            time.sleep(_LOOK_EVERY_SECONDS)

    def readyz(self) -> int:
        """Its status; 0: a worker was killed under its hands."""
        try:
            with urllib.request.urlopen(f"{self.server.url}/readyz", timeout=120) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refusal:
            return refusal.code
        except OSError:
            return 0
