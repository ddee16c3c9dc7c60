"""An agent of the Agents SDK in a process of its own; it is killed in the middle of a tool.

Takes the base URL, the token and the conversation's id.
"""

import asyncio
import os
import signal
import sys
from typing import Any

from agents import Agent, OpenAIConversationsSession, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel
from openai import AsyncOpenAI
from openai.types.responses import ResponseFunctionToolCall, ResponseReasoningItem


def thought(id: str) -> Any:
    return ResponseReasoningItem(
        id=id, type="reasoning", summary=[], encrypted_content=f"secret of {id}"
    )


def call(name: str, call_id: str) -> Any:
    return ResponseFunctionToolCall(
        id=f"fc_{call_id}", type="function_call", call_id=call_id, name=name, arguments="{}"
    )


@function_tool
def weigh() -> str:
    return "12 kg"


@function_tool
def ship() -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


async def main(base_url: str, token: str, conversation_id: str) -> None:
    set_tracing_disabled(True)
    model = ScriptedModel(
        [
            [thought("rs_first"), call("weigh", "call_weigh")],
            [thought("rs_second"), call("ship", "call_ship")],
        ]
    )
    session = OpenAIConversationsSession(
        conversation_id=conversation_id,
        openai_client=AsyncOpenAI(base_url=base_url, api_key=token),
    )
    agent = Agent(name="shipper", model=model, tools=[weigh, ship])
    await Runner.run(agent, "Weigh it and ship it", session=session)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
