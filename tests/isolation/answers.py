"""Requests by route, and answers in a form in which two can be compared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.api_client import APIClient
from tests.isolation.routes import Route
from tests.isolation.samples import path_of, sample_of
from tests.isolation.things import Things


@dataclass(frozen=True)
class Told:
    """All that an answer tells, but for the names that were asked for and the request's own id."""

    status: int
    headers: Mapping[str, str]
    body: str

    @classmethod
    def by(cls, answer: Any, ids: Things) -> "Told":
        headers = {name: text for name, text in answer.items() if name != "X-Request-Id"}
        headers.pop("Content-Length", None)
        text = answer.content.decode()
        if text and answer.headers["Content-Type"].endswith("problem+json"):
            text = json.dumps({**json.loads(text), "request_id": None})
        for name, value in ids.items():
            text = text.replace(value, name) if len(value) > 1 else text
        return cls(answer.status_code, headers, text)


def ask(client: APIClient, route: Route, ids: Things, **headers: str) -> Any:
    body = sample_of(route).body
    return client.send(route.method, path_of(route, ids), body, **headers)
