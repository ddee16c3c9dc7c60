"""Whole bodies, and what is said about them: refused by every operation in the same way."""

import io
import json
from typing import Any

import pytest

from tests.api_client import address
from tests.hostile.attack import Attacker, operations
from tests.hostile.values import BODIES, CONTENT_TYPES, JSON

OPERATIONS = operations()
WRITES = [operation for operation in OPERATIONS if operation.route.writes]
WITH_BODIES = [operation for operation in OPERATIONS if operation.takes_a_body]
WITH_JSON = [operation for operation in OPERATIONS if operation.takes_json]

# An empty object is the same as no body; a key before it is read by nobody.
each_body = pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)


class TestABody:
    @each_body
    def test_that_is_no_good_object_is_refused(self, attacker: Attacker, body: bytes) -> None:
        for operation in WRITES:
            with attacker.attempt():
                answer = attacker.send(operation, body)
                attacker.judge(operation.route.method, attacker.path(operation), answer)
                if str(operation) != "append_messages":
                    assert answer.status_code == 400, (str(operation), answer.content[:200])
                assert answer.status_code in (400, 413), (str(operation), answer.content[:200])

    def test_that_is_not_there_is_an_empty_object(self, attacker: Attacker) -> None:
        for operation in [each for each in WRITES if not each.takes_a_file]:
            with attacker.attempt():
                empty = attacker.send(operation, b"")
                attacker.judge(operation.route.method, attacker.path(operation), empty)
            with attacker.attempt():
                assert attacker.send(operation, b"{}").status_code == empty.status_code

    def test_is_refused_where_none_is_expected(self, attacker: Attacker) -> None:
        for operation in WRITES:
            if not operation.takes_a_body:
                with attacker.attempt():
                    assert attacker.send(operation, {"reason": "x"}).status_code == 400

    @pytest.mark.parametrize("content_type", CONTENT_TYPES)
    def test_of_another_type_is_refused(self, attacker: Attacker, content_type: str) -> None:
        for operation in WITH_BODIES:
            with attacker.attempt():
                answer = attacker.send(operation, operation.sample, content_type=content_type)
                attacker.judge(operation.route.method, attacker.path(operation), answer)
                assert answer.status_code == 415, str(operation)

    def test_of_a_known_type_may_name_utf_8(self, attacker: Attacker) -> None:
        for operation in WITH_JSON:
            with attacker.attempt():
                spelt = "Application/JSON; Charset=UTF-8"
                answer = attacker.send(operation, operation.sample, content_type=spelt)
                assert answer.status_code < 300, str(operation)

    def test_over_the_limit_is_refused(self, attacker: Attacker, settings: Any) -> None:
        settings.MAX_BODY_BYTES = 1000
        for operation in WITH_JSON:
            body = json.dumps(operation.sample).encode()
            for size, refused in ((1000, False), (1001, True)):
                with attacker.attempt():
                    answer = attacker.send(operation, body + b" " * (size - len(body)))
                    attacker.judge(operation.route.method, attacker.path(operation), answer)
                    assert (answer.status_code == 413) is refused, str(operation)

    def test_of_ten_megabytes_is_the_largest(self, attacker: Attacker) -> None:
        text = b"x" * (10 * 1024 * 1024)
        refused = attacker.raw("POST", "/sessions", b'{"title": "' + text + b'"}')
        assert refused.status_code == 413
        assert refused.json()["limit"] == 10 * 1024 * 1024

    @pytest.mark.parametrize("announced", ["", "0", "-1", "abc", "1e3", "99999999999999999999"])
    def test_is_measured_whatever_is_announced(self, attacker: Attacker, announced: str) -> None:
        path = f"/sessions/{attacker.things['session_id']}/messages"
        body = b'{"role": "user", "content": "x"}'
        environ: dict[str, Any] = {
            "HTTP_AUTHORIZATION": f"Bearer {attacker.token}",
            "CONTENT_LENGTH": announced,
            "wsgi.input": io.BytesIO(body),
        }
        with attacker.attempt():
            answer = attacker.client.generic(
                "POST", address(path), body, content_type="application/json", **environ
            )
            attacker.judge("POST", path, answer)
            assert 400 <= answer.status_code < 500


class TestAKeyedBody:
    @pytest.mark.parametrize("text", JSON.values(), ids=JSON)
    def test_is_known_again_whatever_it_holds(self, attacker: Attacker, text: str) -> None:
        path = f"/sessions/{attacker.things['session_id']}/tool-calls"
        body = f'{{"name": "ls", "arguments": {text}}}'.encode()
        other = body.replace(b'"ls"', b'"rm"')
        with attacker.attempt():
            headers = {"Idempotency-Key": "k"}
            first, again, changed = (
                attacker.raw("POST", path, sent, headers=headers) for sent in (body, body, other)
            )
            assert (first.status_code, again.content) == (201, first.content)
            assert again.headers["Idempotency-Replayed"] == "true"
            assert changed.status_code == 422
