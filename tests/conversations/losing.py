"""A proxy that loses answers: the server has done the work, and the client does not learn it."""

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


@dataclass
class Proxy:
    """``lose`` counts the answers that are still to be lost; ``requests`` those that came."""

    port: int
    lose: int = 0
    requests: int = 0


@contextlib.contextmanager
def losing_proxy(server_port: int) -> Iterator[Proxy]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy(listener.getsockname()[1])
        thread = threading.Thread(target=_serve, args=(listener, proxy, server_port), daemon=True)
        thread.start()
        yield proxy
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(30)


def _serve(listener: socket.socket, proxy: Proxy, server_port: int) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:  # it was shut down
            return
        with client, socket.create_connection(("127.0.0.1", server_port)) as server:
            while request := _whole(client):
                proxy.requests += 1
                server.sendall(request)
                answer = _whole(server)
                if proxy.lose:
                    proxy.lose -= 1
                    break
                client.sendall(answer)


def _whole(connection: socket.socket) -> bytes:
    """One message with its body; nothing: the other side has gone."""
    received = b""
    while chunk := connection.recv(65_536):
        received += chunk
        head, separator, body = received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if separator and len(body) >= (int(length[1]) if length else 0):
            return received
    return b""
