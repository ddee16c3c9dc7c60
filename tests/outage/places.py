"""What an outage needs of the machine: a PostgreSQL of its own, and a disk that can be filled.

Both are made for one test and gone after it; no other cluster of the machine is touched.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.live_server import free_port

_START_SECONDS = 60
_NAME = "dossier"


class Cluster:
    """PostgreSQL in a folder of its own, on a port of its own, which trusts whoever comes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._data = folder / "data"
        self._port = free_port()
        self.url = f"postgres://postgres@127.0.0.1:{self._port}/{_NAME}"
        _as_postgres("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8")
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write(
                f"port = {self._port}\nlisten_addresses = '127.0.0.1'\n"
                f"unix_socket_directories = '{folder}'\n"
                # What a small disk has room for.
                "min_wal_size = 32MB\nmax_wal_size = 32MB\n"
            )
        self.start()
        with psycopg.connect(self.url.replace(f"/{_NAME}", "/postgres"), autocommit=True) as made:
            made.execute(f"CREATE DATABASE {_NAME}")

    def start(self) -> None:
        log = self.folder / "log"
        _as_postgres("pg_ctl", "-D", self._data, "-l", log, "-w", "-t", _START_SECONDS, "start")

    def stop(self, mode: str = "immediate") -> None:
        """``immediate`` is the crash: every process ends at once, and nothing is tidied up."""
        _as_postgres("pg_ctl", "-D", self._data, "-m", mode, "-w", "stop")

    @property
    def runs(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            os.kill(self._postmaster, 0)
            return True
        return False

    @property
    def _postmaster(self) -> int:
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def ensure_started(self) -> None:
        """As a service manager does; PostgreSQL comes back by itself from most."""
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()[-3000:]
            if not self.runs:
                self.start()
            time.sleep(0.2)

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.url, connect_timeout=5).close()
            return True
        return False

    def kill_a_backend(self) -> None:
        """SIGKILL for the process that serves one connection: PostgreSQL then ends all the others
        and recovers, since that one may have left anything in their shared memory."""
        with psycopg.connect(self.url) as connection:
            row = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'dossier'"
                " AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1"
            ).fetchone()
        if row is not None:
            os.kill(row[0], signal.SIGKILL)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Every process is stopped: connections stay open, and nothing is answered on them."""
        postmaster = self._postmaster
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        frozen = [postmaster, *map(int, children)]
        _signal(frozen, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(frozen, signal.SIGCONT)

    def count_connections(self) -> int:
        """How many the server under test has."""
        with psycopg.connect(self.url, connect_timeout=2) as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dossier'"
            ).fetchone()
        assert row is not None
        return int(row[0])


def _signal(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster that runs until the block ends, in a folder that PostgreSQL may write to."""
    if not _programs():
        pytest.skip("PostgreSQL is not installed")
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    made = Cluster(folder)
    try:
        yield made
    finally:
        if made.runs:
            made.stop()


def _programs() -> Path | None:
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


def _as_postgres(program: str, *arguments: object) -> None:
    """Run one of PostgreSQL's programs; they refuse to be run by root."""
    folder = _programs()
    assert folder is not None
    finished = subprocess.run(
        [str(each) for each in (folder / program, *arguments)],
        user="postgres" if os.geteuid() == 0 else None,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr


class SmallDisk:
    """A file system of so many megabytes, in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Take all the room that is left, to the last byte."""
        with self._ballast.open("ab", buffering=0) as ballast:
            for size in (1 << 20, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while True:
                        ballast.write(b"\0" * size)

    def free(self) -> None:
        self._ballast.unlink()


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[SmallDisk]:
    """Needs the right to mount; where that is missing, the test is skipped."""
    with open_folder() as folder:
        mounted = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        if subprocess.run(mounted, capture_output=True, check=False).returncode != 0:
            pytest.skip("nothing may be mounted here")
        try:
            yield SmallDisk(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter, as the tests' own may not be."""
    folder = Path(tempfile.mkdtemp(prefix="dossier-outage-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
