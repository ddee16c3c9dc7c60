"""Stored messages for tests of formats: of every form, without a database."""

import json
from typing import Any, NamedTuple

from sessions_app.jsontext import JSONText
from sessions_app.services.drafts import draft_message


class Stored(NamedTuple):
    sequence: int
    type: str
    body: JSONText


def stored(*messages: dict[str, Any]) -> list[Stored]:
    """As the server would store them, one after the other."""
    drafts = [draft_message(message, pointer="") for message in messages]
    return [Stored(number, draft.type, draft.body) for number, draft in enumerate(drafts, start=1)]


def compaction(sequence: int, **body: Any) -> Stored:
    return Stored(sequence, "compaction", JSONText.of(body))


def block_call(id: str, name: str = "ls", arguments: Any = None) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments or {}}


def block_result(id: str, content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def item(type: str, **more: Any) -> dict[str, Any]:
    return {"role": None, "item": {"type": type, **more}}


def item_call(id: str, name: str = "ls", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return item("function_call", call_id=id, name=name, arguments=arguments, **more)


def item_result(id: str, output: Any = "done") -> dict[str, Any]:
    return item("function_call_output", call_id=id, output=output)


def words(value: Any) -> str:
    """All that is said in it, for looking for words."""
    return json.dumps(value, ensure_ascii=False)
