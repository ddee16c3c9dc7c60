"""Streams that stay open: each one's thread only waits, and one more brings all of them the news.

A reader's own thread writes to its socket, so that a slow one holds up itself alone. It never asks
the database: the thread that does, with the one connection of all streams of this process, looks
every `POLL_SECONDS` which sessions have another version, reads what is new to a stream, a page at a
time, and puts it down for the reader's thread. To a stream whose reader has not taken its last
page it brings nothing more.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol
from weakref import WeakSet

from django.conf import settings
from django.db import Error, connection

from sessions_app.services.changes import current_versions

logger = logging.getLogger("dossier.streams")

POLL_SECONDS = 0.3
# A comment that keeps proxies from giving the connection up, and finds out who has gone.
HEARTBEAT_SECONDS = 15.0
# How often a reader's right to read is asked for again when nothing happens.
ADMISSION_SECONDS = 10.0
_PAUSE_SECONDS = 1.0

BEGINNING = b"retry: 2000\n\n"
HEARTBEAT = b": still here\n\n"
SERVER_STOPS = "server_stopping"


class Page(NamedTuple):
    """What is new to a stream, and the version up to which that is all; None: there is more."""

    content: bytes
    version: int | None


class Ended(Exception):
    """The stream is to end, with an event that says why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Source(Protocol):
    """Where a stream's pages come from."""

    session_id: str

    def next_page(self) -> Page:
        """Raises Ended: there will be none any more."""


class FullError(Exception):
    """As many streams are open as there may be."""


class OpenStream:
    """What a server sends piece by piece; `Streams` hands it over."""

    def __init__(self, source: Source, streams: "Streams") -> None:
        self.source = source
        # Up to which version the reader has all; None: nobody knows.
        self.version: int | None = None
        self.admitted_at = -ADMISSION_SECONDS
        self._streams = streams
        self._has_begun = False
        self._has_ended = False
        self._page = b""
        self._news = threading.Condition()

    def __iter__(self) -> "OpenStream":
        return self

    def __next__(self) -> bytes:
        if not self._has_begun:
            self._has_begun = True
            self._streams.follow(self)
            return BEGINNING
        with self._news:
            self._news.wait_for(lambda: self._page or self._has_ended, HEARTBEAT_SECONDS)
            page, self._page = self._page, b""
        if page:
            if self.version is None:
                self._streams.look()
            return page
        if self._has_ended:
            raise StopIteration
        return HEARTBEAT

    @property
    def takes_more(self) -> bool:
        """Whether the reader's thread waits for a page."""
        return not (self._page or self._has_ended)

    def put(self, page: bytes) -> None:
        with self._news:
            if not self._has_ended:  # else the reader asks for it when it comes again
                self._page += page
            self._news.notify()

    def end(self, reason: str) -> None:
        """Let it end when what was put down is sent."""
        with self._news:
            if not self._has_ended:
                self._has_ended = True
                self._page += b'event: end\ndata: {"reason":"%s"}\n\n' % reason.encode()
            self._news.notify()

    def close(self) -> None:
        """The server's call, when all is sent or the reader has gone."""
        self._has_ended = True
        self._streams.leave(self)


class Streams:
    """The open streams of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Weak: one that nobody ever read from or closed holds no place.
        self._open: WeakSet[OpenStream] = WeakSet()
        self._followed: set[OpenStream] = set()
        self._thread: threading.Thread | None = None
        self._look = threading.Event()
        self._is_stopping = False
        # Called with how many are open, whenever that changes.
        self.tell_number: Callable[[int], object] = int

    def open(self, source: Source) -> OpenStream:
        """Raises FullError."""
        with self._lock:
            if len(self._open) >= settings.MAX_STREAMS:
                raise FullError
            stream = OpenStream(source, self)
            self._open.add(stream)
            self.tell_number(len(self._open))
            return stream

    def follow(self, stream: OpenStream) -> None:
        """Begin to bring it the news."""
        with self._lock:
            if self._is_stopping:
                stream.end(SERVER_STOPS)
                return
            self._followed.add(stream)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="streams", daemon=True)
                self._thread.start()
        self.look()

    def leave(self, stream: OpenStream) -> None:
        with self._lock:
            self._open.discard(stream)
            self._followed.discard(stream)
            self.tell_number(len(self._open))
        self.look()  # with the last one, the thread and its connection go

    def look(self) -> None:
        """Do not wait for the next time: somebody lacks something that is there."""
        self._look.set()

    def end_all(self) -> None:
        """Let all end, and none begin: the server stops."""
        with self._lock:
            self._is_stopping = True
            followed = list(self._followed)
        for stream in followed:
            stream.end(SERVER_STOPS)

    def _work(self) -> None:
        while followed := self._still_followed():
            try:
                self._bring_news(followed)
            except Exception as error:  # noqa: BLE001 (all streams wait for this thread)
                # Of the database's, never the statement: it may hold what people wrote.
                logger.warning("no news can be read: %s", type(error).__name__)
                connection.close()
                time.sleep(_PAUSE_SECONDS)
            self._look.wait(POLL_SECONDS)
            self._look.clear()
        connection.close()

    def _still_followed(self) -> list[OpenStream]:
        with self._lock:
            if not self._followed:
                self._thread = None
            return list(self._followed)

    def _bring_news(self, followed: list[OpenStream]) -> None:
        waiting = [stream for stream in followed if stream.takes_more]
        if not waiting:
            return
        versions = current_versions({stream.source.session_id for stream in waiting})
        now = time.monotonic()
        for stream in waiting:
            is_new = stream.version != versions.get(stream.source.session_id)
            if is_new or now >= stream.admitted_at + ADMISSION_SECONDS:
                stream.admitted_at = now
                _bring(stream)


def _bring(stream: OpenStream) -> None:
    try:
        page = stream.source.next_page()
    except Ended as end:
        stream.end(end.reason)
    except Error:
        raise
    except Exception:
        # One stream's fault, and no other's.
        logger.exception("a stream of %s failed", stream.source.session_id)
        stream.end("internal_error")
    else:
        stream.version = page.version
        if page.content:
            stream.put(page.content)
        elif page.version is None:
            stream.end("internal_error")


open_streams = Streams()
