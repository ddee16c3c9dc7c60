"""Headers that say nothing, or too much."""

from typing import Any

import pytest

from tests.api_client import document
from tests.hostile.attack import Attacker, operations
from tests.hostile.values import AUTHORIZATIONS, HEADERS
from tests.isolation.routes import guarded_routes

OPERATIONS = operations()

# No operation reads the others: it is enough to send them to one of each kind.
LOOKED_AT = {
    "If-Match",
    "If-None-Match",
    "Idempotency-Key",
    "Prefer",
    "X-Stainless-Retry-Count",
}
ONE_OF_EACH_METHOD = list({found.route.method: found for found in OPERATIONS}.values())

# What each of these must be, where it is looked at; of all others nothing may come.
REFUSED = {
    "Idempotency-Key": {"", "x" * 256},
    "Content-Encoding": {"gzip", "br", "\xff"},
}
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW")


@pytest.mark.parametrize("name", HEADERS)
class TestAHeader:
    def test_without_sense_does_no_harm(self, attacker: Attacker, name: str) -> None:
        for operation in OPERATIONS if name in LOOKED_AT else ONE_OF_EACH_METHOD:
            for text in HEADERS[name]:
                with attacker.attempt():
                    answer = attacker.send(operation, operation.sample, headers={name: text})
                    attacker.judge(operation.route.method, attacker.path(operation), answer)
                    self._check(operation, name, text, answer)

    def _check(self, operation: Any, name: str, text: str, answer: Any) -> None:
        status, where = answer.status_code, (str(operation), text)
        if name == "If-Match" and operation.route.writes:
            assert status in (400, 412), where
        elif name in REFUSED and operation.takes_a_body:
            assert (status in (400, 415)) is (text in REFUSED[name]), where
        elif name not in REFUSED and name != "If-None-Match":
            assert status < 300, where


class TestAnAuthorization:
    @pytest.mark.parametrize("text", AUTHORIZATIONS)
    def test_without_a_token_is_refused(self, attacker: Attacker, text: str) -> None:
        for operation in OPERATIONS:
            headers = {"Authorization": text.format(token=attacker.token)}
            answer = attacker.send(operation, operation.sample, headers=headers)
            attacker.judge(operation.route.method, attacker.path(operation), answer)
            assert answer.status_code == 401

    def test_is_never_echoed(self, attacker: Attacker) -> None:
        answer = attacker.raw("GET", "/sessions", headers={"Authorization": "Bearer secret-word"})
        assert b"secret-word" not in answer.content


class TestAMethod:
    def test_that_a_path_lacks_is_405_and_told_which_it_has(self, attacker: Attacker) -> None:
        for path, allowed in _allowed().items():
            place = path.format(**attacker.things)
            for method in set(_METHODS) - allowed:
                answer = attacker.raw(method, place)
                assert answer.status_code == 405, (method, path)
                assert set(answer.headers["Allow"].split(", ")) == allowed
                attacker.judge(method, place, answer)

    def test_in_small_letters_is_none(self, attacker: Attacker) -> None:
        assert attacker.raw("get", "/sessions").status_code in (200, 405)

    def test_that_a_path_lacks_needs_a_token_all_the_same(self, attacker: Attacker) -> None:
        answer = attacker.raw("PUT", "/sessions", headers={"Authorization": ""})
        assert answer.status_code == 401

    def test_is_in_the_document_for_every_path(self) -> None:
        described = {
            path.removeprefix("/api/v1"): {method.upper() for method in item}
            for path, item in document()["paths"].items()
        }
        assert described == {path: found - {"HEAD"} for path, found in _allowed().items()}


class TestAPath:
    @pytest.mark.parametrize(
        "path",
        [
            "",
            "/",
            "/nonsense",
            "/sessions//messages",
            "/" + "x" * 20_000,
            "/" + "x/" * 2000,
            "/%00",
            "/%ff",
            "/sessions%00",
            "/../admin/",
            "/sessions;a=b",
            "/Sessions",
        ],
    )
    def test_that_leads_nowhere_is_404(self, attacker: Attacker, path: str) -> None:
        answer = attacker.raw("GET", path)
        assert answer.status_code == 404
        attacker.judge("GET", "/nowhere", answer)


def _allowed() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for route in guarded_routes():
        found.setdefault(route.template, set()).add(route.method)
    return found
