"""What stands where a language model would: it reads and decides, and calls no network.

A conversation with it is a generator: it yields assistant messages that call tools, and is sent
the tools' results. It keeps nothing between two processes. Where it goes on after a crash, it knows
from the working memory that it is given, and from nothing else.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    solved: bool
    text: str


Turn = Generator[JsonObject, list[str], Verdict]
Finding = Generator[JsonObject, list[str], list[str]]

LOOK = "Look at the files"
RUN = "Run start.py and read the error"
ADD = "Add what is missing to requirements.txt"
VERIFY = "Run start.py again"


def repair(task: str, memory: JsonObject) -> Turn:
    """Repair the project; what an earlier process found out is not looked for again."""
    missing = memory["extra"].get("missing_packages")
    if missing is None:
        missing = yield from _find_cause(task)
        done = [LOOK, RUN]
    else:
        done = list(memory["completed"])
    return (yield from _mend(missing, done))


def _find_cause(task: str) -> Finding:
    yield _say("Let me see what is there.", _call("list_files"))
    # Two calls in one message: they are answered one by one.
    yield _say(None, _call("read_file", path="app.py"), _call("read_file", path="requirements.txt"))
    (output,) = yield _say("Now I run it.", _call("run_python", script="start.py"))
    missing = re.findall(r"No module named '(\w+)'", output)
    yield _say(
        "app.py imports what requirements.txt does not name. I write that down before I go on.",
        _call(
            "remember",
            goal=task,
            plan=[LOOK, RUN, ADD, VERIFY],
            completed=[LOOK, RUN],
            errors=[output.strip().splitlines()[-1]],
            important_files=["app.py", "requirements.txt", "start.py"],
            next_action=f"Add {', '.join(missing)} to requirements.txt",
            extra={"missing_packages": missing},
        ),
        _call("read_file", path="README.md"),
    )
    return missing


def _mend(missing: list[str], done: list[str]) -> Turn:
    for package in missing:
        yield _say(
            f"I add {package} to requirements.txt.",
            _call("append_line", path="requirements.txt", line=package),
        )
    (output,) = yield _say("Does it start now?", _call("run_python", script="start.py"))
    if "started:" not in output:
        return Verdict(False, f"It still does not start:\n{output}")
    yield _say("It does.", _call("remember", completed=[*done, ADD, VERIFY], next_action=""))
    proof = output.strip().splitlines()[-1]
    return Verdict(True, f"requirements.txt did not name {', '.join(missing)}. Now: {proof}")


def _say(content: str | None, *calls: JsonObject) -> JsonObject:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def _call(name: str, **arguments: Any) -> JsonObject:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call_{uuid.uuid4().hex[:12]}", "type": "function", "function": function}
