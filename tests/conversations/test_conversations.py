"""The eight calls, and the list, by the official client."""

import asyncio
from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

HELLO = {"type": "message", "role": "user", "content": "Hello"}


def said(*texts: str) -> list[dict[str, str]]:
    return [{"type": "message", "role": "user", "content": text} for text in texts]


def texts_of(items: Any) -> list[str]:
    return [item.content[0].text for item in items]


class TestAConversation:
    def test_is_created_empty(self, client: Any) -> None:
        made = client.conversations.create()
        assert made.id.startswith("conv_")
        assert made.to_dict().keys() == {"id", "object", "created_at", "metadata"}
        assert made.metadata == {}
        assert client.conversations.items.list(made.id).data == []

    def test_is_created_with_items_and_metadata(self, client: Any) -> None:
        made = client.conversations.create(items=said("a", "b"), metadata={"k": "v"})
        assert client.conversations.retrieve(made.id) == made
        assert made.metadata == {"k": "v"}
        assert texts_of(client.conversations.items.list(made.id, order="asc").data) == ["a", "b"]

    def test_gets_other_metadata_in_place_of_what_it_had(self, client: Any) -> None:
        made = client.conversations.create(metadata={"a": "1", "b": "2"})
        changed = client.conversations.update(made.id, metadata={"c": "3"})
        assert changed.metadata == {"c": "3"}
        assert client.conversations.update(made.id, metadata=None).metadata == {}

    def test_is_deleted_for_good(self, client: Any, conversation: str) -> None:
        gone = client.conversations.delete(conversation)
        assert (gone.id, gone.object, gone.deleted) == (conversation, "conversation.deleted", True)
        with pytest.raises(openai.NotFoundError):
            client.conversations.retrieve(conversation)
        with pytest.raises(openai.NotFoundError):
            client.conversations.items.create(conversation, items=[HELLO])

    def test_is_known_by_its_sessions_id_too(self, client: Any, conversation: str) -> None:
        session_id = conversation.replace("conv_", "sess_")
        assert client.conversations.retrieve(session_id).id == conversation


