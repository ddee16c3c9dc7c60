"""Streams that stay open, without a database: who waits for whom, and how they end."""

import threading
from collections.abc import Callable, Iterator
from queue import Empty, Queue
from typing import Any

import pytest

from runs_app.services import streams as module
from runs_app.services.streams import (
    BEGINNING,
    HEARTBEAT,
    Ended,
    FullError,
    OpenStream,
    Page,
    Streams,
)

PATIENCE_SECONDS = 20


class Source:
    """Pages that a test has put there."""

    def __init__(self, session_id: str = "one") -> None:
        self.session_id = session_id
        self.pages: list[bytes | Exception] = []
        self.version = 0
        self.asked = 0

    def add(self, *pages: bytes | Exception) -> None:
        self.pages += pages
        self.version += 1

    def next_page(self) -> Page:
        self.asked += 1
        page = self.pages.pop(0) if self.pages else b""
        if isinstance(page, Exception):
            raise page
        return Page(page, None if self.pages else self.version)


class Reader:
    """A stream's own thread, and what it has sent."""

    def __init__(self, stream: OpenStream) -> None:
        self.sent: Queue[bytes] = Queue()
        self.stream = stream
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        for piece in self.stream:
            self.sent.put(piece)
        self.stream.close()

    def next(self) -> bytes:
        return self.sent.get(timeout=PATIENCE_SECONDS)

    def join(self) -> None:
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> dict[str, Source]:
    found: dict[str, Source] = {}
    monkeypatch.setattr(
        module, "current_versions", lambda ids: {each: found[each].version for each in ids}
    )
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    return found


@pytest.fixture
def streams(sources: dict[str, Source]) -> Iterator[Streams]:
    streams = Streams()
    yield streams
    streams.end_all()
    while worker := streams._thread:
        worker.join(PATIENCE_SECONDS)


@pytest.fixture
def read(streams: Streams, sources: dict[str, Source]) -> Callable[..., Reader]:
    def read(source: Source) -> Reader:
        sources[source.session_id] = source
        reader = Reader(streams.open(source))
        assert reader.next() == BEGINNING
        return reader

    return read


class TestAStream:
    def test_brings_pages_as_they_come(self, read: Any) -> None:
        source = Source()
        reader = read(source)
        for page in (b"1", b"2", b"3"):
            source.add(page)
            assert reader.next() == page

    def test_goes_on_at_once_where_there_is_more(self, read: Any, monkeypatch: Any) -> None:
        monkeypatch.setattr(module, "POLL_SECONDS", 3600)
        source = Source()
        source.add(b"1", b"2", b"3")
        reader = read(source)
        assert [reader.next() for _ in range(3)] == [b"1", b"2", b"3"]

    def test_beats_while_nothing_happens(self, read: Any, monkeypatch: Any) -> None:
        monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.01)
        assert read(Source()).next() == HEARTBEAT

    def test_ends_with_a_reason(self, read: Any) -> None:
        source = Source()
        reader = read(source)
        source.add(b"last", Ended("session_deleted"))
        assert reader.next() == b"last"
        assert reader.next() == b'event: end\ndata: {"reason":"session_deleted"}\n\n'
        reader.join()

    def test_takes_nothing_behind_its_end(self, streams: Streams) -> None:
        stream = streams.open(Source())
        stream.end("x")
        stream.put(b"page")
        assert b"page" not in stream._page

    def test_that_fails_ends_alone(self, read: Any, caplog: Any) -> None:
        broken, sound = Source("broken"), Source("sound")
        readers = read(broken), read(sound)
        broken.add(ValueError("x"))
        assert b"internal_error" in readers[0].next()
        sound.add(b"1")
        assert readers[1].next() == b"1"
        assert "a stream of broken failed" in caplog.text

    def test_asks_for_admission_when_nothing_happens(self, read: Any, monkeypatch: Any) -> None:
        monkeypatch.setattr(module, "ADMISSION_SECONDS", 0)
        source = Source()
        reader = read(source)
        source.pages.append(Ended("not_authenticated"))
        assert b"not_authenticated" in reader.next()


class TestASlowReader:
    def test_gets_no_second_page_before_it_took_the_first(
        self, streams: Streams, sources: dict[str, Source], read: Any
    ) -> None:
        slow = sources["slow"] = Source("slow")
        slow.add(b"1", b"2")
        stream = streams.open(slow)
        next(stream)  # its thread takes no more for now
        other = Source("other")
        reader = read(other)
        for number in range(5):
            other.add(b"%d" % number)
            assert reader.next() == b"%d" % number
        assert slow.asked == 1
        assert [next(stream), next(stream)] == [b"1", b"2"]
        stream.close()


class TestTheBound:
    def test_is_as_many_as_are_open(self, streams: Streams, settings: Any) -> None:
        settings.MAX_STREAMS = 2
        first, second = streams.open(Source()), streams.open(Source())
        with pytest.raises(FullError):
            streams.open(Source())
        first.close()
        streams.open(Source())
        assert second.takes_more

    def test_does_not_count_what_was_thrown_away(self, streams: Streams, settings: Any) -> None:
        settings.MAX_STREAMS = 1
        for _ in range(3):
            streams.open(Source())


class TestAStop:
    def test_ends_all_and_lets_none_begin(self, streams: Streams, read: Any) -> None:
        readers = [read(Source(name)) for name in "abc"]
        streams.end_all()
        for reader in readers:
            assert b"server_stopping" in reader.next()
            reader.join()
        late = streams.open(Source())
        assert next(late) == BEGINNING
        assert b"server_stopping" in next(late)
        late.close()


def test_the_thread_of_all_ends_with_the_last_one(streams: Streams, read: Any) -> None:
    reader = read(Source())
    worker = streams._thread
    assert worker is not None
    reader.stream.end("x")
    reader.join()
    worker.join(PATIENCE_SECONDS)
    assert not worker.is_alive()


def test_a_database_that_is_away_only_delays(read: Any, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0)
    source = Source()
    reader = read(source)
    failing = [True]

    def versions(ids: Any) -> dict[str, int]:
        if failing:
            raise OSError
        return {source.session_id: source.version}

    monkeypatch.setattr(module, "current_versions", versions)
    source.add(b"1")
    with pytest.raises(Empty):
        reader.sent.get(timeout=0.1)
    failing.clear()
    assert reader.next() == b"1"
    assert "no news can be read: OSError" in caplog.text
