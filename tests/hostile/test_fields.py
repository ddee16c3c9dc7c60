"""Every field of every body, with everything that could be wrong in it.

Which fields there are, and what each may hold, is the OpenAPI document's to say: what it allows is
taken, what it forbids is refused, on both databases alike. So the tables here need no outcomes.
"""

import json
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker, validators  # type: ignore[import-untyped]
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tests.api_client import document, strict_json
from tests.hostile.attack import Attacker, Operation, operations
from tests.hostile.stored import at, is_kept, is_stored, read_again
from tests.hostile.values import AT_EACH_FIELD, JSON, NEVER
from tests.isolation.references import Path, put

_MARK = "the hostile value"
WITH_JSON = [operation for operation in operations() if operation.takes_json]
each_operation = pytest.mark.parametrize("operation", WITH_JSON, ids=str)

_CALL = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
_MESSAGE = {"role": "user", "content": "Hello"}
_CALLING = {"role": "assistant", "content": None, "tool_calls": [_CALL]}

# What else the server looks at, and the document cannot say.
_LOOKED_AT = {
    "attempt": "it must be the run's",
    "type": "a call of that type has a key of that name",
    "at_sequence": "the history must have come so far",
    "to_sequence": "the history must have come so far",
    "through_sequence": "and something must be there to summarise",
}


def with_value(operation: Operation, place: Path, text: str) -> bytes:
    """The sample with the text, as it stands, at that place."""
    base: Any = operation.sample or {}
    if str(operation) == "append_messages" and place[0] != "messages":
        base = _CALLING if place[0] == "tool_calls" else _MESSAGE
    body = put(base, place, _MARK)
    return json.dumps(body).replace(json.dumps(_MARK), text).encode()


@each_operation
class TestAField:
    def test_never_takes_what_is_no_json(self, attacker: Attacker, operation: Operation) -> None:
        wrong = []
        for place in operation.places:
            names = NEVER if place == operation.places[0] else AT_EACH_FIELD
            for name, text in [(name, NEVER[name]) for name in names]:
                with attacker.attempt():
                    answer = attacker.send(operation, with_value(operation, place, text))
                    wrong += _complaints(attacker, operation, answer, place, name)
                    # What is not kept may be as deep as it likes.
                    kept = is_stored(operation, place) or "101" not in name
                    if kept and answer.status_code != 400:
                        wrong.append((place, name, answer.status_code, answer.content[:200]))
        assert not wrong, "\n".join(map(str, wrong))

    def test_takes_what_the_document_says_and_gives_it_back(
        self, attacker: Attacker, operation: Operation
    ) -> None:
        wrong: list[Any] = []
        for place in operation.places:
            for name, text in JSON.items():
                with attacker.attempt():
                    raw = with_value(operation, place, text)
                    answer = attacker.send(operation, raw)
                    wrong += _complaints(attacker, operation, answer, place, name)
                    wrong += _misjudged(operation, raw, answer, place, name)
                    if answer.status_code < 300 and is_stored(operation, place):
                        wrong += _changed(attacker, operation, answer, place, name)
        assert not wrong, "\n".join(map(str, wrong))


def _complaints(
    attacker: Attacker, operation: Operation, answer: Any, place: Path, name: str
) -> list[Any]:
    try:
        attacker.judge(operation.route.method, attacker.path(operation), answer)
    except Exception as error:  # noqa: BLE001 (every fault is shown, not only the first)
        return [(place, name, answer.status_code, str(error)[:300])]
    return []


def _misjudged(operation: Operation, raw: bytes, answer: Any, place: Path, name: str) -> list[Any]:
    refused = answer.status_code in (400, 413)
    allowed = _validator(str(operation)).is_valid(json.loads(raw))
    if refused != allowed or (refused and answer.status_code == 413):
        return []
    if allowed and place[-1] in _LOOKED_AT:
        return []
    saying = "allowed, but refused" if allowed else "forbidden, but taken"
    return [(place, name, saying, answer.status_code, answer.content[:200])]


def _changed(
    attacker: Attacker, operation: Operation, answer: Any, place: Path, name: str
) -> list[Any]:
    again = strict_json(read_again(attacker, operation, strict_json(answer.content)).content)
    found, sent = at(operation, place, again), json.loads(JSON[name])
    if is_kept(operation, place, sent, found):
        return []
    return [(place, name, "came back as", repr(found)[:200])]


@cache
def _validator(operation: str) -> Any:
    described = next(found for found in WITH_JSON if str(found) == operation).described
    schema = described["requestBody"]["content"]["application/json"]["schema"]
    whole = Resource.from_contents(document(), default_specification=DRAFT202012)
    registry: Registry = Registry().with_resource("urn:openapi", whole)
    text = json.dumps(schema).replace('"#/', '"urn:openapi#/')
    return _Strict(json.loads(text), registry=registry, format_checker=_formats)


_formats = FormatChecker(formats=())


@_formats.checks("date-time")
def _is_a_moment(value: Any) -> bool:
    return not isinstance(value, str)  # no text here is one


def _is_integer(_: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# JSON schema takes 1.0 for an integer; the server does not.
_Strict = validators.extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)
