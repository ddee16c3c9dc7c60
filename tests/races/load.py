"""Clients that write at the same moment, and the writes that they remember.

The standard library only: one kept connection for each client, one thread for each call.
"""

import http.client
import json
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.live_server import LiveServer

ANSWER_SECONDS = 60
PATIENCE_SECONDS = 60
# The server closes a connection that stays idle; that must not look like a lost answer.
IDLE_SECONDS = 5
NO_ANSWER = (OSError, http.client.HTTPException)

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """What the server said to one request."""

    status: int
    headers: http.client.HTTPMessage
    body: Any

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def code(self) -> str | None:
        return self.body.get("code") if isinstance(self.body, dict) else None

    @property
    def replayed(self) -> bool:
        return self.headers.get("Idempotency-Replayed") == "true"


@dataclass
class Write:
    """A request that may be sent again: its key makes the repetition harmless."""

    method: str
    path: str
    body: Any = None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    answer: Answer | None = None  # None: nobody knows whether it was done


class Client:
    """One kept connection with an account's token, for one thread at a time."""

    def __init__(self, server: LiveServer, *, token: str | None = None) -> None:
        self._connection = http.client.HTTPConnection(
            "127.0.0.1", server.port, timeout=ANSWER_SECONDS
        )
        self._used_at = 0.0
        self._headers = {"Authorization": f"Bearer {token or server.token}"}

    def request(
        self, method: str, path: str, body: Any = None, *, key: str = "", if_match: str = ""
    ) -> Answer:
        """Send once. Raises one of NO_ANSWER when the connection breaks."""
        headers = self._headers | ({"Idempotency-Key": key} if key else {})
        headers |= {"If-Match": if_match} if if_match else {}
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if time.monotonic() - self._used_at > IDLE_SECONDS:
            self._connection.close()  # the next request makes another
        try:
            self._connection.request(method, f"/api/v1{path}", content, headers)
            response = self._connection.getresponse()
            text = response.read()
        except NO_ANSWER:
            self._connection.close()
            raise
        finally:
            self._used_at = time.monotonic()
        return Answer(response.status, response.headers, json.loads(text) if text else None)

    def get(self, path: str) -> Any:
        answer = self.request("GET", path)
        assert answer.ok, answer
        return answer.body

    def post(self, path: str, body: Any = None) -> Any:
        """A write that must succeed."""
        answer = self.request("POST", path, {} if body is None else body)
        assert answer.ok, answer
        return answer.body

    def send(self, write: Write) -> Answer:
        """Send a write once, and note the answer."""
        write.answer = self.request(write.method, write.path, write.body, key=write.key)
        return write.answer

    def insist(self, write: Write) -> Answer:
        """Send a write until it is answered by something else than "later"."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self.send(write)
            except NO_ANSWER:
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(0.05)
                continue
            if answer.status != 503 or time.monotonic() > give_up_at:
                return answer
            time.sleep(float(answer.headers["Retry-After"]))

    def new_session(self, **fields: Any) -> str:
        return str(self.post("/sessions", fields)["session_id"])

    def session(self, session_id: str) -> Any:
        return self.get(f"/sessions/{session_id}")

    def messages(self, session_id: str) -> list[Any]:
        """The whole history, page by page."""
        found: list[Any] = []
        while True:
            after = found[-1]["sequence"] if found else 0
            page = self.get(f"/sessions/{session_id}/messages?limit=1000&after={after}")
            found += page["data"]
            if not page["has_more"]:
                return found

    def all(self, path: str) -> list[Any]:
        """A whole list, page by page."""
        found: list[Any] = []
        cursor = ""
        while True:
            page = self.get(f"{path}?limit=200{cursor}")
            found += page["data"]
            if page["next_cursor"] is None:
                return found
            cursor = f"&cursor={page['next_cursor']}"

    def events(self, session_id: str) -> list[Any]:
        return self.all(f"/sessions/{session_id}/events")

    def close(self) -> None:
        self._connection.close()


def together(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make all calls at the same moment, each in its own thread; what they returned, in order."""
    barrier = threading.Barrier(len(calls))

    def called(call: Callable[[], T]) -> T:
        barrier.wait(timeout=30)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(called, calls))
