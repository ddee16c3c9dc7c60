"""Where a request can name something of another account's, taken from the OpenAPI document."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.api_client import address, document

# A name of this form may be somebody else's.
_REFERS = re.compile(r"(.*_)?id|retry_of|parent_.*")

# What of `Things` each of them names. Names that the server does not give are only the
# account's own words: of two accounts that use the same one, neither may notice.
NAMES: Mapping[str, str] = {
    "session_id": "session_id",
    "parent_session_id": "session_id",
    "run_id": "run_id",
    "retry_of": "run_id",
    "parent_run_id": "run_id",
    "external_id": "external_id",
    "agent_id": "agent_id",
    "user_id": "user_id",
    "tool_call_id": "tool_call_id",
    "client_message_id": "client_message_id",
    "id": "tool_call_id",
}

# Inside a message a reference needs company to be looked at.
BESIDE: Mapping[str, Mapping[str, Any]] = {
    "tool_call_id": {"role": "tool", "content": "a result"},
    "id": {"function": {"name": "ls", "arguments": "{}"}},
}

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Reference:
    """One place in one operation: in its query, or at a path in its body."""

    method: str
    template: str
    place: Path
    in_query: bool = False

    @property
    def name(self) -> str:
        return str(self.place[-1])

    def __str__(self) -> str:
        mark = "?" if self.in_query else "#/"
        return f"{self.method} {self.template} {mark}{'/'.join(map(str, self.place))}"


def references() -> list[Reference]:
    return sorted(set(_all()), key=str)


def query_parameters(template: str) -> list[str]:
    operation = document()["paths"][address(template)]["get"]
    return [found["name"] for found in operation["parameters"] if found["in"] == "query"]


def _all() -> Iterator[Reference]:
    for path, item in document()["paths"].items():
        for method, operation in item.items():
            where = (method.upper(), path.removeprefix("/api/v1"))
            for found in operation.get("parameters", ()):
                if found["in"] == "query" and _REFERS.fullmatch(found["name"]):
                    yield Reference(*where, (found["name"],), in_query=True)
            for place in places_in_body(operation):
                if _REFERS.fullmatch(str(place[-1])):
                    yield Reference(*where, place)


def places_in_body(operation: Mapping[str, Any]) -> list[Path]:
    """Each key that a body may have, also inside objects and lists."""
    described = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return [] if described is None else list(_places(described["schema"], ()))


def _places(schema: Mapping[str, Any], place: Path) -> Iterator[Path]:
    schema = resolved(schema)
    for choice in (*schema.get("oneOf", ()), *schema.get("anyOf", ()), *schema.get("allOf", ())):
        yield from _places(choice, place)
    for name, inner in schema.get("properties", {}).items():
        yield (*place, name)
        yield from _places(inner, (*place, name))
    if isinstance(schema.get("items"), Mapping):
        yield from _places(schema["items"], (*place, 0))


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    return schema if reference is None else components()[reference.rpartition("/")[2]]


@cache
def components() -> Mapping[str, Any]:
    found: Mapping[str, Any] = document()["components"]["schemas"]
    return found


def put(body: Any, place: Path, value: Any, beside: Mapping[str, Any] | None = None) -> Any:
    """A copy of the body with the value at that place, and what must stand beside it."""
    step, *rest = place
    if isinstance(step, int):
        first = body[step] if isinstance(body, list) and body else {}
        return [put(first, tuple(rest), value, beside) if rest else value]
    inside = dict(body) if isinstance(body, Mapping) else {}
    if rest:
        return {**inside, step: put(inside.get(step), tuple(rest), value, beside)}
    return {**inside, **(beside or {}), step: value}
