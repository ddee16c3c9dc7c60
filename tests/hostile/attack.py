"""Sending what should not be sent, and judging what comes back."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db import transaction
from django.test import Client

from tests.api_client import DOOR, address, check_answer, document, strict_json, whole
from tests.isolation.references import Path, places_in_body
from tests.isolation.routes import Route, guarded_routes
from tests.isolation.samples import path_of, sample_of
from tests.isolation.things import Things, all_rows


@dataclass(frozen=True)
class Operation:
    """A route with what the document says of it."""

    route: Route
    described: Mapping[str, Any]

    @property
    def sample(self) -> Any:
        return sample_of(self.route).body

    @property
    def takes_a_body(self) -> bool:
        return "requestBody" in self.described

    @property
    def takes_a_file(self) -> bool:
        return sample_of(self.route).content_type != "application/json"

    @property
    def takes_json(self) -> bool:
        return self.takes_a_body and not self.takes_a_file

    @property
    def places(self) -> list[Path]:
        """Each key of its body once: what a batch repeats of a message is left out."""
        found = places_in_body(self.described)
        return [place for place in dict.fromkeys(found) if place[:2] != ("messages", 0)]

    @property
    def query(self) -> list[dict[str, Any]]:
        return [found for found in self.described.get("parameters", ()) if found["in"] == "query"]

    def __str__(self) -> str:
        return str(self.described["operationId"])


def operations() -> list[Operation]:
    """Each route of the router that is not HEAD, with its part of the document."""
    paths = document()["paths"]
    return [
        Operation(route, paths[address(route.template)][route.method.lower()])
        for route in guarded_routes()
        if route.method != "HEAD"
    ]


class Attacker:
    """An account that owns `things` and sends what it likes."""

    def __init__(self, token: str, things: Things) -> None:
        self.token, self.things = token, things
        self.client = Client(raise_request_exception=False)
        # As they are before the first attack.
        self.rows = all_rows()

    def send(self, operation: Operation, body: Any = None, **more: Any) -> Any:
        """The operation's own path; a body is bytes, or what JSON is made of."""
        path = more.pop("path", None) or self.path(operation)
        sample = sample_of(operation.route)
        usual = {"content_type": sample.content_type, "query": urlencode(sample.query)}
        more = {**usual, **more}
        return self.raw(operation.route.method, path, body, **more)

    def path(self, operation: Operation) -> str:
        """Where the operation's sample goes; names can be given once only, to what has none."""
        unnamed = {"session_id": self.things["unnamed_session_id"]}
        names = unnamed if str(operation) == "update_session" else {}
        return path_of(operation.route, {**self.things, **names})

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: str = "",
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        sent = body if isinstance(body, bytes) else b"" if body is None else _encoded(body)
        named = {"Authorization": f"Bearer {self.token}", **(headers or {})}
        url = f"{address(path)}?{query}" if query else address(path)
        answer = self.client.generic(method, url, sent, content_type=content_type, headers=named)
        return whole(answer)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """What happens inside is taken back, so that each attack meets the same rows."""
        with transaction.atomic():
            yield
            transaction.set_rollback(True)

    def judge(self, method: str, path: str, answer: Any) -> None:
        """Assert what holds for every answer: no failure, a good problem, no row touched by it."""
        assert answer.status_code < 500, answer.content[:300]
        if answer.status_code >= 400:
            if method != "HEAD":
                (judge_error if path.startswith(DOOR) else judge_problem)(answer)
            assert all_rows() == self.rows, "a refused request has changed rows"
        if method != "HEAD" or answer.status_code < 400:
            check_answer(method, address(path).partition("?")[0], answer)


def judge_problem(answer: Any) -> None:
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = strict_json(answer.content)
    assert problem["status"] == answer.status_code
    assert problem["code"]
    assert problem["request_id"] == answer.headers["X-Request-Id"]


def judge_error(answer: Any) -> None:
    assert answer.headers["Content-Type"] == "application/json"
    error = strict_json(answer.content)["error"]
    assert error["message"]
    assert error["type"] in ("invalid_request_error", "server_error")


def _encoded(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()
