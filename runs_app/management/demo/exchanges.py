"""One task as it is told in messages, made once and used by many sessions."""

import random
from dataclasses import dataclass
from typing import Any

from sessions_app.folding import folded_text, message_text
from sessions_app.jsontext import JSONText
from sessions_app.usage import NO_USAGE, Usage

from .scenarios import Scenario


@dataclass(frozen=True, slots=True)
class Said:
    """A message, as its row holds it."""

    role: str
    body: JSONText
    size: int
    text: str
    usage: Usage = NO_USAGE

    @classmethod
    def of(
        cls, role: str, content: str | None, usage: Usage | None = None, **others: Any
    ) -> "Said":
        spent = usage or NO_USAGE
        counted = {"input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens}
        told = {"role": role, "content": content, **others} | ({"usage": counted} if usage else {})
        body = JSONText.of(told)
        return cls(role, body, len(body), folded_text(message_text(told)), spent)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question, a call of a tool, its result, or an error instead, and the answer."""

    scenario: Scenario
    title: str
    system: Said
    ask: Said
    call: Said
    tool_call_id: str
    arguments: JSONText
    result: Said
    failure: Said
    answer: Said
    input: JSONText
    output: JSONText
    memories: tuple[JSONText, JSONText]


def make_exchange(scenario: Scenario, rng: random.Random) -> Exchange:
    number = str(rng.randint(1_000, 9_999))

    def words(text: str) -> str:
        return text.replace("{n}", number)

    ask, answer = words(rng.choice(scenario.asks)), words(rng.choice(scenario.answers))
    called = f"call_{rng.getrandbits(48):012x}"
    function = {"name": scenario.tool, "arguments": words(scenario.arguments)}
    calls = [{"id": called, "type": "function", "function": function}]
    plan = [words(step) for step in scenario.plan]
    memory = {
        "goal": words(scenario.goal),
        "plan": plan,
        "completed": [],
        "errors": [],
        "important_files": [],
        "next_action": plan[0],
        "extra": {},
    }
    later = memory | {"completed": plan[:-1], "next_action": plan[-1]}
    return Exchange(
        scenario=scenario,
        title=words(rng.choice(scenario.titles)),
        system=Said.of("system", scenario.system),
        ask=Said.of("user", ask),
        call=Said.of("assistant", None, _usage(rng), tool_calls=calls, model=scenario.model),
        tool_call_id=called,
        arguments=JSONText(words(scenario.arguments)),
        result=Said.of("tool", words(scenario.result), tool_call_id=called),
        failure=Said.of("tool", "503 Service Unavailable", tool_call_id=called, is_error=True),
        answer=Said.of("assistant", answer, _usage(rng), model=scenario.model),
        input=JSONText.of({"task": ask}),
        output=JSONText.of({"answer": answer}),
        memories=(JSONText.of(memory), JSONText.of(later)),
    )


def _usage(rng: random.Random) -> Usage:
    return Usage(
        input_tokens=int(rng.lognormvariate(7.4, 0.7)), output_tokens=int(rng.lognormvariate(5, 1))
    )
