"""A query that is not what it should be is refused: an ignored filter would answer with rows
that nobody asked for."""

from collections.abc import Iterator

import pytest

from tests.api_client import APIClient

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
    def test_with_u0000_finds_nothing(
        self, api: APIClient, places: dict[str, str], name: str
    ) -> None:
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
