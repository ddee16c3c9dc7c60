"""Streams of a real server: several workers, writers at the same moment, readers that come and go,
and more streams than the server has threads."""

import http.client
import itertools
import json
import random
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.live_server import LiveServer, fresh_database
from tests.races.load import ANSWER_SECONDS, Client, together

THREADS = 2 * 4  # of the server as it is installed
EACH = 25


class Stream:
    """One reader; it goes on after what it has read whenever it is asked to ``connect``."""

    def __init__(self, server: LiveServer, session_id: str, after: str = "") -> None:
        self._server, self._session_id = server, session_id
        self.last_id = after
        self.events: list[tuple[str, str, Any]] = []
        self._connection: http.client.HTTPConnection | None = None
        self.connect()

    def connect(self) -> None:
        """As often as it takes: the place of a reader that has gone is free when the server has
        noticed, which it says to whoever comes before."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while (refusal := self._refusal()) is not None:
            assert b"rate_limited" in refusal
            assert time.monotonic() < deadline, refusal
            time.sleep(0.2)

    def _refusal(self) -> bytes | None:
        self.close()
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._server.port, timeout=ANSWER_SECONDS
        )
        headers = {"Authorization": f"Bearer {self._server.token}", "Last-Event-ID": self.last_id}
        connection.request("GET", f"/api/v1/sessions/{self._session_id}/stream", headers=headers)
        self._connection, self.answer = connection, connection.getresponse()
        if self.answer.status == 200:
            return None
        refusal = self.answer.read()
        self.close()
        return refusal

    def next(self) -> tuple[str, str, Any] | None:
        """The next event, as it comes; None when the stream has ended."""
        fields: dict[str, str] = {}
        while line := self.answer.readline():
            if line == b"\n" and "data" in fields:
                event = (fields.get("id", ""), fields["event"], json.loads(fields["data"]))
                self.last_id = event[0] or self.last_id
                self.events.append(event)
                return event
            name, _, text = line.decode().rstrip("\n").partition(": ")
            fields |= {name: text} if name else {}
        return None

    def until_version(self, version: int) -> "Stream":
        while self.version < version:
            assert self.next() is not None, "it ended too early"
        return self

    @property
    def version(self) -> int:
        """Of the last event."""
        return int(self.last_id.partition(".")[0] or 0)

    @property
    def ids(self) -> list[str]:
        return [each for each, *_ in self.events if each]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self.answer.close()


def append(client: Client, session_id: str, text: str) -> None:
    client.post(f"/sessions/{session_id}/messages", {"role": "user", "content": text})


def in_order(ids: list[str]) -> bool:
    """Every version from the first on, in each every index from 0 on: no gap, no repeat."""
    places = [tuple(map(int, each.split("."))) for each in ids]
    grouped = [
        (version, [index for _, index in group])
        for version, group in itertools.groupby(places, key=lambda place: place[0])
    ]
    return all(
        (version, indexes) == (number, list(range(len(indexes))))
        for number, (version, indexes) in enumerate(grouped, 1)
    )


def append_all(client: Client, session_id: str) -> None:
    for count in range(EACH):
        append(client, session_id, f"{count}")


def call_all(client: Client, session_id: str) -> None:
    for count in range(EACH):
        call = client.post(f"/sessions/{session_id}/tool-calls", {"name": f"tool {count}"})
        client.post(f"/tool-calls/{call['id']}/finish", {"status": "SUCCEEDED", "result": count})


def edit_all(client: Client, session_id: str) -> None:
    path = f"/sessions/{session_id}"
    for count in range(EACH):
        assert client.request("PATCH", path, {"title": f"{count}"}).ok
        assert client.request("PATCH", f"{path}/working-memory", {"goal": f"{count}"}).ok


def come_and_go(server: LiveServer, session_id: str, number: int, last: int) -> Stream:
    """Leave in the middle of things, again and again; either worker takes it up. 0: never."""
    chance = random.Random(number)
    stream = Stream(server, session_id)
    while stream.version < last:
        assert stream.next() is not None
        if chance.random() < 0.1 * number:
            stream.connect()
    stream.close()
    return stream


class TestReaders:
    def test_that_come_and_go_miss_nothing_and_get_nothing_twice(self, server, client, clients):
        session_id = client.new_session()
        kinds = [append_all, append_all, append_all, call_all, edit_all]
        writing: list[Callable[[], Any]] = [
            partial(write, writer, session_id)
            for write, writer in zip(kinds, clients, strict=False)
        ]
        # Versions: each write is one.
        last = 1 + EACH * (3 + 2 + 2)
        reading: list[Callable[[], Any]]
        reading = [partial(come_and_go, server, session_id, number, last) for number in range(4)]
        steady, *others = together([*writing, *reading])[len(writing) :]
        assert in_order(steady.ids), steady.ids
        for stream in others:
            assert stream.ids == steady.ids
        told = [data["message"] for _, event, data in steady.events if event == "message"]
        assert told == client.messages(session_id)

    def test_may_be_more_than_the_server_has_threads(self, server, client, select):
        sessions = [client.new_session() for _ in range(3)]
        streams = [Stream(server, sessions[number % 3]) for number in range(3 * THREADS)]
        for count in range(20):
            append(client, sessions[count % 3], f"{count}")
        for session_id, stream in zip(itertools.cycle(sessions), streams, strict=False):
            version = client.session(session_id)["version"]
            assert in_order(stream.until_version(version).ids)
        if server.database_url.startswith("postgres"):
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dossier' AND "
            ((count,),) = select(query + "datname = current_database()")
            assert count <= THREADS + 2 + 1
        for stream in streams:
            stream.close()

    def test_are_told_of_the_end(self, server, client):
        session_id = client.new_session()
        stream = Stream(server, session_id).until_version(1)
        client.request("DELETE", f"/sessions/{session_id}")
        assert stream.next() == ("", "end", {"reason": "session_deleted"})
        assert stream.next() is None
        stream.close()

    def test_that_take_nothing_hold_up_nobody(self, server, client):
        session_id = client.new_session()
        for _ in range(12):
            append(client, session_id, "x" * 2**20)
        stuck = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(THREADS + 2)]
        for each in stuck:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.sendall(
                f"GET /api/v1/sessions/{session_id}/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: Bearer {server.token}\r\n\r\n".encode()
            )
        stream = Stream(server, session_id, after="13")
        append(client, session_id, "still heard")
        stream.until_version(14)
        (event,) = stream.events
        assert event[2]["message"]["content"] == "still heard"
        for each in stuck:
            each.close()
        stream.close()


@pytest.fixture
def small(tmp_path) -> Iterator[LiveServer]:
    """One worker that holds two streams."""
    with fresh_database(tmp_path) as url:
        with LiveServer(database_url=url, WORKERS=1, THREADS=1, MAX_STREAMS=2) as server:
            yield server


def test_a_full_server_says_when_to_come_again_and_a_stop_ends_all(small):
    client = Client(small)
    session_id = client.new_session()
    streams = [Stream(small, session_id).until_version(1) for _ in range(2)]
    refused = client.request("GET", f"/sessions/{session_id}/stream")
    assert (refused.status, refused.code) == (429, "rate_limited")
    assert int(refused.headers["Retry-After"]) >= 1
    streams.pop().close()
    append(client, session_id, "to find out that it has gone")
    streams.append(Stream(small, session_id, after="1"))
    client.close()
    assert small.stop() == 0
    for stream in streams:
        while (event := stream.next()) and event[1] != "end":
            pass
        assert event == ("", "end", {"reason": "server_stopping"})
        assert stream.next() is None
        stream.close()
    assert "Killing" not in small.output
    assert small.faults == []
