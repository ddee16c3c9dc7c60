"""What the official client makes of a refusal."""

from typing import Any

import openai
import pytest

HELLO = {"type": "message", "role": "user", "content": "Hello"}


class TestAnError:
    def test_of_a_wrong_key_is_one_of_authentication(self, client: Any) -> None:
        with pytest.raises(openai.AuthenticationError) as refused:
            client.with_options(api_key="wrong").conversations.create()
        assert (refused.value.code, refused.value.type) == (
            "invalid_api_key",
            "invalid_request_error",
        )
        assert refused.value.request_id

    def test_of_a_path_that_is_not_here_is_not_found(self, client: Any) -> None:
        with pytest.raises(openai.NotFoundError) as refused:
            client.models.list()
        assert refused.value.type == "invalid_request_error"

    @pytest.mark.parametrize(
        ("body", "param"),
        [
            ({}, "items"),
            ({"items": []}, "items"),
            ({"items": "x"}, "items"),
            ({"items": [1]}, "items[0]"),
            ({"items": [{"type": 1}]}, "items[0].type"),
            ({"items": [{"content": "x"}]}, "items[0].role"),
            ({"items": [{"role": "nobody", "content": "x"}]}, "items[0].role"),
            ({"items": [{"role": "user"}]}, "items[0].content"),
            ({"items": [{"role": "user", "content": [1]}]}, "items[0].content[0]"),
            ({"items": [HELLO, {"type": "function_call", "call_id": "c"}]}, "items[1].name"),
            ({"items": [{"role": "user", "content": "x", "id": ""}]}, "items[0].id"),
            ({"items": [{"type": "reasoning", "id": "rs_a/b", "summary": []}]}, "items[0].id"),
            ({"items": [{"type": "reasoning", "id": "..", "summary": []}]}, "items[0].id"),
            ({"items": [HELLO], "other": 1}, "other"),
        ],
    )
    def test_names_the_place(self, client: Any, conversation: str, body: Any, param: str) -> None:
        with pytest.raises(openai.BadRequestError) as refused:
            client.post(f"/conversations/{conversation}/items", cast_to=object, body=body)
        assert refused.value.param == param
        told: Any = refused.value.body
        assert told["message"].rstrip(".") == told["message"][:-1]
        assert client.conversations.items.list(conversation).data == []

    @pytest.mark.parametrize(
        "metadata",
        [{"k": 1}, {"k" * 65: "v"}, {"k": "v" * 513}, {f"{n}": "v" for n in range(17)}, ["k"]],
    )
    def test_of_metadata_beyond_its_limits_is_a_bad_request(
        self, client: Any, metadata: Any
    ) -> None:
        with pytest.raises(openai.BadRequestError) as refused:
            client.conversations.create(metadata=metadata)
        assert refused.value.param == "metadata"
