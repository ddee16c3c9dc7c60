"""A small Dossier client: the standard library, one method per call, safe to retry.

    dossier = Dossier("http://127.0.0.1:8000", token)
    session = dossier.create_session(agent_id="helper", user_id="maria")
    dossier.append(session["session_id"], [{"role": "user", "content": "Hello"}])

It does what every client of the API should do: each write has an Idempotency-Key that stays the
same over its retries, so that a write whose answer was lost is stored once; a busy or restarting
server is asked again for a while; a refusal becomes a `Problem` with the server's own words.
"""

from __future__ import annotations

import http.client
import json
import time
import uuid
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

JsonObject = dict[str, Any]

# The server asks for another try with these; all other statuses are final answers.
TRY_AGAIN_STATUSES = frozenset({429, 503})
TRY_AGAIN_CODES = frozenset({"idempotency_in_progress"})


class Problem(Exception):
    """An answer of `application/problem+json`: `code` is for programs, `detail` for people."""

    def __init__(self, status: int, body: JsonObject, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {body.get('code')}: {body.get('detail') or body.get('title')}")
        self.status = status
        self.code: str | None = body.get("code")
        self.body = body
        self.retry_after = retry_after

    @property
    def is_temporary(self) -> bool:
        return self.status in TRY_AGAIN_STATUSES or self.code in TRY_AGAIN_CODES


class Dossier:
    """The API at `url`, as the account of `token`. It goes on trying for `patience` seconds."""

    def __init__(self, url: str, token: str, *, patience: float = 30.0) -> None:
        self.base = url.rstrip("/") + "/api/v1"
        self.token = token
        self.patience = patience

    # Sessions

    def create_session(self, **fields: Any) -> JsonObject:
        return self._write("POST", "/sessions", fields)

    def find_sessions(self, **filters: Any) -> list[JsonObject]:
        """The first page of what matches; the newest activity comes first."""
        return list(self._read("/sessions", filters)["data"])

    def session(self, session_id: str) -> JsonObject:
        return self._read(f"/sessions/{session_id}")

    def resume(self, session_id: str, **query: Any) -> JsonObject:
        return self._write("POST", f"/sessions/{session_id}/resume", {}, query)

    def context(self, session_id: str, **query: Any) -> JsonObject:
        """The same packet, read only: `format` says for which model's API."""
        return self._read(f"/sessions/{session_id}/context", query)

    def close(self, session_id: str, reason: str) -> JsonObject:
        return self._write("POST", f"/sessions/{session_id}/close", {"reason": reason})

    def delete(self, session_id: str, reason: str) -> None:
        self._write("DELETE", f"/sessions/{session_id}", None, {"reason": reason})

    # Messages and working memory

    def append(self, session_id: str, messages: list[JsonObject], **envelope: Any) -> JsonObject:
        """`envelope`: `run_id` and `attempt` of the run that writes, `expected_last_sequence`."""
        body = {"messages": messages, **envelope}
        return self._write("POST", f"/sessions/{session_id}/messages", body)

    def messages(self, session_id: str) -> list[JsonObject]:
        """The whole history, page by page."""
        found: list[JsonObject] = []
        while True:
            after = found[-1]["sequence"] if found else 0
            query = {"after": after, "limit": 1000}
            page = self._read(f"/sessions/{session_id}/messages", query)
            found += page["data"]
            if not page["has_more"]:
                return found

    def patch_memory(self, session_id: str, patch: JsonObject, **run: Any) -> JsonObject:
        return self._write("PATCH", f"/sessions/{session_id}/working-memory", patch, run)

    def tool_calls(self, session_id: str) -> list[JsonObject]:
        return self._read_all(f"/sessions/{session_id}/tool-calls")

    # Runs

    def start_run(self, session_id: str, **fields: Any) -> JsonObject:
        return self._write("POST", f"/sessions/{session_id}/runs", fields)

    def runs(self, session_id: str) -> list[JsonObject]:
        return self._read_all(f"/sessions/{session_id}/runs")

    def resume_run(self, run_id: str) -> JsonObject:
        return self._write("POST", f"/runs/{run_id}/resume", {})

    def complete_run(self, run_id: str, **fields: Any) -> JsonObject:
        return self._write("POST", f"/runs/{run_id}/complete", fields)

    def fail_run(self, run_id: str, **fields: Any) -> JsonObject:
        return self._write("POST", f"/runs/{run_id}/fail", fields)

    # The wire

    def _read(self, path: str, query: JsonObject | None = None) -> JsonObject:
        return self._try(self._request("GET", path, query))

    def _read_all(self, path: str) -> list[JsonObject]:
        found: list[JsonObject] = []
        query: JsonObject = {"limit": 200}
        while True:
            page = self._read(path, query)
            found += page["data"]
            if page["next_cursor"] is None:
                return found
            query["cursor"] = page["next_cursor"]

    def _write(
        self, method: str, path: str, body: JsonObject | None, query: JsonObject | None = None
    ) -> JsonObject:
        request = self._request(method, path, query)
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body, ensure_ascii=False).encode()
        # One key per write, not one per attempt: this is what makes a retry harmless.
        request.add_header("Idempotency-Key", uuid.uuid4().hex)
        return self._try(request)

    def _request(self, method: str, path: str, query: JsonObject | None) -> Request:
        url = self.base + quote(path) + (f"?{urlencode(query)}" if query else "")
        return Request(url, method=method, headers={"Authorization": f"Bearer {self.token}"})

    def _try(self, request: Request) -> JsonObject:
        give_up_at = time.monotonic() + self.patience
        pause = 0.1
        while True:
            try:
                return _send(request)
            except Problem as problem:
                if not problem.is_temporary or time.monotonic() >= give_up_at:
                    raise
                pause = problem.retry_after or pause
            except (URLError, ConnectionError, TimeoutError, http.client.HTTPException):
                # No answer says nothing about whether it was stored; the same key asks again.
                if time.monotonic() >= give_up_at:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, 2.0)


def _send(request: Request) -> JsonObject:
    try:
        with urlopen(request, timeout=60) as response:
            text = response.read()
    except HTTPError as error:
        raise _problem(error) from error
    answer: JsonObject = json.loads(text) if text else {}
    return answer


def _problem(error: HTTPError) -> Problem:
    text = error.read()
    if error.headers.get_content_type() == "application/problem+json":
        body = json.loads(text)
    else:
        # A proxy in between answers in its own words.
        body = {"title": error.reason, "detail": text.decode(errors="replace")[:500]}
    seconds = error.headers.get("Retry-After", "")
    return Problem(error.code, body, float(seconds) if seconds.isdigit() else None)
