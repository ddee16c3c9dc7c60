"""What was sent comes back as it was sent: every shape, every value, on both databases."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from sessions_app.models import Message, Session
from tests.api_client import APIClient
from tests.factories import make_session

ANY = {"type": "text", "text": "x"}
CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"a": 1}'}}
PARALLEL = [CALL, {**CALL, "id": "c2"}]

# Report DATA-07: refused, dropped, or drawn wrong elsewhere.
SHAPES: dict[str, Any] = {
    "text": {"role": "user", "content": "Hello"},
    "empty text": {"role": "assistant", "content": ""},
    "no parts": {"role": "assistant", "content": []},
    "no content key": {"role": "assistant", "tool_calls": [CALL]},
    "only calls": {"role": "assistant", "content": None, "tool_calls": [CALL]},
    "empty text and calls": {"role": "assistant", "content": "", "tool_calls": PARALLEL},
    "text and calls": {"role": "assistant", "content": "Let me look", "tool_calls": [CALL]},
    "arguments that are no JSON": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**CALL, "function": {"name": "ls", "arguments": '{"a": '}}],
    },
    "null calls": {"role": "assistant", "content": "x", "tool_calls": None},
    "parts": {
        "role": "user",
        "content": [ANY, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}],
    },
    "unknown parts": {"role": "user", "content": [{"type": "hologram", "data": [None, {"b": []}]}]},
    "refusal and reasoning": {
        "role": "assistant",
        "content": None,
        "refusal": "No.",
        "reasoning_content": "Hm",
        "annotations": [],
        "audio": None,
    },
    "Anthropic blocks": {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm", "signature": "s=="},
            {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {"b": 1, "a": 2}},
        ],
    },
    "Responses item": {
        "item": {"type": "function_call", "call_id": "fc", "name": "ls", "arguments": "{}"}
    },
    "Responses reasoning": {"role": None, "item": {"type": "reasoning", "summary": [], "id": "r"}},
    "Gemini parts": {
        "role": "assistant",
        "content": [{"type": "functionCall", "functionCall": {"name": "ls", "args": {"n": 1}}}],
    },
    "everything that has a meaning": {
        "name": "n",
        "role": "user",
        "metadata": {"z": 1, "a": None},
        "content": " spaces ",
        "status": "incomplete",
        "client_message_id": "m",
        "model": "gpt",
        "usage": {"input_tokens": 1, "prompt_tokens_details": {"b": 1, "a": 2}},
        "is_error": False,
    },
}

RESULTS: dict[str, Any] = {
    "text": {"content": "done"},
    "empty text": {"content": ""},
    "null": {"content": None},
    "parts": {"content": [ANY, ANY]},
    "error": {"content": "boom", "is_error": True},
}


@pytest.fixture
def path(agent: User) -> str:
    session: Session = make_session(account=agent)
    return f"/sessions/{session.session_id}/messages"


def text_of(message: Any, keys: Any) -> str:
    """The sent keys as text: their order counts, and 1 is not 1.0."""
    return json.dumps({key: message[key] for key in message if key in keys}, ensure_ascii=False)


class TestAMessage:
    @pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
    def test_comes_back_in_its_shape(self, api: APIClient, path: str, shape: Any) -> None:
        answer = api.post(path, shape)
        assert answer.status_code == 201, answer.json()
        (posted,) = answer.json()["messages"]
        (listed,) = api.get(path).json()["data"]
        assert posted == listed == api.get(f"{path}/1").json()
        assert text_of(listed, shape) == json.dumps(shape, ensure_ascii=False)
        fixed = {"object", "message_id", "session_id", "sequence", "type", "role", "status"}
        fixed |= {"content", "run_id", "session_version", "created_at"}
        assert set(listed) == fixed | set(shape)

    @pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
    def test_with_a_result_comes_back_too(self, api: APIClient, path: str, result: Any) -> None:
        api.post(path, SHAPES["only calls"])
        given = {"role": "tool", "tool_call_id": "c1", **result}
        (message,) = api.post(path, given).json()["messages"]
        assert text_of(message, given) == json.dumps(given)
        call = api.get(path.replace("messages", "tool-calls")).json()["data"][0]
        assert call["result"] == result["content"]
        assert call["status"] == ("FAILED" if result.get("is_error") else "SUCCEEDED")

    def test_can_be_sent_back_as_it_was_read(self, api: APIClient, path: str, agent: User) -> None:
        (first,) = api.post(path, SHAPES["text and calls"]).json()["messages"]
        other = f"/sessions/{make_session(account=agent).session_id}/messages"
        (copy,) = api.post(other, first).json()["messages"]
        differing = {key for key in first if copy.get(key) != first[key]}
        assert differing == {"message_id", "session_id", "created_at"}

    def test_keeps_the_clients_time_apart(self, api: APIClient, path: str) -> None:
        given = {"role": "user", "content": "x", "created_at": "2020-01-01T05:30:00+05:30"}
        (message,) = api.post(path, given).json()["messages"]
        assert message["client_created_at"] == "2020-01-01T00:00:00.000000Z"
        assert message["created_at"] > "2026"

    def test_of_the_same_id_twice_is_two_calls(self, api: APIClient, path: str) -> None:
        """Report PAIR-06: providers use an id again, even in one message."""
        twice = {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]}
        results = [{"role": "tool", "tool_call_id": "c1", "content": text} for text in "ab"]
        api.post(path, {"messages": [twice, *results, SHAPES["only calls"], results[0]]})
        calls = api.get(path.replace("messages", "tool-calls")).json()["data"][::-1]
        links = [(each["message_sequence"], each["result_sequence"]) for each in calls]
        assert links == [(1, 2), (1, 3), (4, 5)]


# Report DATA-04: digits, and the words for floats, on both databases.
VALUES: list[tuple[str, str]] = [
    ("9007199254740993", "9007199254740993"),
    ("9223372036854775808", "9223372036854775808"),
    ("-18446744073709551617", "-18446744073709551617"),
    ("1" + "0" * 30, "1" + "0" * 30),
    ("0.30000000000000004", "0.30000000000000004"),
    ("1.0", "1.0"),
    ("-0.0", "-0.0"),
    ("-0", "0"),
    ("1e2", "100.0"),
    ("1E400", ""),
    ("1e-400", "0.0"),
    ("null", "null"),
    ("[]", "[]"),
    ("{}", "{}"),
    ('""', '""'),
    ('{"b":1,"a":{"d":1,"c":2}}', '{"b":1,"a":{"d":1,"c":2}}'),
    ('"\\u0041\\u00e9"', '"Aé"'),
    ('"\\ud83d\\ude00"', '"😀"'),
    ('"\\u0000"', '"\ufffd"'),
    ('{"\\u0000":1}', '{"\ufffd":1}'),
    ('"\\\\u0000"', '"\\\\u0000"'),
    ('"\u2028 \u00a0 \ufeff \u202e"', '"\u2028 \u00a0 \ufeff \u202e"'),
]

# Where client JSON goes in, as what, and where it comes out again.
PLACES: dict[str, tuple[str, str, str, str]] = {
    "content": (
        "POST",
        "/messages",
        '{"role":"user","content":[{"type":"t","v":@}]}',
        "/messages",
    ),
    "own key": ("POST", "/messages", '{"role":"user","own":{"v":@}}', "/messages/1"),
    "metadata of a message": (
        "POST",
        "/messages",
        '{"role":"user","metadata":{"v":@}}',
        "/messages/1",
    ),
    "metadata": ("PATCH", "", '{"metadata":{"x":{"v":@}}}', ""),
    "memory": (
        "PUT",
        "/working-memory",
        '{"extra":{"v":@}}',
        "/working-memory/revisions/1",
    ),
    "arguments": ("POST", "/tool-calls", '{"name":"ls","arguments":{"v":@}}', "/tool-calls"),
    "result": ("POST", "finish", '{"status":"SUCCEEDED","result":{"v":@}}', "/tool-calls"),
}


def exchanged(api: APIClient, agent: User, place: str, value: str) -> tuple[Any, Any]:
    """Send the value as text to its place; the answer of the write, and of a read after it."""
    session = f"/sessions/{make_session(account=agent).session_id}"
    method, path, body, seen = PLACES[place]
    if path == "finish":
        call = api.post(f"{session}/tool-calls", {"name": "ls"}).json()["id"]
        written = api.post(f"/tool-calls/{call}/finish", body.replace("@", value).encode())
    else:
        written = api.send(method, session + path, body.replace("@", value).encode())
    return written, api.get(session + seen)


class TestAValue:
    @pytest.mark.parametrize("place", PLACES)
    @pytest.mark.parametrize(("sent", "kept"), VALUES, ids=[sent[:30] for sent, _ in VALUES])
    def test_survives(self, api: APIClient, agent: User, place: str, sent: str, kept: str) -> None:
        if place == "metadata" and sent == "null":
            pytest.skip("null deletes in a merge patch")
        written, read = exchanged(api, agent, place, sent)
        if not kept:
            assert (written.status_code, written.json()["code"]) == (400, "invalid_json")
            return
        expected = f'"v":{kept}}}'
        assert expected in written.content.decode()
        assert expected in read.content.decode()

    @pytest.mark.parametrize("place", PLACES)
    @pytest.mark.parametrize(
        "value",
        [
            "NaN",
            "-Infinity",
            "Infinity",
            "1e999",
            '"\\ud83d"',
            '"\\udc00\\ud800"',
            '{"a":1,"a":2}',
            '"\x01"',
            "01",
            "'a'",
            "[1,]",
            "\ufeff1",
        ],
    )
    def test_that_is_no_sound_json_is_refused(
        self, api: APIClient, agent: User, place: str, value: str
    ) -> None:
        """Reports DATA-02, DATA-03: stored once, it broke every later read."""
        written, read = exchanged(api, agent, place, value)
        assert (written.status_code, written.json()["code"]) == (400, "invalid_json")
        assert read.status_code in (200, 404)
        assert not Message.objects.exists()
