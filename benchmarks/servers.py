"""The two servers that are compared, each in processes of its own, and what they cost."""

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKERS, THREADS = 2, 4
_TICKS = os.sysconf("SC_CLK_TCK")

_PRODUCT = [sys.executable, "manage.py", "serve"]
_REFERENCE = [
    sys.executable,
    *("-m", "granian", "--interface", "wsgi", "--workers", str(WORKERS)),
    *("--blocking-threads", str(THREADS), "--blocking-threads-idle-timeout", "600"),
    *("--host", "127.0.0.1", "--no-ws", "--log-level", "warning"),
]


class Server:
    """A server under measurement: its port and its processes."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process, self.port = process, port
        self.peak_memory = 0  # bytes

    def cpu_seconds(self) -> float:
        """User and system time of all its processes so far."""
        return sum(map(_cpu_seconds, _family(self.process.pid)))

    def memory(self) -> int:
        """Of all its processes now."""
        return sum(map(_memory, _family(self.process.pid)))

    def watch_memory(self, until: threading.Event) -> None:
        """Look at the memory of all its processes twice a second, and keep the largest sum."""
        while not until.wait(0.5):
            self.peak_memory = max(self.peak_memory, self.memory())


class Watched:
    """Memory that was taken while somebody looked, in bytes."""

    added = 0


@contextlib.contextmanager
def memory_watched(server: Server) -> Iterator[Watched]:
    """Look twenty times a second how much more memory the server takes than at the beginning."""
    watched, before, ended = Watched(), server.memory(), threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            watched.added = max(watched.added, server.memory() - before)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield watched
    finally:
        ended.set()
        looking.join()


@contextlib.contextmanager
def product(environment: dict[str, str]) -> Iterator[Server]:
    port = _free_port()
    with _running(_PRODUCT, environment | {"PORT": str(port)}, port) as server:
        yield server


@contextlib.contextmanager
def reference(environment: dict[str, str]) -> Iterator[Server]:
    port = _free_port()
    command = [*_REFERENCE, "--port", str(port), "benchmarks.reference.wsgi:application"]
    with _running(command, environment, port) as server:
        yield server


def environment(database_url: str) -> dict[str, str]:
    """What both servers are started with: the product's defaults, on this database."""
    settings = {
        "ENV_FILE": "",
        "SECRET_KEY": secrets.token_urlsafe(48),
        "DATABASE_URL": database_url,
        "WORKERS": str(WORKERS),
        "THREADS": str(THREADS),
    }
    return dict(os.environ) | settings


@contextlib.contextmanager
def _running(command: list[str], variables: dict[str, str], port: int) -> Iterator[Server]:
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            _wait_for(port, process)
            server, ended = Server(process, port), threading.Event()
            watching = threading.Thread(target=server.watch_memory, args=[ended])
            watching.start()
            try:
                yield server
            finally:
                ended.set()
                watching.join()
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"the server on port {port} ended with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _family(pid: int) -> list[int]:
    """The process and all below it."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
            found += map(int, children.split())
    return found


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory(pid: int) -> int:
    """Its proportional set size: a page that forked processes share is counted once in all."""
    try:
        found = re.search(r"\nPss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0
