"""A client of the REST API that holds every answer against the OpenAPI document.

What the document does not say may not be answered: a status, a header, a key. So the schema that
clients generate their code from cannot drift away from the server, whatever a test is about.
"""

import json
import re
from copy import deepcopy
from functools import cache
from typing import Any
from urllib.parse import urlencode

from django.core.signals import request_finished
from django.db import close_old_connections
from django.http import HttpResponse
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from jsonschema_rs import Draft202012Validator, Registry

BASE = "/api/v1"
# The door for OpenAI's clients; a path that begins so is sent as it is.
DOOR = "/v1/"
_DOCUMENT = "urn:openapi"
_PROMISED_HEADERS = {"ETag", "Location"}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def _is_our_time(text: str) -> bool:
    return _TIME.fullmatch(text) is not None


def address(path: str) -> str:
    """Where a path of the API, or of the door, is found."""
    return path if path.startswith(DOOR) else BASE + path


class APIClient:
    """Requests of one account, by paths as `address` takes them; bodies are JSON unless they are
    bytes."""

    def __init__(self, token: str | None) -> None:
        self.client = Client(raise_request_exception=True)
        self.token = token

    def get(self, path: str, query: Any = None, **headers: str) -> Any:
        return self.send("GET", path, query=query, **headers)

    def post(self, path: str, body: Any = None, query: Any = None, **headers: str) -> Any:
        return self.send("POST", path, body, query=query, **headers)

    def put(self, path: str, body: Any = None, query: Any = None, **headers: str) -> Any:
        return self.send("PUT", path, body, query=query, **headers)

    def patch(self, path: str, body: Any = None, query: Any = None, **headers: str) -> Any:
        return self.send("PATCH", path, body, query=query, **headers)

    def delete(self, path: str, body: Any = None, query: Any = None, **headers: str) -> Any:
        return self.send("DELETE", path, body, query=query, **headers)

    def send(
        self, method: str, path: str, body: Any = None, *, query: Any = None, **headers: str
    ) -> Any:
        """The answer, after it was held against the document.

        ``query`` is a dict, pairs, or a string that is sent as it is; header names are written
        with ``_``. The answer's ``json()`` is strict.
        """
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        if self.token is not None:
            named.setdefault("Authorization", f"Bearer {self.token}")
        raw = body if isinstance(body, bytes) else b"" if body is None else _dumps(body)
        asked = query if isinstance(query, str) else urlencode(query or {})
        content_type = named.pop("Content-Type", "application/json")
        response: Any = self.client.generic(
            method,
            f"{address(path)}?{asked}" if asked else address(path),
            raw,
            content_type=content_type,
            headers=named,
        )
        response = whole(response)
        response.json = lambda: strict_json(response.content)
        check_answer(method, address(path), response)
        if body and content_type == "application/json" and response.status_code < 300:
            check_request(method, address(path), strict_json(raw))
        return response


def whole(response: Any) -> Any:
    """The answer with its content, also where that is sent in pieces; of one without an end, its
    first page, read here."""
    if getattr(response, "is_endless", False):
        source = getattr(response.pieces, "source", None)  # none for HEAD
        content = source.next_page().content if source else b""
        # As the test client does: else the connection goes, and the test's transaction with it.
        request_finished.disconnect(close_old_connections)
        response.close()
        request_finished.connect(close_old_connections)
        return HttpResponse(content, status=response.status_code, headers=response.headers)
    if not response.streaming:
        return response
    content = b"".join(response.streaming_content)  # at its end Django's client closes it
    assert not content or response.headers["Content-Length"] == str(len(content))
    return HttpResponse(content, status=response.status_code, headers=response.headers)


def strict_json(content: bytes) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(content.decode(), parse_constant=refuse)


def check_answer(method: str, path: str, response: HttpResponse) -> None:
    """Assert that the document knows this answer."""
    assert response.headers["X-Request-Id"]
    operation = _operation(method, path)
    if operation is None:
        assert response.status_code in (404, 405), f"{method} {path} is not in the document"
        refusal = "OpenAIError" if path.startswith(DOOR) else "Problem"
        _check_body({"$ref": f"#/components/schemas/{refusal}"}, response)
        return
    answers = operation["responses"]
    found = answers.get(str(response.status_code))
    if found is None:
        assert response.status_code >= 400, f"{method} {path} answers {response.status_code}"
        found = answers["default"]
    for name in _PROMISED_HEADERS & set(found.get("headers", {})):
        assert name in response.headers, f"{method} {path} lacks {name}"
    content = found.get("content")
    if content is None or method == "HEAD":
        assert response.content == b""
        return
    media_type = response.headers["Content-Type"]
    if not media_type.endswith("json") or media_type == "application/x-ndjson":
        assert media_type.partition(";")[0] in content
        return
    ((expected, described),) = content.items()
    assert media_type == expected
    _check_body(described["schema"], response)


def check_request(method: str, path: str, body: Any) -> None:
    """Assert that the document allows a body that the server took."""
    operation = _operation(method, path)
    assert operation is not None
    described = operation["requestBody"]["content"]["application/json"]["schema"]
    _validator(json.dumps(described), "as published").validate(body)


def _check_body(schema: Any, response: HttpResponse) -> None:
    _validator(json.dumps(schema), "closed").validate(strict_json(response.content))


@cache
def document() -> dict[str, Any]:
    """As a client gets it."""
    schema = SchemaGenerator().get_schema(request=None, public=True)
    return dict(json.loads(json.dumps(schema, default=str)))


@cache
def _paths() -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    """Literal paths before those with parameters, as the server's own come first."""
    ordered = sorted(document()["paths"].items(), key=lambda item: item[0].count("{"))
    return [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), item) for path, item in ordered]


def _operation(method: str, path: str) -> dict[str, Any] | None:
    wanted = "get" if method == "HEAD" else method.lower()
    for pattern, item in _paths():
        if pattern.fullmatch(path.rstrip("/")):
            found: dict[str, Any] | None = item.get(wanted)
            return found
    return None


@cache
def _registry(form: str) -> Registry:
    whole = deepcopy(document())
    if form == "closed":
        _close(whole["components"]["schemas"])
    return Registry([(_DOCUMENT, whole)])


@cache
def _validator(schema: str, form: str) -> Draft202012Validator:
    described = json.loads(schema.replace('"#/', f'"{_DOCUMENT}#/'))
    return Draft202012Validator(
        described,
        registry=_registry(form),
        # Clients may write times in any form of RFC 3339; the server has one.
        validate_formats=form == "closed",
        formats={"date-time": _is_our_time},
    )


def _close(schema: Any) -> None:
    """Forbid what is not described, where the document leaves it open by saying nothing."""
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("type") == "object":
            schema.setdefault("additionalProperties", False)
        for inner in schema.values():
            _close(inner)
    elif isinstance(schema, list):
        for inner in schema:
            _close(inner)


def _dumps(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()
