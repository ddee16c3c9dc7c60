"""Random conversations of all forms, mixed: every API takes them, each result at its call."""

from collections import deque
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.services.formats import conversation
from tests.providers import PROVIDERS, answered, check, synthetic
from tests.sessions_app.formats.messages import (
    block_call,
    block_result,
    item,
    item_call,
    item_result,
    stored,
)

TEXTS = ("Hello", "", " \n", "Ünï 漢字", "x ")
ROLES = ("system", "developer", "user", "assistant")
# Ids that are used again, that not every API takes, and that are longer than some do.
IDS = ("a", "search:1", "", "x" * 70, "functions.ls/0")
PARTS: tuple[dict[str, Any], ...] = (
    {"type": "text", "text": "Hello"},
    {"type": "text", "text": ""},
    {"type": "output_text", "text": "Hello", "annotations": []},
    {"type": "refusal", "refusal": "No."},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": None}},
    {"type": "input_image", "image_url": "https://pictures.example/a.png", "detail": "low"},
    {"type": "input_image", "file_id": "file_1"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "aGk="}},
    {"type": "document", "source": {"type": "url", "url": "https://papers.example/a.pdf"}},
    {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
    {"type": "thinking", "thinking": "Hm.", "signature": "s"},
    {"type": "thinking", "thinking": "Hm."},
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
    {"type": "custom_part", "list": [None]},
    {"type": "image"},
    {"type": "file", "file": None},
)
ITEMS = (
    item("message", role="assistant", content=[{"type": "output_text", "text": "Hello"}]),
    item("message", role="developer", content="Rules."),
    item("message", content=None),
    item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "Hm."}]),
    item("reasoning", summary=[]),
    item("web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "q"}),
    item("web_search_call"),
    item("item_of_tomorrow", text="?"),
)

numbers = st.integers(0, 19)
content = st.one_of(
    st.sampled_from([None, *TEXTS]), st.lists(st.sampled_from(PARTS), max_size=3).map(list)
)
said = st.builds(
    lambda role, text: {"role": role, "content": text}, st.sampled_from(ROLES), content
)
calls = st.tuples(
    st.just("call"),
    st.lists(
        st.tuples(st.sampled_from(["chat", "block"]), st.sampled_from(IDS)), min_size=1, max_size=3
    ),
    content,
)
results = st.tuples(
    st.just("result"),
    st.sampled_from(["chat", "block", "item"]),
    st.sampled_from(IDS),
    st.booleans(),
)
item_calls = st.tuples(st.just("item"), st.sampled_from(IDS))
steps = st.lists(
    st.one_of(said, said, calls, results, results, item_calls, st.sampled_from(ITEMS)), max_size=14
)


class Played:
    """Messages that play steps, and which call has which result by the rule of the lifecycle page,
    said as simply as it can be."""

    def __init__(self, played: list[Any]) -> None:
        self.messages: list[dict[str, Any]] = []
        self.result_of: dict[str, str | None] = {}  # by the call's arguments
        self._open: list[deque[tuple[str, str]]] = []  # of each message, newest last
        for step in played:
            if isinstance(step, dict):
                self.messages.append(step)
            else:
                getattr(self, f"_{step[0]}")(*step[1:])

    def _call(self, made: list[tuple[str, str]], text: Any) -> None:
        # An id that stands in both forms is one call that is said twice.
        chat = {name for form, name in made if form == "chat"}
        made = [(form, name) for form, name in made if form == "chat" or name not in chat]
        parts = text if isinstance(text, list) else [{"type": "text", "text": text or ""}]
        message: dict[str, Any] = {"role": "assistant", "content": list(parts), "tool_calls": []}
        # In the order in which they are answered.
        opened: deque[tuple[str, str]] = deque()
        for form, name in sorted(made, key=lambda each: each[0], reverse=True):
            token = self._announce(opened, name)
            if form == "chat":
                function = {"name": "ls", "arguments": f'{{"n": "{token}"}}'}
                made_call = {"id": name, "type": "function", "function": function}
                message["tool_calls"].append(made_call)
            else:
                message["content"].append(block_call(name, arguments={"n": token}))
        self.messages.append(message)
        self._open.append(opened)

    def _item(self, id: str) -> None:
        opened: deque[tuple[str, str]] = deque()
        token = self._announce(opened, id)
        self.messages.append(item_call(id, arguments=f'{{"n": "{token}"}}'))
        self._open.append(opened)

    def _announce(self, opened: deque[tuple[str, str]], id: str) -> str:
        token = f"call {len(self.result_of)}"
        self.result_of[token] = None
        opened.append((id, token))
        return token

    def _result(self, form: str, id: str, is_error: bool) -> None:
        text = f"result {len(self.messages)}"
        for opened in reversed(self._open):
            if waiting := next((each for each in opened if each[0] == id), None):
                opened.remove(waiting)
                self.result_of[waiting[1]] = text
                break
        if form == "item":
            self.messages.append(item_result(id, text))
        elif form == "block":
            block = block_result(id, text, is_error=is_error)
            self.messages.append({"role": "user", "content": [block]})
        else:
            self.messages.append(
                {"role": "tool", "tool_call_id": id, "content": text, "is_error": is_error}
            )


class TestAConversation:
    @settings(max_examples=100, deadline=None)
    @given(played=steps)
    def test_is_taken_by_every_api_and_has_each_result_at_its_call(self, played: list[Any]) -> None:
        transcript = Played(played)
        given = stored(*transcript.messages)
        for api in PROVIDERS:
            found = conversation(given, format=api)
            check(api, found.messages, found.system)
            assert self.pairs(api, found.messages) == transcript.result_of
            plain = conversation(given, format=api, mark_synthetic=False)
            assert synthetic(plain.messages) == []
        assert given == stored(*transcript.messages)

    def pairs(self, format: str, messages: list[dict[str, Any]]) -> dict[str, str | None]:
        found = {}
        for arguments, result, marked in answered(format, messages):
            said = arguments["n"] if isinstance(arguments, dict) else arguments.split('"')[3]
            assert marked == result.startswith("No result was recorded")
            found[said] = None if marked else result
        return found
