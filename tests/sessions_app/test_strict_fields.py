from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator
from rest_framework.exceptions import ValidationError
from rest_framework.test import APIClient

from sessions_app.api.fields import (
    AnyObjectSerializer,
    InstantField,
    JSONObjectField,
    JSONValueField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
)
from tests.plumbing import api_client
from tests.probe import Body

URL = "/api/v1/echo"
OTHER_TYPES: list[Any] = [5, 5.0, True, False, [], {}, ["a"]]


def refused(field: Any, value: Any) -> bool:
    try:
        field.run_validation(value)
    except ValidationError:
        return True
    return False


class TestAString:
    @pytest.mark.parametrize("value", ["", " ", " a ", "\n", "é", "a" * 5, "\ufffd", "👩‍🚀", "1"])
    def test_is_taken_to_the_last_space(self, value: str) -> None:
        assert StrictCharField(max_length=5).run_validation(value) == value

    @pytest.mark.parametrize("value", [*OTHER_TYPES, None, "a" * 6])
    def test_is_nothing_else(self, value: Any) -> None:
        assert refused(StrictCharField(max_length=5), value)

    def test_may_be_null_where_told_so(self) -> None:
        assert StrictCharField(allow_null=True).run_validation(None) is None

    def test_may_be_forbidden_to_be_empty(self) -> None:
        assert refused(StrictCharField(allow_blank=False), "")


class TestAnInteger:
    @pytest.mark.parametrize("value", [0, -1, 2**63 - 1, -(2**63)])
    def test_is_taken_up_to_what_a_column_holds(self, value: int) -> None:
        assert StrictIntegerField().run_validation(value) == value

    @pytest.mark.parametrize(
        "value", ["5", "", 5.0, 5.5, True, False, None, [], {}, 2**63, -(2**63) - 1, 10**20]
    )
    def test_is_nothing_else(self, value: Any) -> None:
        assert refused(StrictIntegerField(), value)

    @pytest.mark.parametrize(("value", "wrong"), [(1, False), (10, False), (0, True), (11, True)])
    def test_has_its_range(self, value: int, wrong: bool) -> None:
        assert refused(StrictIntegerField(min_value=1, max_value=10), value) is wrong


class TestABoolean:
    @pytest.mark.parametrize("value", [True, False])
    def test_is_true_or_false(self, value: bool) -> None:
        assert StrictBooleanField().run_validation(value) is value

    @pytest.mark.parametrize("value", ["true", "false", "", 0, 1, 1.0, None, [], {}])
    def test_is_nothing_else(self, value: Any) -> None:
        assert refused(StrictBooleanField(), value)


class TestAChoice:
    def test_is_one_of_them(self) -> None:
        assert StrictChoiceField(choices=["a", "1"]).run_validation("1") == "1"

    @pytest.mark.parametrize("value", ["b", "A", "", 1, True, None, [], {}, ["a"]])
    def test_is_nothing_else(self, value: Any) -> None:
        assert refused(StrictChoiceField(choices=["a", "1"]), value)


