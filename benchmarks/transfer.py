"""A session as a file, and back: how fast, and how much memory the server takes for it.

Nothing bare does the same, so the product is measured by itself; one client, one time each.
"""

import http.client
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO

from .seed import Seeded
from .servers import Server, memory_watched

_PIECE = 1 << 18
HEAD = "| work | messages | MB | seconds | MB/s | memory added, MB |\n|---|---|---|---|---|---|"


@dataclass(frozen=True, slots=True)
class Moved:
    """One file that went one way."""

    name: str
    messages: int
    size: int
    seconds: float
    added: int

    def row(self) -> str:
        megabytes = self.size / 2**20
        return (
            f"| {self.name} | {self.messages:,} | {megabytes:.1f} | {self.seconds:.2f} "
            f"| {megabytes / self.seconds:.1f} | {self.added / 2**20:.1f} |"
        )


def move_there_and_back(product: Server, seeded: Seeded, messages: int) -> Iterator[Moved]:
    """Export the session of so many messages, import it, and export it for people."""
    path = f"/api/v1/sessions/{seeded.product[messages]}/export"
    small = f"/api/v1/sessions/{seeded.product[10]}/export"
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as unused:
        # What the first request of a kind loads stays for all that come after it.
        for _ in range(8):
            _ask(product, seeded, "GET", small, into=unused)
        works: dict[str, Callable[[], int]] = {
            "export": lambda: _ask(product, seeded, "GET", path, into=file),
            "import": lambda: _send(product, seeded, file),
            "export as Markdown": lambda: _ask(
                product, seeded, "GET", f"{path}?format=markdown", into=unused
            ),
        }
        for name, work in works.items():
            yield _measured(product, name, messages, work)


def _measured(product: Server, name: str, messages: int, work: Callable[[], int]) -> Moved:
    with memory_watched(product) as watched:
        begun = time.perf_counter()
        size = work()
        seconds = time.perf_counter() - begun
    return Moved(name, messages, size, seconds, watched.added)


def _send(product: Server, seeded: Seeded, file: IO[bytes]) -> int:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    _ask(product, seeded, "POST", "/api/v1/sessions/import", body=file)
    return size


def _ask(
    product: Server,
    seeded: Seeded,
    method: str,
    path: str,
    *,
    body: IO[bytes] | None = None,
    into: IO[bytes] | None = None,
) -> int:
    """Send one request; returns how many bytes were answered."""
    connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=600)
    headers = {"Authorization": f"Bearer {seeded.token}", "Content-Type": "application/x-ndjson"}
    try:
        connection.request(method, path, body, headers, encode_chunked=True)
        answer = connection.getresponse()
        size = 0
        while piece := answer.read(_PIECE):
            size += len(piece)
            if into is not None:
                into.write(piece)
        if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            raise RuntimeError(f"{method} {path}: {answer.status}")
    finally:
        connection.close()
    return size
