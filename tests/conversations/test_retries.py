"""What the client sends again, because the answer was lost on its way: it is done once."""

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.conversations.losing import Proxy, losing_proxy
from tests.live_server import LiveServer

ITEMS: list[Any] = [
    {"role": "user", "content": "one"},
    {"type": "reasoning", "id": "rs_1", "summary": []},
]


@pytest.fixture
def proxy(live: LiveServer) -> Iterator[Proxy]:
    with losing_proxy(live.port) as made:
        yield made


@pytest.fixture
def unlucky(live: LiveServer, proxy: Proxy) -> Iterator[Any]:
    """A client whose next answer will be lost."""
    base_url = f"http://127.0.0.1:{proxy.port}/v1"
    with OpenAI(base_url=base_url, api_key=live.token) as made:
        proxy.lose = 1
        yield made


def count(client: Any, conversation: str) -> int:
    return len(client.conversations.items.list(conversation).data)


class TestItemsThatAreSentAgain:
    def test_are_stored_once(
        self, client: Any, unlucky: Any, proxy: Proxy, conversation: str
    ) -> None:
        made = unlucky.conversations.items.create(conversation, items=ITEMS)
        assert proxy.requests == 2
        stored = client.conversations.items.list(conversation, order="asc")
        assert made.data == stored.data
        assert len(made.data) == 2

    def test_are_stored_once_by_the_asynchronous_client(
        self, live: LiveServer, client: Any, proxy: Proxy, conversation: str
    ) -> None:
        proxy.lose = 2

        async def work() -> None:
            base_url = f"http://127.0.0.1:{proxy.port}/v1"
            async with AsyncOpenAI(base_url=base_url, api_key=live.token) as unlucky:
                await unlucky.conversations.items.create(conversation, items=ITEMS)

        asyncio.run(work())
        assert (proxy.requests, count(client, conversation)) == (3, 2)

    def test_by_another_hand_are_stored_twice(self, client: Any, conversation: str) -> None:
        for _ in range(2):
            client.conversations.items.create(conversation, items=ITEMS[:1])
        assert count(client, conversation) == 2

    def test_are_stored_if_they_never_came(self, client: Any, conversation: str) -> None:
        client.conversations.items.create(conversation, items=ITEMS[:1])
        repeated = {"x-stainless-retry-count": "1"}
        other: Any = [{"role": "user", "content": "two"}]
        client.conversations.items.create(conversation, items=other, extra_headers=repeated)
        assert count(client, conversation) == 2

    @pytest.mark.parametrize("sent", [ITEMS[:1] * 3, ITEMS[:1]])
    def test_are_stored_if_they_are_a_part_of_what_came_last(
        self, client: Any, conversation: str, sent: Any
    ) -> None:
        client.conversations.items.create(conversation, items=ITEMS[:1] * 2)
        repeated = {"x-stainless-retry-count": "1"}
        client.conversations.items.create(conversation, items=sent, extra_headers=repeated)
        assert count(client, conversation) == 2 + len(sent)

    def test_with_a_key_are_answered_alike(self, client: Any, conversation: str) -> None:
        client.conversations.items.create(conversation, items=ITEMS[:1])  # it gets a title
        key = {"Idempotency-Key": "alike"}
        first, again = (
            client.conversations.items.with_raw_response.create(
                conversation, items=ITEMS[:1], extra_headers=key
            )
            for _ in range(2)
        )
        assert (first.status_code, first.text) == (again.status_code, again.text)
        assert again.headers["Idempotency-Replayed"] == "true"

    def test_with_a_key_are_stored_once_whatever_came_between(
        self, client: Any, conversation: str
    ) -> None:
        key = {"Idempotency-Key": "mine"}
        made = [
            client.conversations.items.create(conversation, items=items, extra_headers=headers)
            for items, headers in (
                (ITEMS[:1], key),
                ([{"role": "user", "content": "between"}], {}),
                (ITEMS[:1], key),
            )
        ]
        assert made[0] == made[2]
        assert count(client, conversation) == 2
        with pytest.raises(openai.UnprocessableEntityError) as refused:
            client.conversations.items.create(conversation, items=ITEMS, extra_headers=key)
        assert refused.value.code == "idempotency_key_reused"

    def test_to_a_new_conversation_make_one_of_it_with_a_key(self, client: Any) -> None:
        key = {"Idempotency-Key": "a new one"}
        first, again = (
            client.conversations.create(items=ITEMS, extra_headers=key) for _ in range(2)
        )
        assert first == again
        assert count(client, first.id) == 2


class TestADeletionThatIsSentAgain:
    def test_of_a_conversation_is_answered(self, unlucky: Any, conversation: str) -> None:
        assert unlucky.conversations.delete(conversation).deleted

    def test_of_an_item_is_answered(self, client: Any, unlucky: Any, conversation: str) -> None:
        made = client.conversations.items.create(conversation, items=ITEMS)
        for item in made.data[::-1]:
            unlucky.conversations.items.delete(item.id, conversation_id=conversation)
        assert count(client, conversation) == 0

    def test_of_what_never_was_is_not_found(self, client: Any, conversation: str) -> None:
        repeated = {"x-stainless-retry-count": "1"}
        for gone in ("msg_nothing", "msg_00000000000000000000000000"):
            with pytest.raises(openai.NotFoundError):
                client.conversations.items.delete(
                    gone, conversation_id=conversation, extra_headers=repeated
                )
        with pytest.raises(openai.NotFoundError):
            client.conversations.delete("conv_nothing", extra_headers=repeated)
