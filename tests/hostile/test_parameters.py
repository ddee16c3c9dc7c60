"""Query parameters and names in paths, by what the document says of them."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from sessions_app.api.query import strict_integer
from tests.hostile.attack import Attacker, Operation, operations
from tests.hostile.values import BEYOND_NUMBERS, ENCODED, NO_NUMBERS
from tests.isolation.routes import guarded_routes

OPERATIONS = operations()
QUERIED = [operation for operation in OPERATIONS if operation.query]

# What is no value of a parameter of this type; of a text nearly everything is one.
WRONG = {
    "integer": (*NO_NUMBERS, *BEYOND_NUMBERS),
    # The nearest number within its bounds is taken.
    "clamped": tuple(text for text in NO_NUMBERS if strict_integer(text) is None),
    "boolean": ("", "1", "0", "True", "yes", "null"),
    "array": ("", "nonsense", "ACTIVE,", "active", "٣"),
    "date-time": ("", "now", "2026-01-01", "2026-01-01T00:00:00", "1767225600", "٣", "9" * 5000),
    "enum": ("", "nonsense", "NULL"),
}


UNKNOWN = ("nonsense=1", "Limit=1", "limit%00=1", "%ff=1", "=", "metadata=1", "metadata.=1")


def kind_of(parameter: dict[str, Any]) -> str:
    schema = parameter["schema"]
    if schema.get("type") == "integer" and "minimum" not in schema:
        return "clamped"
    return "enum" if "enum" in schema else schema.get("format") or schema["type"]


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
class TestAnUnknownParameter:
    def test_is_refused(self, attacker: Attacker, operation: Operation) -> None:
        many = "&".join(f"p{number}=1" for number in range(2000))
        for query in (*UNKNOWN, many):
            assert _send(attacker, operation, query).status_code == 400, query


@pytest.mark.parametrize("operation", QUERIED, ids=str)
class TestAParameter:
    def test_of_another_type_is_refused(self, attacker: Attacker, operation: Operation) -> None:
        for parameter in operation.query:
            for text in (*WRONG.get(kind_of(parameter), ()), *_beyond(parameter["schema"])):
                query = f"{parameter['name']}={quote(text)}"
                assert _send(attacker, operation, query).status_code == 400, query

    def test_of_any_text_does_no_harm(self, attacker: Attacker, operation: Operation) -> None:
        for parameter in operation.query:
            for text in ENCODED:
                query = f"{parameter['name'].replace('{key}', 'k')}={text}"
                status = _send(attacker, operation, query).status_code
                # A run or an item of that name is another thing that is not there.
                names_something = parameter["name"] in ("run_id", "after")
                assert status in (200, 204, 400) or (status == 404 and names_something)

    def test_given_twice_is_refused(self, attacker: Attacker, operation: Operation) -> None:
        for parameter in operation.query:
            name = parameter["name"].replace("{key}", "k")
            assert _send(attacker, operation, f"{name}=1&{name}=1").status_code == 400


class TestANameInAPath:
    @pytest.mark.parametrize("route", [r for r in guarded_routes() if r.names_something], ids=str)
    def test_that_names_nothing_is_not_found(self, attacker: Attacker, route: Any) -> None:
        operation = next((o for o in OPERATIONS if o.route == route), None)
        for path, kind in _paths(route, attacker):
            with attacker.attempt():
                body = operation.sample if operation else None
                answer = attacker.raw(route.method, path, body)
                attacker.judge(route.method, route.template, answer)
                assert answer.status_code in _EXPECTED.get(kind, {404}), path


# A text of a path may become another path: then it is that one's answer.
_EXPECTED = {"slash": {404, 405}, "dots": {404, 405}}
_NUMBERS = (*NO_NUMBERS[1:], "0", *BEYOND_NUMBERS)


def _paths(route: Any, attacker: Attacker) -> Iterator[tuple[str, str]]:
    names = [part[1:-1] for part in route.template.split("/") if part.startswith("{")]
    for name in names:
        texts = [(quote(text), "plain") for text in _NUMBERS] + [
            (text, "plain") for text in ENCODED
        ]
        texts += [("a%2Fb", "slash"), ("..%2F..", "slash"), ("%2e%2e", "dots")]
        for text, kind in texts:
            yield route.template.format(**{**attacker.things, name: text}), kind


def _send(attacker: Attacker, operation: Operation, query: str) -> Any:
    with attacker.attempt():
        answer = attacker.send(operation, operation.sample, query=query)
        attacker.judge(operation.route.method, attacker.path(operation), answer)
    return answer


def _beyond(schema: dict[str, Any]) -> list[str]:
    if "minimum" not in schema:
        return []
    return [str(schema["minimum"] - 1), str(schema["maximum"] + 1)]