class TestATime:
    @pytest.mark.parametrize(
        ("text", "utc"),
        [
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00+00:00"),
            ("2026-01-31t12:00:00.123456789z", "2026-01-31T12:00:00.123456+00:00"),
            ("2026-01-31T12:00:00+05:30", "2026-01-31T06:30:00+00:00"),
        ],
    )
    def test_is_read_into_utc(self, text: str, utc: str) -> None:
        assert InstantField().run_validation(text).isoformat() == utc

    @pytest.mark.parametrize(
        "value",
        ["2026-01-31T12:00:00", "2026-01-31", "2026-02-30T12:00:00Z", "now", "", 5, None, [],
         "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "2026-W05-6T12:00:00Z"],
    )  # fmt: skip
    def test_has_its_offset_and_exists(self, value: Any) -> None:
        assert refused(InstantField(), value)


class TestAnyJSON:
    @pytest.mark.parametrize("value", [*OTHER_TYPES, None, "", 10**30])
    def test_is_taken_as_it_is(self, value: Any) -> None:
        assert JSONValueField().run_validation(value) is value

    @pytest.mark.parametrize("value", [None, [], "a", 1, True])
    def test_may_have_to_be_an_object(self, value: Any) -> None:
        assert refused(JSONObjectField(), value)
        assert JSONObjectField().run_validation({"a": None}) == {"a": None}

    @pytest.mark.parametrize("value", [None, [], "a", 1, True])
    def test_may_be_a_whole_body(self, value: Any) -> None:
        assert refused(AnyObjectSerializer(), value)
        assert AnyObjectSerializer().run_validation({"any": [1]}) == {"any": [1]}


@pytest.mark.django_db
@pytest.mark.urls("tests.probe")
class TestABody:
    @pytest.fixture
    def client(self) -> APIClient:
        return api_client()

    def pointers(self, client: APIClient, body: Any) -> list[str]:
        answer = client.post(URL, body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        return sorted(error["pointer"] for error in answer.json()["errors"])

    @pytest.mark.parametrize(
        ("body", "pointers"),
        [
            ({"unknown": 1}, ["/unknown"]),
            ({"": 1}, ["/"]),
            ({"a/b": 1, "m~n": 2}, ["/a~1b", "/m~0n"]),
            ({"text": 5, "count": "5", "more": 1}, ["/count", "/more", "/text"]),
            ({"inner": {"kind": "c"}}, ["/inner/kind"]),
            ({"inner": {"kind": "a", "x": 1}}, ["/inner/x"]),
            ({"inner": {}}, ["/inner/kind"]),
            ({"inner": None}, ["/inner"]),
            ({"inner": []}, ["/inner"]),
            ({"texts": ["a", 5, "b", None]}, ["/texts/1", "/texts/3"]),
            ({"texts": "ab"}, ["/texts"]),
            ({"non_field_errors": 1}, [""]),
        ],
    )
    def test_is_refused_with_a_pointer_to_each_fault(
        self, client: APIClient, body: Any, pointers: list[str]
    ) -> None:
        assert self.pointers(client, body) == pointers

    def test_with_a_huge_key_is_refused_shortly(self, client: APIClient) -> None:
        answer = client.post(URL, {"k" * 1_000_000: 1})
        assert answer.status_code == 400
        assert len(answer.content) < 5000

    def test_with_a_hundred_thousand_keys_is_refused_shortly(self, client: APIClient) -> None:
        answer = client.post(URL, {str(number): 1 for number in range(100_000)})
        assert answer.status_code == 400
        assert len(answer.content) < 10_000

    def test_with_more_unknown_keys_than_anybody_reads_names_some(self) -> None:
        body = Body(data={f"k{number}": 1 for number in range(1000)})
        assert not body.is_valid()
        assert 1 <= len(body.errors) <= 110

    def test_tells_null_from_absent(self, client: APIClient) -> None:
        assert client.post(URL, {"text": None, "value": None}).json() == {
            "text": None,
            "value": None,
        }
        assert client.post(URL, {}).json() == {}

    def test_keeps_open_objects_open(self, client: APIClient) -> None:
        body = {"anything": [1, None], "": ""}
        assert client.put(URL, body).json() == body


@pytest.fixture(scope="module")
def schema() -> Any:
    return SchemaGenerator(urlconf="tests.probe").get_schema(request=None, public=True)


class TestTheSchema:
    def test_closes_strict_objects(self, schema: Any) -> None:
        schemas = schema["components"]["schemas"]
        assert schemas["BodyRequest"]["additionalProperties"] is False
        assert schemas["InnerRequest"]["additionalProperties"] is False
        assert schemas["AnyObjectRequest"]["additionalProperties"] == {}

    def test_says_what_each_operation_takes(self, schema: Any) -> None:
        paths = schema["paths"]
        echo = {found["name"]: found for found in paths["/api/v1/echo"]["get"]["parameters"]}
        assert echo["after"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}
        assert echo["since"]["schema"] == {"type": "string", "format": "date-time"}
        assert echo["order"]["schema"]["default"] == "asc"
        counter = paths["/api/v1/sessions/{session_id}/counter"]
        names = {
            method: {found["name"] for found in operation.get("parameters", [])}
            for method, operation in counter.items()
        }
        assert names["get"] == {"session_id", "If-None-Match"}
        assert names["post"] == {"session_id", "Idempotency-Key", "If-Match"}
        assert names["delete"] == {"session_id", "Idempotency-Key"}

    def test_says_that_every_operation_may_be_refused(self, schema: Any) -> None:
        for path in schema["paths"].values():
            for operation in path.values():
                content = operation["responses"]["default"]["content"]
                assert list(content) == ["application/problem+json"]

    def test_takes_merge_patches_on_patch_alone(self, schema: Any) -> None:
        echo = schema["paths"]["/api/v1/echo"]
        patch = "application/merge-patch+json"
        assert patch in echo["patch"]["requestBody"]["content"]
        assert patch not in echo["post"]["requestBody"]["content"]