class TestAnItem:
    def test_comes_back_complete(self, client: Any, conversation: str) -> None:
        (made,) = client.conversations.items.create(
            conversation, items=[{"role": "user", "content": "Hello"}]
        ).data
        assert made.to_dict() == {
            "id": made.id,
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": [{"type": "input_text", "text": "Hello"}],
        }
        assert client.conversations.items.retrieve(made.id, conversation_id=conversation) == made

    def test_of_an_assistant_says_output(self, client: Any, conversation: str) -> None:
        (made,) = client.conversations.items.create(
            conversation, items=[{"role": "assistant", "content": "Hi"}]
        ).data
        part = {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}
        assert made.to_dict()["content"] == [part]

    def test_keeps_an_id_that_begins_as_its_type_does(self, client: Any, conversation: str) -> None:
        items = [
            {"type": "message", "role": "user", "content": "x", "id": "msg_mine"},
            {"type": "reasoning", "summary": [], "id": "rs_mine"},
        ]
        made = client.conversations.items.create(conversation, items=items)
        assert [item.id for item in made.data] == ["msg_mine", "rs_mine"]
        found = client.conversations.items.retrieve("rs_mine", conversation_id=conversation)
        assert found.type == "reasoning"

    @pytest.mark.parametrize(
        ("item", "prefix"),
        [
            ({"type": "message", "role": "user", "content": "x", "id": "item_1"}, "msg"),
            (
                {
                    "type": "function_call",
                    "call_id": "c",
                    "name": "f",
                    "arguments": "{}",
                    "id": "msg_1",
                },
                "fc",
            ),
        ],
    )
    def test_with_an_id_of_another_type_is_refused(
        self, client: Any, conversation: str, item: Any, prefix: str
    ) -> None:
        with pytest.raises(openai.BadRequestError) as refused:
            client.conversations.items.create(conversation, items=[item])
        assert refused.value.body == {
            "message": f"Invalid 'items[0].id': '{item['id']}'. "
            f"Expected an ID that begins with '{prefix}'.",
            "type": "invalid_request_error",
            "param": "items[0].id",
            "code": "invalid_value",
        }
        assert client.conversations.items.list(conversation).data == []

    def test_with_an_id_that_the_conversation_has_is_refused(
        self, client: Any, conversation: str
    ) -> None:
        item = {**HELLO, "id": "msg_1"}
        client.conversations.items.create(conversation, items=[item])
        for items in ([item], [{**HELLO, "id": "msg_2"}, {**HELLO, "id": "msg_2"}]):
            with pytest.raises(openai.BadRequestError) as refused:
                client.conversations.items.create(conversation, items=items)
            error = refused.value
            assert error.code == "item_already_in_conversation"
            assert (error.param, error.type) == ("items", "invalid_request_error")
        assert len(client.conversations.items.list(conversation).data) == 1

    def test_with_an_id_that_we_gave_is_refused_where_it_is(
        self, client: Any, conversation: str
    ) -> None:
        (made,) = client.conversations.items.create(conversation, items=[HELLO]).data
        with pytest.raises(openai.BadRequestError) as refused:
            client.conversations.items.create(conversation, items=[made.to_dict()])
        assert refused.value.code == "item_already_in_conversation"
        other = client.conversations.create(items=[made.to_dict()]).id
        assert client.conversations.items.list(other).data == [made]
        assert client.conversations.items.retrieve(made.id, conversation_id=other) == made

    def test_may_come_again_after_it_was_deleted(self, client: Any, conversation: str) -> None:
        item = {**HELLO, "id": "msg_1"}
        client.conversations.items.create(conversation, items=[item])
        client.conversations.items.delete("msg_1", conversation_id=conversation)
        client.conversations.items.create(conversation, items=[{**item, "content": "again"}])
        found = client.conversations.items.retrieve("msg_1", conversation_id=conversation)
        assert texts_of([found]) == ["again"]

    def test_of_another_conversation_is_one_of_its_own_here(
        self, client: Any, conversation: str
    ) -> None:
        other = client.conversations.create(items=[{**HELLO, "id": "msg_1"}]).id
        item = {**HELLO, "id": "msg_1", "content": "mine"}
        client.conversations.items.create(conversation, items=[item])
        assert texts_of(client.conversations.items.list(conversation).data) == ["mine"]
        assert texts_of(client.conversations.items.list(other).data) == ["Hello"]

    def test_is_deleted_and_its_conversation_answered(self, client: Any, conversation: str) -> None:
        made = client.conversations.items.create(conversation, items=said("a", "b", "c"))
        answer = client.conversations.items.delete(made.data[1].id, conversation_id=conversation)
        assert answer == client.conversations.retrieve(conversation)
        left = client.conversations.items.list(conversation, order="asc").data
        assert texts_of(left) == ["a", "c"]
        for gone in (made.data[1].id, "msg_00000000000000000000000000", "nothing"):
            with pytest.raises(openai.NotFoundError) as refused:
                client.conversations.items.retrieve(gone, conversation_id=conversation)
            assert refused.value.message.endswith(f"No item found with id '{gone}'")

    def test_of_thoughts_without_a_name_or_a_key_is_refused(
        self, client: Any, conversation: str
    ) -> None:
        items = [HELLO, {"type": "reasoning", "summary": []}]
        with pytest.raises(openai.BadRequestError) as refused:
            client.conversations.items.create(conversation, items=items)
        assert (refused.value.code, refused.value.param) == ("invalid_item", "items[1]")
        assert client.conversations.items.list(conversation).data == []


