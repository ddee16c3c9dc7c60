"""What was sent comes back equal, with what every item has and nothing else."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from sessions_app.services.items.ids import PREFIXES
from tests.conversations.generated import items, kinds, unknown_items

# Whose answers have a status, whether one was sent or not.
STATUS = {
    "message",
    "function_call",
    "function_call_output",
    "computer_call_output",
    "tool_search_call",
    "tool_search_output",
    "shell_call",
    "shell_call_output",
}
KINDS = sorted(kinds().keys() - {"item_reference"})
_REPLAYED: TypeAdapter[Any] = TypeAdapter(list[ResponseInputItemParam])

generated = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)


def stored(client: Any, sent: list[Any]) -> list[Any]:
    """As they are answered, which is as they are read again."""
    conversation = client.conversations.create().id
    path = f"/conversations/{conversation}/items"
    added = client.post(path, cast_to=object, body={"items": sent})["data"]
    assert client.get(path, cast_to=object, options={"params": {"order": "asc"}})["data"] == added
    listed = client.conversations.items.list(conversation, order="asc").data
    assert [item.id for item in listed] == [item["id"] for item in added]
    return list(added)


def expected(sent: dict[str, Any], item_id: str) -> dict[str, Any]:
    """An item by what the contract says of it."""
    item = {"type": "message", **sent}
    item["id"] = item_id
    if item["type"] in STATUS and item.get("status") is None:
        item["status"] = "completed"
    if item["type"] == "message" and isinstance(item["content"], str):
        part: dict[str, Any] = {"type": "input_text", "text": item["content"]}
        if item["role"] == "assistant":
            part |= {"type": "output_text", "annotations": [], "logprobs": []}
        item["content"] = [part]
    return item


def with_its_call(item: dict[str, Any]) -> list[dict[str, Any]]:
    """A result is taken only after its call, if it names one."""
    if item["type"] != "function_call_output" or item.get("call_id") is None:
        return [item]
    call = {"type": "function_call", "call_id": item["call_id"], "name": "f", "arguments": "{}"}
    return [call, item]


@pytest.mark.parametrize("kind", KINDS)
class TestAnItem:
    def test_comes_back_as_it_was_sent_and_may_be_replayed(self, client: Any, kind: str) -> None:
        @generated
        @given(item=items(kind), named=st.booleans() if kind != "reasoning" else st.just(True))
        def check(item: dict[str, Any], named: bool) -> None:
            given_id = f"{PREFIXES[kind]}_given"
            sent = {**item, "id": given_id} if named else item
            found = stored(client, with_its_call(sent))[-1]
            assert found["id"] == given_id if named else found["id"].startswith(PREFIXES[kind])
            assert found == expected(sent, found["id"])
            _REPLAYED.validate_python([found])

        check()


class TestSeveral:
    @generated
    @given(sent=st.lists(st.sampled_from(KINDS).flatmap(items), min_size=1, max_size=6))
    def test_come_back_in_their_order(self, client: Any, sent: list[dict[str, Any]]) -> None:
        named = [
            {**item, "id": f"{PREFIXES[item['type']]}_{number}"}
            for number, item in enumerate(sent)
            if item["type"] != "function_call_output"
        ]
        if named:
            assert stored(client, named) == [expected(item, item["id"]) for item in named]


class TestWhatNobodyKnows:
    @generated
    @given(item=unknown_items())
    def test_comes_back_as_it_was_sent(self, client: Any, item: dict[str, Any]) -> None:
        (found,) = stored(client, [item])
        assert found == expected(item, found["id"])
