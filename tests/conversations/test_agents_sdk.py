"""`OpenAIConversationsSession`, by itself and with the Agents SDK's `Runner`."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from agents import (
    Agent,
    OpenAIConversationsSession,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import ScriptedModel
from openai import AsyncOpenAI
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from tests.conversations.agent import call, thought
from tests.live_server import ROOT, LiveServer


@pytest.fixture(autouse=True)
def untraced() -> Iterator[None]:
    set_tracing_disabled(True)
    yield
    set_tracing_disabled(False)


@function_tool
def weigh() -> str:
    return "12 kg"


def answer(text: str) -> Any:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id="msg_model", type="message", role="assistant", status="completed", content=[part]
    )


def said(first: int, last: int) -> list[Any]:
    return [{"role": "user", "content": f"{number}"} for number in range(first, last)]


def numbers_of(items: list[Any]) -> list[int]:
    return [int(item["content"][0]["text"]) for item in items]


class TestASession:
    @pytest.mark.parametrize("count", [1, 20, 21, 200])
    def test_gives_back_what_was_added(
        self, connect: Callable[..., AsyncOpenAI], count: int
    ) -> None:
        async def work() -> None:
            async with connect() as client:
                session = OpenAIConversationsSession(openai_client=client)
                await session.add_items(said(0, count))
                assert numbers_of(await session.get_items()) == [*range(count)]
                newest = [*range(count)][-7:]
                assert numbers_of(await session.get_items(limit=7)) == newest
                again = OpenAIConversationsSession(
                    conversation_id=session.session_id, openai_client=client
                )
                assert await again.get_items() == await session.get_items()

        asyncio.run(work())

    def test_pops_the_newest_until_there_is_none(self, connect: Callable[..., AsyncOpenAI]) -> None:
        async def work() -> None:
            async with connect() as client:
                session = OpenAIConversationsSession(openai_client=client)
                await session.add_items(said(0, 2))
                popped = [await session.pop_item() for _ in range(3)]
                assert numbers_of([each for each in popped if each]) == [1, 0]
                assert popped[2] is None

        asyncio.run(work())

    def test_begins_anew_when_it_is_cleared(self, connect: Callable[..., AsyncOpenAI]) -> None:
        async def work() -> None:
            async with connect() as client:
                session = OpenAIConversationsSession(openai_client=client)
                await session.add_items(said(0, 2))
                before = session.session_id
                await session.clear_session()
                assert await session.get_items() == []
                assert session.session_id != before
                with pytest.raises(openai.NotFoundError):
                    await client.conversations.retrieve(before)

        asyncio.run(work())

    def test_of_two_writers_at_once_loses_nothing(
        self, connect: Callable[..., AsyncOpenAI], conversation: str
    ) -> None:
        """Each writes batches; none is torn, and each writer's come in their order."""

        async def write(writer: int) -> None:
            async with connect() as client:
                session = OpenAIConversationsSession(
                    conversation_id=conversation, openai_client=client
                )
                for batch in range(10):
                    begin = writer * 1000 + batch * 10
                    await session.add_items(said(begin, begin + 10))

        async def work() -> list[int]:
            await asyncio.gather(write(0), write(1))
            async with connect() as client:
                session = OpenAIConversationsSession(
                    conversation_id=conversation, openai_client=client
                )
                return numbers_of(await session.get_items())

        numbers = asyncio.run(work())
        batches = [numbers[at : at + 10] for at in range(0, 200, 10)]
        assert all(batch == [*range(batch[0], batch[0] + 10)] for batch in batches)
        for writer in (0, 1):
            mine = [batch[0] for batch in batches if batch[0] // 1000 == writer]
            assert mine == [writer * 1000 + at for at in range(0, 100, 10)]


class TestARun:
    def test_with_a_tool_is_kept_whole_and_remembered(
        self, connect: Callable[..., AsyncOpenAI], native: Callable[..., Any]
    ) -> None:
        model = ScriptedModel(
            [
                [thought("rs_one"), call("weigh", "call_1")],
                [answer("It weighs 12 kg")],
                [answer("You are welcome")],
            ]
        )
        agent = Agent(name="clerk", model=model, tools=[weigh])

        async def work() -> tuple[str, list[Any]]:
            async with connect() as client:
                session = OpenAIConversationsSession(openai_client=client)
                first = await Runner.run(agent, "How heavy is it?", session=session)
                assert first.final_output == "It weighs 12 kg"
                await Runner.run(agent, "Thanks", session=session)
                return session.session_id, await session.get_items()

        conversation, items = asyncio.run(work())
        assert [item["type"] for item in items] == [
            "message",
            "reasoning",
            "function_call",
            "function_call_output",
            "message",
            "message",
            "message",
        ]
        assert (items[1]["id"], items[1]["encrypted_content"]) == ("rs_one", "secret of rs_one")
        assert items[3]["output"] == "12 kg"
        assert model.last_call is not None
        assert [item.get("type", "message") for item in model.last_call.input] == [
            item["type"] for item in items[:-1]
        ]
        (made,) = native("GET", conversation, "/tool-calls")["data"]
        assert (made["name"], made["status"], made["result"]) == ("weigh", "SUCCEEDED", "12 kg")
        assert native("GET", conversation)["title"] == "How heavy is it?"

    def test_goes_on_in_another_process_after_a_kill(
        self,
        live: LiveServer,
        connect: Callable[..., AsyncOpenAI],
        native: Callable[..., Any],
        conversation: str,
    ) -> None:
        killed = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.conversations.agent",
                f"{live.url}/v1",
                live.token,
                conversation,
            ],
            cwd=ROOT,
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
        model = ScriptedModel([[answer("Shipped")]])

        async def work() -> list[Any]:
            async with connect() as client:
                session = OpenAIConversationsSession(
                    conversation_id=conversation, openai_client=client
                )
                agent = Agent(name="shipper", model=model, tools=[weigh])
                await Runner.run(agent, "Go on", session=session)
                return await session.get_items()

        items = asyncio.run(work())
        kinds = [item["type"] for item in items]
        assert kinds[:4] == ["message", "reasoning", "function_call", "function_call_output"]
        assert kinds[-2:] == ["message", "message"]
        assert items[3]["output"] == "12 kg"
        assert model.last_call is not None
        assert [item.get("type", "message") for item in model.last_call.input] == kinds[:-1]
        assert native("GET", conversation)["status"] == "ACTIVE"

    def test_in_a_session_that_was_closed_fails_before_the_model_is_called(
        self,
        connect: Callable[..., AsyncOpenAI],
        native: Callable[..., Any],
        conversation: str,
    ) -> None:
        model = ScriptedModel([[answer("Hello")], [answer("Never said")]])
        agent = Agent(name="clerk", model=model)

        async def work() -> None:
            async with connect() as client:
                session = OpenAIConversationsSession(
                    conversation_id=conversation, openai_client=client
                )
                await Runner.run(agent, "Hi", session=session)
                native("POST", conversation, "/close", {"reason": "enough"})
                with pytest.raises(openai.ConflictError) as refused:
                    await Runner.run(agent, "More", session=session)
                assert refused.value.code == "session_closed"
                assert refused.value.response.headers["x-should-retry"] == "false"
                assert len(await session.get_items()) == 2

        asyncio.run(work())
        assert len(model.calls) == 1
