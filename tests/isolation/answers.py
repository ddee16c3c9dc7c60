"""Requests by route, and answers in a form in which two can be compared."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api_client import APIClient
from tests.isolation.routes import Route
from tests.isolation.samples import path_of, sample_of
from tests.isolation.things import Things

# Times, and ids that a request makes for what it might store.
_MADE = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+|_[0-9a-hjkmnp-tv-z]{26}|_x\d+")


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


def way_of(client: APIClient, route: Route, ids: Things) -> list[str]:
    """What the answer asks of the database, but for ids and times."""
    with CaptureQueriesContext(connection) as captured:
        ask(client, route, ids)
    return [_shape(query["sql"], ids) for query in captured]


def _shape(sql: str, ids: Things) -> str:
    for name, value in ids.items():
        sql = sql.replace(value, name) if len(value) > 1 else sql
    return _MADE.sub("…", sql)


def ask(client: APIClient, route: Route, ids: Things, **headers: str) -> Any:
    sample = sample_of(route)
    headers = {"Content_Type": sample.content_type, **headers}
    path = path_of(route, ids)
    return client.send(route.method, path, sample.body, query=sample.query, **headers)
