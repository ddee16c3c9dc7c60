import json
from datetime import UTC, date, datetime, timedelta, timezone
from io import BytesIO
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings
from rest_framework.test import APIClient

from sessions_app.api.response import Response, dumps
from sessions_app.jsontext import JSONText
from sessions_app.states import SessionStatus
from tests.plumbing import api_client

URL = "/api/v1/echo"

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def send(
    client: APIClient,
    body: bytes | str,
    content_type: str = "application/json",
    method: str = "post",
    **headers: str,
) -> Any:
    generic: Any = client.generic  # typed for text alone
    return generic(method.upper(), URL, body, content_type=content_type, headers=headers)


@pytest.fixture
def client() -> APIClient:
    return api_client()


@pytest.mark.django_db
@pytest.mark.urls("tests.probe")
class TestABody:
    @pytest.mark.parametrize(
        "content_type",
        [
            "application/json",
            "application/json; charset=utf-8",
            'application/json;charset="UTF-8"',
            "APPLICATION/JSON",
            "application/json; profile=x",
        ],
    )
    def test_may_be_json(self, client: APIClient, content_type: str) -> None:
        assert send(client, '{"text": "é"}', content_type).json() == {"text": "é"}

    @pytest.mark.parametrize(
        "content_type",
        [
            "text/plain",
            "",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/json; charset=latin-1",
            "application/json; charset=utf-16",
            "application/jsonx",
            "application/*",
            "*/*",
            "application/merge-patch+json",
            "x" * 5000,
            "application/json; charset=\xff",
        ],
    )
    def test_of_another_type_is_415(self, client: APIClient, content_type: str) -> None:
        answer = send(client, '{"text": "a"}', content_type)
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")

    def test_that_is_compressed_is_415(self, client: APIClient) -> None:
        assert send(client, b"\x1f\x8b", **{"Content-Encoding": "gzip"}).status_code == 415

    @pytest.mark.parametrize("content_type", ["application/json", "application/merge-patch+json"])
    def test_of_a_patch_may_be_a_merge_patch(self, client: APIClient, content_type: str) -> None:
        assert send(client, '{"count": 1}', content_type, "patch").json() == {"count": 1}

    @pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
    def test_may_be_missing(self, client: APIClient, content_type: str) -> None:
        assert send(client, b"", content_type).json() == {}

    @pytest.mark.parametrize(
        "body",
        [
            b" ",
            b"{",
            b"\xff\xfe{}",
            b'{"text": "\xed\xa0\x80"}',
            b'{"text": "\\ud83d"}',
            b'{"value": NaN}',
            b'{"value": -Infinity}',
            b'{"value": 1e999}',
            b'{"value": 1, "value": 2}',
            b'{"value": {"\\u0000": 1, "\\ufffd": 2}}',
            b'{"value": "a\x00b"}',
            b"\xef\xbb\xbf{}",
            b'{"value": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
            b'{"value": ' + b"9" * 5_000 + b"}",
            b"{'value': 1}",
            b'{"value": 1,}',
            b'{"value": 01}',
            b'{"value": 1}{"value": 2}',
        ],
    )
    def test_that_is_not_strict_json_is_refused(self, client: APIClient, body: bytes) -> None:
        answer = send(client, body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_json")

    @pytest.mark.parametrize("body", [b"[]", b'"a"', b"null", b"1", b"true", b"[{}]"])
    def test_that_is_no_object_is_refused(self, client: APIClient, body: bytes) -> None:
        answer = send(client, body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        assert answer.json()["errors"][0]["pointer"] == ""

    def test_that_a_request_does_not_take_is_refused(self, client: APIClient) -> None:
        answer = client.post("/api/v1/forgetful", {"reason": "x"})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        assert client.post("/api/v1/forgetful", {}).status_code == 200

    def test_keeps_every_digit(self, client: APIClient) -> None:
        body = f'{{"value":[{2**53 + 1},{2**63},{-(10**30)},0.1,1.0,-0.0,1e-07]}}'
        assert send(client, body).content.decode() == body

    def test_has_a_limit(self, client: APIClient, settings: Settings) -> None:
        settings.MAX_BODY_BYTES = 100
        assert send(client, json.dumps({"value": "x" * 86})).status_code == 200
        answer = send(client, json.dumps({"value": "x" * 88}))
        assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")
        assert answer.json()["limit"] == 100

    def test_that_says_it_is_too_large_is_not_read(
        self, client: APIClient, settings: Settings
    ) -> None:
        class Unreadable(BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                raise AssertionError("it was read")

        settings.MAX_BODY_BYTES = 100
        unread: Any = {"wsgi.input": Unreadable(), "CONTENT_LENGTH": 101}
        answer = client.generic("POST", URL, content_type="application/json", **unread)
        assert answer.status_code == 413

    def test_that_broke_off_is_refused_though_what_came_is_whole(self, client: APIClient) -> None:
        body = b'{"value": 1}'
        cut: Any = {"wsgi.input": BytesIO(body), "CONTENT_LENGTH": len(body) + 1}
        answer = client.generic("POST", URL, content_type="application/json", **cut)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        assert "broke off" in answer.json()["detail"]


@pytest.mark.django_db
@pytest.mark.urls("tests.probe")
class TestAnAnswer:
    @pytest.mark.parametrize(
        "accept", ["*/*", "text/html", "application/xml", "nonsense", "", "a/b;q=x"]
    )
    def test_is_json_whatever_is_accepted(self, client: APIClient, accept: str) -> None:
        answer = client.get(URL, headers={"Accept": accept})
        assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")


class TestTheRenderer:
    def test_copies_client_json_as_it_stands(self) -> None:
        text = f'{{"b":1,"a":{10**40},"c":1e2,"d":-0.0}}'
        assert dumps({"content": JSONText(text)}) == f'{{"content":{text}}}'.encode()
        assert dumps(JSONText(text)) == text.encode()

    @pytest.mark.parametrize(
        ("moment", "text"),
        [
            (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05.000000Z"),
            (datetime(2026, 1, 2, 3, 4, 5, 60, tzinfo=UTC), "2026-01-02T03:04:05.000060Z"),
            (
                datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=5, minutes=30))),
                "2026-01-01T21:34:05.000000Z",
            ),
            (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
        ],
    )
    def test_writes_times_in_one_form(self, moment: datetime, text: str) -> None:
        assert json.loads(dumps([moment, {"at": moment}])) == [text, {"at": text}]

    def test_writes_what_the_domain_uses(self) -> None:
        number = UUID("0190a1f0-0000-7000-8000-000000000000")
        value = [
            SessionStatus.ACTIVE,
            date(2026, 1, 2),
            number,
            gettext_lazy("Active"),
            MappingProxyType({"a": 1}),
            (1, 2),
        ]
        written = json.loads(dumps(value))
        assert written == ["ACTIVE", "2026-01-02", str(number), "Active", {"a": 1}, [1, 2]]

    def test_falls_back_for_what_orjson_refuses(self) -> None:
        deep: Any = []
        for _ in range(300):
            deep = [deep]
        value = {
            "big": 10**40,
            "half": "\ud83d",
            "pair": "\ud83d\ude00",
            "deep": deep,
            "text": JSONText(f'{{"n":{10**40}}}'),
            "at": datetime(2026, 1, 2, tzinfo=UTC),
        }
        written = json.loads(dumps(value).decode())
        assert written == {
            "big": 10**40,
            "half": "\ufffd",
            "pair": "😀",
            "deep": deep,
            "text": {"n": 10**40},
            "at": "2026-01-02T00:00:00.000000Z",
        }

    def test_never_writes_nan(self) -> None:
        assert dumps([float("nan"), float("-inf")]) == b"[null,null]"

    def test_writes_nothing_for_no_data(self) -> None:
        empty = Response(status=204)
        assert empty.content == b""
        assert "Content-Type" not in empty.headers

    @given(json_values)
    def test_writes_what_reads_as_the_same_value(self, value: Any) -> None:
        finite = json.loads(dumps(value), parse_constant=pytest.fail)
        assert dumps(finite) == dumps(value)
