"""The judges themselves: what an API would refuse, they refuse, else no other test says a thing."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.providers import check, check_types, synthetic, unmarked

CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
USE = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "done"}
ITEM = {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "done"}
TEXT = {"type": "text", "text": "Hello"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}

USER = {"role": "user", "content": "Hello"}
MESSAGE = {"type": "message", **USER}
ASKED = {"role": "user", "content": [TEXT]}


class TestTypes:
    @pytest.mark.parametrize(
        ("format", "wrong"),
        [
            ("openai_chat", {"role": "user", "content": None}),
            ("openai_chat", {"role": "user", "content": [{"type": "input_text", "text": "x"}]}),
            ("openai_chat", {"role": "user", "content": "x", "id": "m1"}),
            ("openai_chat", {"role": "tool", "content": "x"}),
            ("openai_chat", {"role": "assistant", "tool_calls": [{**CALL, "function": {}}]}),
            ("openai_chat", {"role": "assistant", "tool_calls": [{**CALL, "index": 0}]}),
            (
                "openai_chat",
                {"role": "tool", "tool_call_id": "c1", "content": "x", "is_error": True},
            ),
            ("openai_responses", {"role": "user", "content": [TEXT]}),
            ("openai_responses", {**ITEM, "arguments": {}}),
            ("openai_responses", {**OUTPUT, "output": None}),
            ("openai_responses", {"type": "reasoning", "summary": []}),
            ("openai_responses", {"type": "unheard_of", "id": "x"}),
            ("anthropic", {"role": "system", "content": [TEXT]}),
            ("anthropic", {"role": "user", "content": [{**TEXT, "annotations": []}]}),
            ("anthropic", {"role": "assistant", "content": [{**USE, "input": "{}"}]}),
            (
                "anthropic",
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]},
            ),
            ("anthropic", {"role": "user", "content": [{**RESULT, "content": [{"type": "x"}]}]}),
        ],
    )
    def test_refuse_other_shapes(self, format: str, wrong: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            check_types(format, [wrong])

    def test_know_no_mark(self) -> None:
        marked = [{"role": "tool", "tool_call_id": "c1", "content": "x", "synthetic": True}]
        assert synthetic(marked) == marked
        assert "synthetic" not in unmarked(marked)[0]
        check_types("openai_chat", marked)
        with pytest.raises(ValidationError):
            check_types("openai_chat", [{**USER, "synthetic": False}])


class TestRules:
    @pytest.mark.parametrize(
        ("format", "wrong"),
        [
            ("openai_chat", [{"role": "assistant", "tool_calls": [CALL]}]),
            ("openai_chat", [{"role": "tool", "tool_call_id": "c1", "content": "x"}]),
            (
                "openai_chat",
                [
                    {"role": "assistant", "tool_calls": [CALL]},
                    USER,
                    {"role": "tool", "tool_call_id": "c1", "content": "x"},
                ],
            ),
            ("openai_responses", [ITEM]),
            ("openai_responses", [OUTPUT]),
            ("openai_responses", [ITEM, MESSAGE, OUTPUT]),
            ("openai_responses", [ITEM, OUTPUT, ITEM, OUTPUT]),
            ("openai_responses", [THOUGHT]),
            ("openai_responses", [THOUGHT, MESSAGE]),
            ("anthropic", [{"role": "assistant", "content": [TEXT]}]),
            ("anthropic", [ASKED, ASKED]),
            ("anthropic", [ASKED, {"role": "assistant", "content": [USE]}]),
            ("anthropic", [ASKED, {"role": "assistant", "content": [USE]}, ASKED]),
            ("anthropic", [{"role": "user", "content": [RESULT]}]),
            (
                "anthropic",
                [
                    ASKED,
                    {"role": "assistant", "content": [USE]},
                    {"role": "user", "content": [TEXT, RESULT]},
                ],
            ),
            ("anthropic", [{"role": "user", "content": [{"type": "text", "text": " \n"}]}]),
            ("anthropic", [ASKED, {"role": "assistant", "content": [{**TEXT, "text": "x "}]}]),
        ],
    )
    def test_refuse_other_orders(self, format: str, wrong: list[dict[str, Any]]) -> None:
        with pytest.raises((AssertionError, KeyError, ValueError)):
            check(format, wrong, "" if format == "anthropic" else None)

    @pytest.mark.parametrize(
        ("format", "right"),
        [
            ("openai_chat", [USER, {"role": "assistant", "content": "x"}]),
            ("openai_responses", [MESSAGE, THOUGHT, ITEM, OUTPUT]),
            (
                "anthropic",
                [
                    ASKED,
                    {"role": "assistant", "content": [USE]},
                    {"role": "user", "content": [RESULT, TEXT]},
                ],
            ),
        ],
    )
    def test_take_what_is_right(self, format: str, right: list[dict[str, Any]]) -> None:
        check(format, right, "" if format == "anthropic" else None)