class TestAListOfItems:
    def test_begins_with_the_newest(self, client: Any, conversation: str) -> None:
        client.conversations.items.create(conversation, items=said("a", "b", "c"))
        page = client.conversations.items.list(conversation, limit=2)
        assert texts_of(page.data) == ["c", "b"]
        assert page.to_dict().keys() == {"object", "data", "first_id", "last_id", "has_more"}
        assert page.has_more
        assert (page.data[0].id, page.last_id) == (page.to_dict()["first_id"], page.data[1].id)

    @pytest.mark.parametrize("order", ["asc", "desc"])
    def test_is_read_in_pages_to_its_end(self, client: Any, conversation: str, order: Any) -> None:
        texts = [f"{number}" for number in range(250)]
        client.conversations.items.create(conversation, items=said(*texts))
        expected = texts if order == "asc" else texts[::-1]
        for limit in (1000, 100, 7):
            read = client.conversations.items.list(conversation, order=order, limit=limit)
            assert texts_of(read) == expected

    def test_holds_a_hundred_unless_told(self, client: Any, conversation: str) -> None:
        client.conversations.items.create(conversation, items=said(*["x"] * 101))
        assert len(client.conversations.items.list(conversation).data) == 100
        assert len(client.conversations.items.list(conversation, limit=0).data) == 1

    def test_of_nothing_has_no_ends(self, client: Any, conversation: str) -> None:
        page = client.conversations.items.list(conversation).to_dict()
        assert page == {
            "object": "list",
            "data": [],
            "first_id": None,
            "last_id": None,
            "has_more": False,
        }

    def test_behind_an_item_that_is_not_there_is_not_found(
        self, client: Any, conversation: str
    ) -> None:
        made = client.conversations.items.create(conversation, items=said("a", "b"))
        gone = made.data[0].id
        client.conversations.items.delete(gone, conversation_id=conversation)
        with pytest.raises(openai.NotFoundError) as refused:
            client.conversations.items.list(conversation, after=gone)
        assert refused.value.body == {
            "message": f"No item found with id '{gone}'",
            "type": "invalid_request_error",
            "param": "after",
            "code": None,
        }

    def test_takes_what_is_to_be_included(self, client: Any, conversation: str) -> None:
        include = ["message.output_text.logprobs", "reasoning.encrypted_content"]
        made = client.conversations.items.create(conversation, items=[HELLO], include=include)
        assert client.conversations.items.list(conversation, include=include).data == made.data
        with pytest.raises(openai.BadRequestError) as refused:
            client.conversations.items.list(conversation, include=["nonsense"])
        assert refused.value.param == "include[]"


class TestAListOfConversations:
    def test_is_read_in_pages(self, client: Any) -> None:
        made = [client.conversations.create().id for _ in range(5)]
        for order, expected in (("desc", made[::-1]), ("asc", made)):
            found: list[str] = []
            after: dict[str, str] = {"after": made[0] if order == "asc" else made[-1]}
            for _ in range(4):
                query = {"limit": "1", "order": order, **after}
                page = client.get("/conversations", cast_to=object, options={"params": query})
                found += [each["id"] for each in page["data"]]
                after = {"after": page["last_id"]}
            assert found == expected[1:]

    def test_behind_one_that_is_not_there_is_not_found(self, client: Any) -> None:
        with pytest.raises(openai.NotFoundError) as refused:
            client.get(
                "/conversations", cast_to=object, options={"params": {"after": "conv_nothing"}}
            )
        assert refused.value.param == "after"


class TestTheAsynchronousClient:
    def test_makes_the_same_calls(self, connect: Callable[..., AsyncOpenAI]) -> None:
        async def work() -> None:
            async with connect() as client:
                conversations = client.conversations
                made = await conversations.create(metadata={"k": "v"})
                assert await conversations.retrieve(made.id) == made
                assert (await conversations.update(made.id, metadata=None)).metadata == {}
                messages: Any = said(*[f"{number}" for number in range(150)])
                added = await conversations.items.create(made.id, items=messages)
                listed = [item async for item in conversations.items.list(made.id, order="asc")]
                assert listed == added.data
                first = str(added.data[0].id)
                found = await conversations.items.retrieve(first, conversation_id=made.id)
                assert found == listed[0]
                await conversations.items.delete(first, conversation_id=made.id)
                assert (await conversations.delete(made.id)).deleted
                with pytest.raises(openai.NotFoundError):
                    await conversations.retrieve(made.id)

        asyncio.run(work())
