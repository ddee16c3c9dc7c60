"""What a machine makes of the OpenAPI document: requests that follow it, and ones that do not.

Few examples of each operation, always the same ones, and many others in a soak: the tables beside
this test look for faults on purpose; this one looks where nobody thought of looking.
"""

from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.transport import Response
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api_client import address, document, whole
from tests.hostile.attack import Attacker
from tests.isolation.routes import guarded_routes
from tests.isolation.samples import sample_of

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# Always the same ones in the suite, and others at each soak.
FEW, MANY = 5, 100
# Without files: tests/runs_app/test_transfer.py has what may stand in one.
ROUTES = [
    route
    for route in guarded_routes()
    if route.method != "HEAD" and sample_of(route).content_type == "application/json"
]
_HOST = "http://testserver"


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("route", ROUTES, ids=str)
class TestAGeneratedRequest:
    def test_is_answered_as_the_document_says(
        self, attacker: Attacker, route: Any, mode: GenerationMode, examples: int
    ) -> None:
        schema = schemathesis.openapi.from_dict(document())
        operation = schema[address(route.template)][route.method]
        sources = sample_of(route).ids

        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: Any) -> None:
            for name in case.path_parameters or {}:
                case.path_parameters[name] = attacker.things[sources.get(name, name)]
            with attacker.attempt():
                case.validate_response(_answer(attacker, case), checks=CHECKS)

        (seed(20260301)(check) if examples == FEW else check)()


def _answer(attacker: Attacker, case: Any) -> Response:
    """By the test client, which leaves the test's transaction alone, as if over the network."""
    asked: Any = requests.Request(**_known(case.as_transport_kwargs(base_url=_HOST))).prepare()
    headers = {**asked.headers, "Authorization": f"Bearer {attacker.token}"}
    body = asked.body or b""
    answer = attacker.client.generic(
        str(asked.method),
        str(asked.url).removeprefix(_HOST),
        body if isinstance(body, bytes) else body.encode(),
        content_type=headers.pop("Content-Type", "application/json"),
        headers=headers,
    )
    given = whole(answer)
    headers_given = {name: [text] for name, text in given.items()}
    return Response(given.status_code, headers_given, given.content, asked, 0.0, verify=False)


def _known(arguments: dict[str, Any]) -> dict[str, Any]:
    names = ("method", "url", "headers", "params", "data", "json", "cookies")
    return {name: arguments[name] for name in names if arguments.get(name) is not None}
