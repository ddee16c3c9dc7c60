"""Nothing that a client can send is a 500, and nothing that is wrong goes unnoticed."""

import json
from typing import Any

import pytest

from tests.api_client import APIClient

NEW = ["agent_id", "user_id", "title", "external_id", "metadata", "working_memory"]
NEW += ["idle_timeout_seconds", "parent_session_id", "if_exists"]
MESSAGE = ["role", "content", "tool_calls", "tool_call_id", "is_error", "name", "status", "usage"]
MESSAGE += ["client_message_id", "model", "metadata", "created_at", "item", "run_id", "attempt"]
MESSAGE += ["expected_last_sequence", "type", "sequence"]
MEMORY = ["goal", "plan", "completed", "errors", "important_files", "next_action", "extra"]

# Each write: its method, its path, a body that it takes, and every field that it knows.
WRITES: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("POST", "/sessions", {}, NEW),
    ("PATCH", "{session}", {}, ["title", "metadata", "idle_timeout_seconds", "user_id"]),
    ("POST", "{session}/messages", {"role": "user", "content": "x"}, MESSAGE),
    (
        "POST",
        "{session}/messages",
        {"messages": [{"role": "user", "content": "x"}]},
        ["messages", "run_id", "attempt", "expected_last_sequence"],
    ),
    ("POST", "{session}/messages/pop", {}, ["turn"]),
    ("PUT", "{session}/working-memory", {}, [*MEMORY, "version", "object"]),
    ("PATCH", "{session}/working-memory", {}, MEMORY),
    (
        "POST",
        "{session}/tool-calls",
        {"name": "ls"},
        ["name", "arguments", "tool_call_id", "run_id", "attempt"],
    ),
    (
        "POST",
        "{call}/finish",
        {"status": "SUCCEEDED"},
        ["status", "result", "error", "duration_ms"],
    ),
    ("POST", "{call}/settle", {"reason": "r"}, ["reason"]),
    ("POST", "{session}/close", {}, ["reason"]),
    ("POST", "{session}/expire", {}, ["reason"]),
    ("POST", "{session}/fork", {}, ["at_sequence", "title", "metadata"]),
    ("POST", "{session}/rewind", {"to_sequence": 0}, ["to_sequence", "reason"]),
    (
        "POST",
        "{session}/compact",
        {"through_sequence": 1, "summary": "s"},
        ["through_sequence", "summary"],
    ),
]
IDS = [f"{method} {path} {'-'.join(body)}" for method, path, body, _ in WRITES]

HOSTILE: list[Any] = [
    None,
    True,
    0,
    -1,
    5,
    1.5,
    10**20,
    10**400,
    "",
    "x",
    "5",
    "\x00",
    "é🙂" * 200,
    "x" * 3000,
    [],
    [None],
    [[]],
    [{}],
    [{"type": None}],
    [{"id": 1}],
    ["a", 1],
    {},
    {"a": None},
    {"type": "function_call"},
    {"type": "x" * 100},
    {"\x00": {"\x00": "\x00"}},
    {"input_tokens": 10**30},
    {"cost_usd": "1e999"},
]


def nested(levels: int, kind: str = "[") -> str:
    return "[" * levels + "]" * levels if kind == "[" else '{"a":' * levels + "1" + "}" * levels


