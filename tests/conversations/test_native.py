"""One session by two doors: what came by one is there by the other."""

from collections.abc import Callable
from typing import Any

import openai
import pytest

Native = Callable[..., Any]

CALL = {"type": "function_call", "call_id": "call_1", "name": "ls", "arguments": '{"path": "."}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "a.txt"}


def items(client: Any, conversation: str) -> list[Any]:
    """Without their ids, after a look at what follows from these."""
    path = f"/conversations/{conversation}/items"
    found: Any = client.get(path, cast_to=object, options={"params": {"order": "asc"}})["data"]
    for item in found:
        one = client.get(f"{path}/{item['id']}", cast_to=object)
        assert one == item
    for number, item in enumerate(found):
        query = {"params": {"order": "asc", "after": item["id"]}}
        assert client.get(path, cast_to=object, options=query)["data"] == found[number + 1 :]
        query = {"params": {"order": "desc", "after": item["id"], "limit": "1"}}
        page: Any = client.get(path, cast_to=object, options=query)
        assert page["data"] == found[max(0, number - 1) : number]
        assert page["has_more"] is (number > 1)
    return [{key: value for key, value in item.items() if key != "id"} for item in found]


def message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": role, "status": "completed", "content": list(parts)}


def said(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def spoken(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def called(id: str, name: str = "ls", arguments: str = "{}") -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


def chat_call(id: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "ls", "arguments": "{}"}}


class TestAMessage:
    def test_with_an_id_that_the_conversation_has_is_an_item_of_its_own(
        self, client: Any, native: Native, conversation: str
    ) -> None:
        same = {"role": "user", "id": "msg_same"}
        client.conversations.items.create(conversation, items=[{**same, "content": "0"}])
        native("POST", conversation, "/messages", {**same, "content": "1"})
        batch = [{**same, "id": "msg_other", "content": text} for text in "23"]
        native("POST", conversation, "/messages", {"messages": batch})
        minted = client.conversations.items.list(conversation, limit=1).data[0].id
        native("POST", conversation, "/messages", {**same, "id": minted, "content": "4"})
        said_so = [message("user", said(text)) for text in "01234"]
        assert items(client, conversation) == said_so
        kept = native("GET", conversation, "/messages")["data"]
        assert [each["id"] for each in kept] == [
            *["msg_same"] * 2,
            *["msg_other"] * 2,
            minted,
        ]


class TestAnItem:
    def test_is_a_message_with_its_words(
        self, client: Any, native: Native, conversation: str
    ) -> None:
        client.conversations.items.create(
            conversation,
            items=[
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": [spoken("Hi")], "phase": "final_answer"},
            ],
        )
        found = native("GET", conversation, "/messages")["data"]
        assert [(each["role"], each["content"]) for each in found] == [
            ("user", "Hello"),
            ("assistant", [spoken("Hi")]),
        ]
        assert found[1]["phase"] == "final_answer"
        context = native("GET", conversation, "/context?format=openai_chat")
        assert [each["content"] for each in context["messages"]] == ["Hello", "Hi"]
        assert native("GET", conversation)["title"] == "Hello"

    def test_that_calls_a_function_is_a_tool_call(
        self, client: Any, native: Native, conversation: str
    ) -> None:
        client.conversations.items.create(conversation, items=[CALL])
        (call,) = native("GET", conversation, "/tool-calls")["data"]
        assert (call["name"], call["status"]) == ("ls", "PENDING")
        client.conversations.items.create(conversation, items=[OUTPUT])
        (call,) = native("GET", conversation, "/tool-calls")["data"]
        assert (call["status"], call["result"]) == ("SUCCEEDED", "a.txt")

    def test_that_says_what_it_cost_is_counted(
        self, client: Any, native: Native, conversation: str
    ) -> None:
        usage = {"input_tokens": 7, "output_tokens": 9, "reasoning_tokens": 2, "total_tokens": 16}
        picture = {
            "type": "image_generation_call",
            "id": "ig_1",
            "status": "completed",
            "result": "PHN2Zz4=",
            "svg_usage": {**usage, "model": "m"},
        }
        strange = {"type": "new", "usage": {"input_tokens": "many"}}
        made = client.conversations.items.create(conversation, items=[picture, strange])
        assert made.data[0].to_dict() == picture
        counted = native("GET", conversation)["usage"]
        assert (counted["input_tokens"], counted["output_tokens"]) == (7, 9)
        assert counted["reasoning_tokens"] == 2

    def test_that_answers_no_call_is_refused(
        self, client: Any, native: Native, conversation: str
    ) -> None:
        with pytest.raises(openai.UnprocessableEntityError) as refused:
            client.conversations.items.create(conversation, items=[OUTPUT])
        assert refused.value.code == "orphan_tool_result"
        assert refused.value.param == "items[0].call_id"
        assert native("GET", conversation)["message_count"] == 0

    def test_with_a_result_stays_until_that_is_deleted(
        self, client: Any, native: Native, conversation: str
    ) -> None:
        made = client.conversations.items.create(conversation, items=[CALL, OUTPUT]).data
        with pytest.raises(openai.ConflictError) as refused:
            client.conversations.items.delete(made[0].id, conversation_id=conversation)
        assert refused.value.code == "has_result"
        for item in made[::-1]:
            client.conversations.items.delete(item.id, conversation_id=conversation)
        assert native("GET", conversation)["tool_call_count"] == 0


class TestANativeMessage:
    @pytest.mark.parametrize(
        ("messages", "expected"),
        [
            ([{"role": "user", "content": "Hello"}], [message("user", said("Hello"))]),
            ([{"role": "assistant", "content": "Hi"}], [message("assistant", spoken("Hi"))]),
            (
                [{"role": "user", "content": [{"type": "text", "text": "See"}]}],
                [message("user", said("See"))],
            ),
            (
                [
                    {
                        "role": "user",
                        "content": [
                            {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}
                        ],
                    }
                ],
                [
                    message(
                        "user",
                        {
                            "type": "input_image",
                            "detail": "auto",
                            "image_url": "https://a.example/b.png",
                        },
                    )
                ],
            ),
            (
                [
                    {
                        "role": "assistant",
                        "content": "Looking",
                        "tool_calls": [chat_call("c1"), chat_call("c2")],
                    },
                    {"role": "tool", "tool_call_id": "c1", "content": "one"},
                    {"role": "tool", "tool_call_id": "c2", "content": "two"},
                ],
                [
                    message("assistant", spoken("Looking")),
                    called("c1"),
                    called("c2"),
                    {**OUTPUT, "call_id": "c1", "output": "one", "status": "completed"},
                    {**OUTPUT, "call_id": "c2", "output": "two", "status": "completed"},
                ],
            ),
            (
                [
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "thinking", "thinking": "Hm", "signature": "s"},
                            {"type": "tool_use", "id": "c1", "name": "ls", "input": {}},
                        ],
                    },
                    {
                        "role": "user",
                        "content": [
                            {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                            {"type": "text", "text": "Well?"},
                        ],
                    },
                ],
                [
                    called("c1"),
                    {**OUTPUT, "call_id": "c1", "output": "one", "status": "completed"},
                    message("user", said("Well?")),
                ],
            ),
            (
                [{"item": {"type": "reasoning", "id": "rs_9", "summary": []}}],
                [{"type": "reasoning", "summary": []}],
            ),
            ([{"role": "assistant", "content": None}], [message("assistant")]),
            ([{"role": "user", "content": None}], [message("user")]),
            (
                [{"role": "user", "content": "x", "name": "Ann", "metadata": {"k": 1}}],
                [message("user", said("x"))],
            ),
        ],
    )
    def test_is_proper_items(
        self, client: Any, native: Native, conversation: str, messages: Any, expected: Any
    ) -> None:
        native("POST", conversation, "/messages", {"messages": messages})
        assert items(client, conversation) == expected

    def test_that_is_an_item_is_found_by_its_id(
        self, client: Any, native: Native, conversation: str
    ) -> None:
        item = {"type": "reasoning", "id": "rs_9", "summary": []}
        native("POST", conversation, "/messages", {"item": item})
        found = client.conversations.items.retrieve("rs_9", conversation_id=conversation)
        assert found.to_dict() == item

    def test_whose_id_another_came_with_gets_one_of_its_own(
        self, client: Any, native: Native, conversation: str
    ) -> None:
        for text in ("a", "b", "c"):
            body = {"role": "user", "content": text, "id": "msg_1"}
            native("POST", conversation, "/messages", body)
        assert items(client, conversation) == [message("user", said(text)) for text in "abc"]
        first = client.conversations.items.retrieve("msg_1", conversation_id=conversation)
        assert first.content[0].text == "a"

    def test_whose_id_is_no_step_of_a_path_gets_one_that_is(
        self, client: Any, native: Native, conversation: str
    ) -> None:
        item = {"type": "reasoning", "id": "rs_a/b", "summary": []}
        native("POST", conversation, "/messages", {"item": item})
        assert items(client, conversation) == [{"type": "reasoning", "summary": []}]

    def test_that_is_an_item_is_found_by_its_id_in_a_fork_too(
        self, client: Any, native: Native, conversation: str
    ) -> None:
        item = {"type": "reasoning", "id": "rs_9", "summary": []}
        hello = {"role": "user", "content": "Hello"}
        made = client.conversations.items.create(conversation, items=[item, hello]).data
        fork = native("POST", conversation, "/fork", {})["session_id"].replace("sess_", "conv_")
        found = client.conversations.items.retrieve("rs_9", conversation_id=fork)
        assert found.to_dict() == item
        newest = client.conversations.items.list(fork).data[0]
        assert newest.content == made[1].content
        assert newest.id != made[1].id

    def test_that_was_taken_back_is_no_item(
        self, client: Any, native: Native, conversation: str
    ) -> None:
        for text in ("a", "b", "c"):
            native("POST", conversation, "/messages", {"role": "user", "content": text})
        native("POST", conversation, "/rewind", {"to_sequence": 2})
        native("DELETE", conversation, "/messages/1")
        assert items(client, conversation) == [message("user", said("b"))]

    def test_that_sums_up_what_was_said_is_said_by_the_user(
        self, client: Any, native: Native, conversation: str
    ) -> None:
        native("POST", conversation, "/messages", {"role": "user", "content": "a"})
        native("POST", conversation, "/compact", {"through_sequence": 1, "summary": "It began."})
        summary = items(client, conversation)[1]
        assert summary["role"] == "user"
        assert summary["content"][0]["text"].endswith("It began.")


class TestASessionThatEnded:
    @pytest.mark.parametrize(
        ("end", "code"), [("close", "session_closed"), ("expire", "session_expired")]
    )
    def test_is_read_and_not_written(
        self, client: Any, native: Native, conversation: str, end: str, code: str
    ) -> None:
        made = client.conversations.items.create(
            conversation, items=[{"role": "user", "content": "a"}]
        ).data[0]
        native("POST", conversation, f"/{end}", {})
        assert len(client.conversations.items.list(conversation).data) == 1
        for attempt in (
            lambda: client.conversations.items.create(conversation, items=[CALL]),
            lambda: client.conversations.items.delete(made.id, conversation_id=conversation),
            lambda: client.conversations.update(conversation, metadata={}),
        ):
            with pytest.raises(openai.ConflictError) as refused:
                attempt()
            assert refused.value.code == code
            assert refused.value.response.headers["x-should-retry"] == "false"
