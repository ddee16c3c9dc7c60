"""Closed-loop clients on keep-alive connections: each sends its next request when it is answered.

One thread and a selector: the client must cost little beside the servers that it measures, and
16 Python threads would cost more than they.
"""

import contextlib
import re
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

# Called with the number of the request; gives the bytes to send.
Requests = Callable[[int], bytes]

# Longer than any lock timeout of the server.
_PATIENCE = 60

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


@dataclass(slots=True)
class Measured:
    seconds: float
    latencies: list[float]
    errors: int

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, fraction: float) -> float:
        """In milliseconds."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]


@dataclass(slots=True)
class _Client:
    connection: socket.socket
    sent_at: float = 0.0
    received: bytearray = field(default_factory=bytearray)


def request(
    method: str, path: str, *, body: bytes = b"", headers: dict[str, str] | None = None
) -> bytes:
    """One HTTP/1.1 request as it goes over the wire."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    if body:
        lines.append("Content-Type: application/json")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def drive(
    port: int, requests: Requests, *, clients: int, seconds: float, start: int = 0
) -> Measured:
    """Load 127.0.0.1:port for so long; answers that are no 2xx count as errors."""
    with contextlib.ExitStack() as connections, selectors.DefaultSelector() as selector:
        number, latencies, errors = start, list[float](), 0
        begun = time.perf_counter()
        deadline = begun + seconds
        for _ in range(clients):
            connection = connections.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = _Client(connection)
            selector.register(connection, selectors.EVENT_READ, client)
            number = _send(client, requests, number)
        waiting = clients
        while waiting:
            ready = selector.select(timeout=_PATIENCE)
            if not ready:
                raise TimeoutError(f"no answer for {_PATIENCE} seconds")
            for client in (key.data for key, _ in ready):
                if not _receive(client):
                    continue
                now = time.perf_counter()
                latencies.append(now - client.sent_at)
                errors += client.received[9:10] != b"2"
                client.received.clear()
                if now < deadline:
                    number = _send(client, requests, number)
                else:
                    selector.unregister(client.connection)
                    waiting -= 1
        return Measured(time.perf_counter() - begun, latencies, errors)


def receive_all(connection: socket.socket) -> bytes:
    """One whole answer."""
    client = _Client(connection)
    while not _receive(client):
        pass
    return bytes(client.received)


def _send(client: _Client, requests: Requests, number: int) -> int:
    data = requests(number)
    client.sent_at = time.perf_counter()
    client.connection.sendall(data)
    return number + 1


def _receive(client: _Client) -> bool:
    """Read what is there; tell whether the answer is whole."""
    chunk = client.connection.recv(262_144)
    if not chunk:
        raise ConnectionError("the server closed a connection")
    client.received += chunk
    end = client.received.find(b"\r\n\r\n")
    if end < 0:
        return False
    length = _LENGTH.search(client.received, 0, end + 2)
    if length is None:
        raise ValueError("an answer without Content-Length")
    return len(client.received) >= end + 4 + int(length[1])