@pytest.mark.usefixtures("remembered_tokens")
@pytest.mark.parametrize(("method", "path", "body", "fields"), WRITES, ids=IDS)
class TestAWrite:
    def test_takes_or_refuses_anything_in_any_field(
        self,
        api: APIClient,
        places: dict[str, str],
        *,
        method: str,
        path: str,
        body: Any,
        fields: Any,
    ) -> None:
        for field in fields:
            for value in HOSTILE:
                answer = api.send(method, path.format(**places), {**body, field: value})
                assert answer.status_code in (200, 201, 400, 404, 409, 413, 422), (field, value)
                if answer.status_code == 400:
                    assert answer.json()["code"] in ("invalid_request", "invalid_json")

    def test_refuses_a_body_that_is_no_object(
        self,
        api: APIClient,
        places: dict[str, str],
        *,
        method: str,
        path: str,
        body: Any,
        fields: Any,
    ) -> None:
        for raw in (b"null", b"[]", b"[{}]", b'"x"', b"5", b"true"):
            answer = api.send(method, path.format(**places), raw)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")

    def test_refuses_a_body_that_is_no_json(
        self,
        api: APIClient,
        places: dict[str, str],
        *,
        method: str,
        path: str,
        body: Any,
        fields: Any,
    ) -> None:
        text = json.dumps(body)
        broken = [b"{", b"{'a': 1}", b"\xff", b"\xef\xbb\xbf{}", text.encode("utf-16"), b"{} {}"]
        for raw in [*broken, b'{"a":1,"a":1}', b'{"a":NaN}', b'{"a":"\\ud800"}']:
            answer = api.send(method, path.format(**places), raw)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_json")

    def test_refuses_nesting_without_end(
        self,
        api: APIClient,
        places: dict[str, str],
        *,
        method: str,
        path: str,
        body: Any,
        fields: Any,
    ) -> None:
        """Report SEC-06."""
        for levels in (1000, 20_000):
            for kind in "[{":
                for raw in (nested(levels, kind), f'{{"metadata":{nested(levels, kind)}}}'):
                    answer = api.send(method, path.format(**places), raw.encode())
                    assert answer.status_code == 400

    def test_refuses_other_media_types(
        self,
        api: APIClient,
        places: dict[str, str],
        *,
        method: str,
        path: str,
        body: Any,
        fields: Any,
    ) -> None:
        raw = json.dumps({**body, "x": 1}).encode()
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"):
            answer = api.send(method, path.format(**places), raw, Content_Type=kind)
            assert answer.status_code == 415, kind

    def test_refuses_an_unknown_key(
        self,
        api: APIClient,
        places: dict[str, str],
        *,
        method: str,
        path: str,
        body: Any,
        fields: Any,
    ) -> None:
        if body.get("role"):
            pytest.skip("a message keeps keys that nobody knows")
        answer = api.send(method, path.format(**places), {**body, "a/b": 1})
        assert answer.status_code == 400
        assert "/a~1b" in {error["pointer"] for error in answer.json()["errors"]}

    def test_refuses_a_query_that_it_does_not_know(
        self,
        api: APIClient,
        places: dict[str, str],
        *,
        method: str,
        path: str,
        body: Any,
        fields: Any,
    ) -> None:
        answer = api.send(method, path.format(**places), body, query={"limit": 1})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/limit")

    @pytest.mark.parametrize("key", ["", "x" * 256])
    def test_refuses_a_key_of_a_wrong_length(
        self,
        api: APIClient,
        places: dict[str, str],
        *,
        method: str,
        path: str,
        key: str,
        body: Any,
        fields: Any,
    ) -> None:
        answer = api.send(method, path.format(**places), body, Idempotency_Key=key)
        assert answer.status_code == 400

    @pytest.mark.parametrize("tag", ["1", "abc", '"1", "2"', '"1', "W/1", "\x01"])
    def test_refuses_an_if_match_that_is_no_tag(
        self,
        api: APIClient,
        places: dict[str, str],
        *,
        method: str,
        path: str,
        tag: str,
        body: Any,
        fields: Any,
    ) -> None:
        assert api.send(method, path.format(**places), body, If_Match=tag).status_code == 400


class TestNesting:
    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("POST", "{session}/messages", '{"role":"user","content":[{"type":"t","v":@}]}'),
            ("POST", "{session}/messages", '{"messages":[{"role":"user","own":@}]}'),
            ("PATCH", "{session}", '{"metadata":{"v":@}}'),
            ("PUT", "{session}/working-memory", '{"extra":{"v":@}}'),
            ("POST", "{session}/tool-calls", '{"name":"ls","arguments":{"v":@}}'),
            ("POST", "{call}/finish", '{"status":"FAILED","result":{"v":@}}'),
        ],
    )
    def test_of_98_levels_survives_in_any_field_and_101_do_not(
        self, api: APIClient, places: dict[str, str], *, method: str, path: str, body: str
    ) -> None:
        # The field itself has up to two levels around what is nested here.
        deep = api.send(method, path.format(**places), body.replace("@", nested(101)).encode())
        fits = api.send(method, path.format(**places), body.replace("@", nested(98)).encode())
        assert deep.status_code == 400
        assert fits.status_code in (200, 201)
        assert nested(98) in fits.content.decode()
        assert api.get(f"{places['session']}/messages").status_code == 200

    def test_is_not_all_that_may_be_large(self, api: APIClient, places: dict[str, str]) -> None:
        path = f"{places['session']}/messages"
        for own in ({"k" * 1_000_000: 1}, {str(key): None for key in range(100_000)}):
            answer = api.post(path, {"role": "user", "content": "x", "own": own})
            assert answer.status_code == 201
            assert answer.json()["messages"][0]["own"] == own
