"""The server of the demo: `manage.py serve` and what it starts, in a process group of its own."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 60


class Server:
    def __init__(self, database_url: str, log: Path) -> None:
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.environment = {
            **os.environ,
            "DATABASE_URL": database_url,
            "SECRET_KEY": secrets.token_urlsafe(50),
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "WORKERS": "2",
            "ALLOWED_HOSTS": "127.0.0.1",
            # The demo speaks plain HTTP to its own machine, whatever the caller's settings say.
            "HTTPS": "false",
        }

    def manage(self, *arguments: str) -> str:
        """Run one management command to its end and give what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"manage.py {arguments[0]} failed:\n{done.stderr}")
        return done.stdout.strip()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "serve"],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # So that the server's workers are reached together, and nothing else is.
                start_new_session=True,
            )
        self._wait_until_ready(self.process)

    def kill(self) -> None:
        """SIGKILL to every process of the server: nothing is flushed, no goodbye is said."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/readyz", timeout=5):
                return True
        except (URLError, ConnectionError, TimeoutError):
            return False

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        give_up_at = time.monotonic() + START_SECONDS
        while not self.answers():
            if process.poll() is not None or time.monotonic() > give_up_at:
                raise RuntimeError(f"the server did not start:\n{self.log.read_text()}")
            time.sleep(0.1)

    def _end(self, number: int) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        _signal_group(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)
        # Whoever of the group is still there by now did not hear the polite signal.
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
