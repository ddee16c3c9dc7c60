"""Streams that stay open, in a server of few threads that each answer one request at a time.

Granian's runner (2.8) sends an answer piece by piece in the thread that made it, which is one of
the `THREADS`. What it sends with may be used by any thread, though: an endless answer is sent by a
thread of its own, and the one that made it takes the next request. To serve all requests from a
loop instead (RSGI) costs each of them 0.3 ms, and its streams have no end to what they buffer.
"""

import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from granian.server import mp

from runs_app.services.streams import open_streams

# A reader that takes nothing for so long is gone, or might as well be.
STALLED_SECONDS = 60
_STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})

Runner = Callable[[Any, Any], Any]


def send_endless_answers_apart() -> None:
    """Have Granian's workers do so; before they are made."""
    server: Any = mp
    make_runner = server._wsgi_call_wrap
    server._wsgi_call_wrap = lambda *given: _apart(make_runner(*given))


def _apart(run: Runner) -> Runner:
    return lambda protocol, scope: run(_Protocol(protocol), scope)


class _Protocol:
    """What Granian's runner answers by."""

    __slots__ = ("_protocol", "response_bytes")

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self.response_bytes = protocol.response_bytes

    def response_iter(self, status: int, headers: list[tuple[str, str]], body: Any) -> None:
        if not getattr(body.inner, "streaming", True):
            # In one piece: the server need not come back for the next.
            try:
                self.response_bytes(status, headers, body.inner.content)
            finally:
                body.close()  # PEP 3333: whatever became of it
            return
        send = self._protocol.response_iter
        if not getattr(body.inner, "is_endless", False):
            send(status, headers, body)
            return
        drop_stalled_readers(settings.PORT)
        arguments = (status, headers, body)
        threading.Thread(target=send, args=arguments, name="stream", daemon=True).start()


def end_streams_at_stop() -> None:
    """Let open streams end when this worker is asked to stop, since the server waits for them.

    The server sets its own signal handlers after this; the descriptor that Python writes each
    signal's number to is nobody else's. Called by the main thread.
    """
    told, tells = socket.socketpair()
    tells.setblocking(False)
    signal.set_wakeup_fd(tells.detach())
    threading.Thread(target=_await_stop, args=(told,), name="stop", daemon=True).start()


def _await_stop(told: socket.socket) -> None:
    while not _STOP_SIGNALS & set(told.recv(16)):
        pass
    open_streams.end_all()


@cache
def drop_stalled_readers(port: int) -> None:
    """Let the kernel end connections of the server's port whose other side takes nothing any more,
    those of now and those that come (they inherit it); nothing else would ever end them.

    Only Linux tells which descriptors there are.
    """
    if sys.platform != "linux":
        return
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 (numbers)
        descriptor = int(name)
        if _is_socket(descriptor):
            with socket.socket(fileno=os.dup(descriptor)) as found:
                _limit(found, port)


def _is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:  # closed meanwhile, as the listing itself is
        return False


def _limit(found: socket.socket, port: int) -> None:
    is_tcp = found.family in (socket.AF_INET, socket.AF_INET6) and (
        found.type == socket.SOCK_STREAM
    )
    if is_tcp and found.getsockname()[1] == port:
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_SECONDS * 1000)
