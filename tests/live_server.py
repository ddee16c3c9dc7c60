"""The real server as processes of its own, to be killed and started again.

``with fresh_database(tmp_path) as url, LiveServer(database_url=url) as server:`` gives
``server.url`` and ``server.token``; ``server.kill()`` and ``server.start()`` as often as you like.
"""

import atexit
import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tests.processes import children_of

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 60
STOP_SECONDS = 30

_until_exit = contextlib.ExitStack()
atexit.register(_until_exit.close)


class LiveServer:
    """`manage.py serve` on a port of its own; ``settings`` are environment variables."""

    def __init__(self, *, database_url: str, **settings: str | int) -> None:
        self.port = int(settings.pop("PORT", 0)) or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.database_url = database_url
        self._output = Path(tempfile.mkstemp(prefix="dossier-", suffix=".log")[1])
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = _environment(DATABASE_URL=database_url, PORT=self.port, **settings)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._output.unlink(missing_ok=True)

    def start(self, *, wait: bool = True) -> None:
        """Start on the same port and database; return when /readyz is 200."""
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "manage.py", "serve"],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a process group that can be killed at one blow
            )
        if not wait:
            return
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()  # nobody else will: the block that would stop it is not entered
            raise

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL for every process at once, like a power cut for the program."""
        process = self.process
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._wait_until_gone()

    def stop(self) -> int | None:
        """SIGTERM, as a service manager does; answer the exit code."""
        if self._process is None:
            return None
        self._process.terminate()
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def restart(self) -> None:
        self.stop()
        self.start()

    def manage(self, *arguments: str) -> str:
        """Run a command beside the server, on its database; answer what it printed."""
        finished = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout.strip()

    @contextlib.contextmanager
    def beside(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command that goes on beside the server until the block ends."""
        with self._output.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "manage.py", *arguments],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the server was not started"
        return self._process

    @property
    def workers(self) -> list[int]:
        """The process ids of those that answer requests; one that was killed is soon replaced."""
        return children_of(children_of(self.process.pid)[0])

    @property
    def output(self) -> str:
        """What all its processes printed, over all starts."""
        return self._output.read_text()

    @property
    def faults(self) -> list[str]:
        """What it has written of exceptions, over all starts."""
        return faults_in(self.output)

    @property
    def token(self) -> str:
        """The agent's token, which the first run on this database printed."""
        found = re.search(r"Agent token +(\S+)", self.output)
        assert found, self.output
        return found[1]

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"the server ended:\n{self.output}"
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(f"{self.url}/readyz", timeout=5).close()
                return
            time.sleep(0.05)
        raise TimeoutError(f"not ready after {START_SECONDS} s:\n{self.output}")

    def _wait_until_gone(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) != 0:
                    return
            time.sleep(0.01)
        raise TimeoutError(f"something still answers on port {self.port}")


@contextlib.contextmanager
def fresh_database(folder: Path, *, migrated: bool = True) -> Iterator[str]:
    """A database of the kind that the suite runs on, as a DATABASE_URL: with all tables and no
    account, or with nothing at all."""
    url = os.environ.get("DATABASE_URL", "")
    make = _postgresql if url.startswith("postgres") else _sqlite
    with make(folder, _migrated(url) if migrated else None) as made:
        yield made


@cache
def _migrated(url: str) -> str:
    """What is copied, since to migrate takes longer than all else of a start; until the exit."""
    folder = Path(_until_exit.enter_context(tempfile.TemporaryDirectory()))
    make = _postgresql if url.startswith("postgres") else _sqlite
    made = _until_exit.enter_context(make(folder, None))
    LiveServer(database_url=made).manage("migrate")
    return made


@contextlib.contextmanager
def _sqlite(folder: Path, template: str | None) -> Iterator[str]:
    url = f"sqlite:///{folder / 'live.sqlite3'}"
    if template is not None:
        shutil.copy(template.removeprefix("sqlite:///"), url.removeprefix("sqlite:///"))
    yield url


@contextlib.contextmanager
def _postgresql(_folder: Path, template: str | None) -> Iterator[str]:
    url = os.environ["DATABASE_URL"]
    name = f"dossier_live_{secrets.token_hex(6)}"
    source = urlsplit(template).path[1:] if template else "template1"
    with psycopg.connect(_with_database(url, "postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{source}"')
        try:
            yield _with_database(url, name)
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _with_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def faults_in(output: str) -> list[str]:
    """What is written of exceptions, in the log or beside it."""
    lines = output.splitlines()
    return [line for line in lines if '"exception":' in line or line.startswith("Traceback")]


def _environment(**settings: str | int) -> dict[str, str]:
    own = {
        "ENV_FILE": "",
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "SECRET_KEY": "a-key-for-live-servers-that-guards-nothing-0123456789",
        "HOST": "127.0.0.1",
    }
    return os.environ | own | {name: str(value) for name, value in settings.items()}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
