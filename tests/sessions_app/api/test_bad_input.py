"""Nothing that a client can send is a 500, and nothing that is wrong goes unnoticed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from sessions_app.models import Session
from tests.api_client import APIClient
from tests.factories import make_messages, make_session, make_tool_call

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


@pytest.fixture
def session(agent: User) -> Session:
    return make_session(account=agent)


@pytest.fixture
def places(session: Session) -> dict[str, str]:
    make_messages(session=session)
    call = make_tool_call(session=session)
    return {"session": f"/sessions/{session.session_id}", "call": f"/tool-calls/{call.id}"}


def nested(levels: int, kind: str = "[") -> str:
    return "[" * levels + "]" * levels if kind == "[" else '{"a":' * levels + "1" + "}" * levels


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


# Each list and its integer and time parameters.
READS: list[tuple[str, list[str], list[str], list[str]]] = [
    (
        "/sessions",
        ["limit"],
        ["created_after", "created_before", "active_after", "active_before", "expires_before"],
        ["has_open_tool_calls"],
    ),
    ("{session}", [], [], []),
    ("{session}/messages", ["after", "before", "limit"], [], ["include_superseded"]),
    ("{session}/messages/1", [], [], []),
    ("{session}/working-memory", [], [], []),
    ("{session}/working-memory/revisions", ["limit"], [], []),
    ("{session}/events", ["limit"], [], []),
    ("{session}/tool-calls", ["limit"], [], []),
    ("{call}", [], [], []),
]
TEXTS = ["agent_id", "user_id", "external_id", "parent_session_id", "q", "metadata.a"]


def each_parameter(kind: int) -> Iterator[tuple[str, str]]:
    for read in READS:
        for name in read[kind]:
            yield read[0], name


class TestAQuery:
    @pytest.mark.parametrize("path", [read[0] for read in READS])
    def test_with_an_unknown_parameter_is_refused(
        self, api: APIClient, places: dict[str, str], path: str
    ) -> None:
        for name in ("unknown", "Limit", "limit[]", "metadata", "format", "\x00"):
            answer = api.get(path.format(**places), {name: "1"})
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")

    @pytest.mark.parametrize(("path", "name"), list(each_parameter(1)))
    def test_with_a_wrong_integer_is_refused(
        self, api: APIClient, places: dict[str, str], path: str, name: str
    ) -> None:
        """Report DATA-04."""
        wrong = ["1" + "0" * 20, "-1", "abc", "1e3", "٣", "", " 1", "1.0", "+1", "0x1", "01"]
        wrong += ["0", "1001"] if name == "limit" else []
        for text in [*wrong, "\x00", "1" * 5000]:
            answer = api.get(path.format(**places), {name: text})
            assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, f"/{name}")
        assert api.get(path.format(**places), f"{name}=1&{name}=2").status_code == 400

    @pytest.mark.parametrize(("path", "name"), list(each_parameter(2)))
    def test_with_a_wrong_time_is_refused(
        self, api: APIClient, places: dict[str, str], path: str, name: str
    ) -> None:
        """Report TIME-01: a time without an offset was taken for a local one."""
        wrong = ["2026-01-01", "2026-01-01T00:00:00", "yesterday", "0", "2026-02-30T00:00:00Z"]
        for text in [*wrong, "0001-01-01T00:00:00+01:00", "2026-W01-1T00:00:00Z", ""]:
            assert api.get(path.format(**places), {name: text}).status_code == 400, text
        for text in ("2026-01-01T00:00:00Z", "2026-01-01t00:00:00.123456789+05:30"):
            assert api.get(path.format(**places), {name: text}).status_code == 200

    @pytest.mark.parametrize(("path", "name"), list(each_parameter(3)))
    def test_with_a_wrong_flag_is_refused(
        self, api: APIClient, places: dict[str, str], path: str, name: str
    ) -> None:
        for text in ("1", "True", "yes", "", "null"):
            assert api.get(path.format(**places), {name: text}).status_code == 400

    @pytest.mark.parametrize("name", TEXTS)
    def test_with_u0000_finds_nothing(self, api: APIClient, session: Session, name: str) -> None:
        """Report DATA-01."""
        for query in (f"{name}=%00", f"{name}=a%00b", f"{name}=%ed%a0%80", f"{name}=%ff"):
            answer = api.get("/sessions", query)
            assert (answer.status_code, answer.json()["data"]) == (200, [])

    @pytest.mark.parametrize(
        "query",
        [
            "status=active",
            "status=",
            "status=ACTIVE,",
            "status=ACTIVE&status=CLOSED",
            "run_status=ACTIVE",
            "order=title",
            "order=",
            "metadata.=1",
            f"q={'x' * 256}",
            "cursor=%00",
        ],
    )
    def test_of_sessions_with_a_wrong_choice_is_refused(self, api: APIClient, query: str) -> None:
        assert api.get("/sessions", query).status_code == 400

    @pytest.mark.parametrize("query", ["role=User", "order=ASC", "limit=1001", f"type={'x' * 256}"])
    def test_of_messages_with_a_wrong_choice_is_refused(
        self, api: APIClient, places: dict[str, str], query: str
    ) -> None:
        assert api.get(f"{places['session']}/messages", query).status_code == 400


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


class TestAMethodThatAPathDoesNotHave:
    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("PUT", "/sessions"),
            ("DELETE", "/sessions"),
            ("POST", "{session}"),
            ("PUT", "{session}/messages"),
            ("GET", "{session}/close"),
            ("DELETE", "{session}/working-memory"),
            ("PATCH", "{call}"),
            ("OPTIONS", "/sessions"),
            ("TRACE", "/sessions"),
        ],
    )
    def test_is_405(self, api: APIClient, places: dict[str, str], method: str, path: str) -> None:
        answer = api.send(method, path.format(**places))
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
        assert answer.headers["Allow"]
