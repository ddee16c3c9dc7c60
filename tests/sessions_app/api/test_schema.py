"""The OpenAPI document says enough for a client to be written from it alone."""

from collections.abc import Iterator
from typing import Any

import pytest
from drf_spectacular.validation import validate_schema

from runs_app.states import UNFINISHED, RunStatus
from sessions_app.states import INTERRUPTED_RUN, RUN_STATUSES, UNFINISHED_RUNS
from tests.api_client import document


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document()["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


class TestTheDocument:
    def test_is_valid(self) -> None:
        validate_schema(document())

    def test_names_each_operation_and_says_what_it_does(self) -> None:
        names = [operation["operationId"] for _, _, operation in operations()]
        assert len(names) == len(set(names))
        assert all(name == name.lower() and " " not in name for name in names)
        assert [path for _, path, each in operations() if not each.get("summary")] == []

    def test_describes_every_answer(self) -> None:
        for method, path, operation in operations():
            answers = operation["responses"]
            assert any(code.startswith("2") for code in answers), (method, path)
            assert "default" in answers
            assert {"401", "403", "503"} <= set(answers), (method, path)
            assert ("404" in answers) == ("{" in path), (method, path)
            if method != "get":
                assert {"400", "409", "422"} <= set(answers), (method, path)

    def test_offers_a_key_for_each_write(self) -> None:
        for method, path, operation in operations():
            headers = {each["name"] for each in operation["parameters"] if each["in"] == "header"}
            assert ("Idempotency-Key" in headers) == (method != "get"), (method, path)

    @pytest.mark.parametrize("path", ["/sessions/{session_id}", "/sessions/{session_id}/messages"])
    def test_offers_a_condition_for_each_write_below_a_session(self, path: str) -> None:
        for method, operation in document()["paths"][f"/api/v1{path}"].items():
            headers = {each["name"] for each in operation["parameters"] if each["in"] == "header"}
            assert ("If-Match" in headers) == (method != "get")

    def test_closes_what_is_read_strictly(self) -> None:
        schemas = document()["components"]["schemas"]
        assert schemas["NewSessionRequest"]["additionalProperties"] is False
        assert schemas["MessageBatchRequest"]["additionalProperties"] is False
        assert schemas["WorkingMemoryRequest"]["additionalProperties"] is False
        assert schemas["MessageRequest"]["additionalProperties"] == {}
        assert schemas["Message"]["additionalProperties"] == {}


class TestTheStatusesOfARun:
    def test_are_the_same_in_both_apps(self) -> None:
        assert set(RUN_STATUSES) == set(RunStatus.values)
        assert UNFINISHED_RUNS == UNFINISHED
        assert INTERRUPTED_RUN == RunStatus.INTERRUPTED
