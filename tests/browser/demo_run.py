"""Runs that have much to show: one that failed after a wait, and one that is going on."""

import json
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from runs_app.models import Run
from runs_app.services import NewRun, RunManager
from sessions_app.models import Session
from sessions_app.services import Actor, NewSession, SessionManager

# A tool, when it was called, and when it answered, in seconds.
_STEPS: list[tuple[str, int, int | None]] = [
    ("read_file", 3, 4),
    ("run_tests", 9, 31),
    ("search_code", 10, 13),
    ("edit_file", 36, 37),
    ("run_tests", 118, 141),
    ("git_push", 146, None),
]
# The server's sweep runs beside this: no lease may lapse while the past is being told.
_A_DAY = 86_400


class _Worker:
    """An agent at work at times of its own."""

    def __init__(self, actor: Actor, session: Session, begin: datetime) -> None:
        self.actor, self.session, self.begin = actor, session, begin
        self.sessions, self.runs = SessionManager(actor), RunManager(actor)

    def at(self, seconds: float) -> datetime:
        return self.begin + timedelta(seconds=seconds)

    def say(self, run: Run, seconds: float, *messages: dict[str, Any]) -> None:
        self.sessions.append(
            session_id=self.session.pk, run_id=run.pk, messages=messages, now=self.at(seconds)
        )

    def steps(self, run: Run) -> None:
        """Each call, and each answer, at its time."""
        said: list[tuple[float, dict[str, Any]]] = []
        for number, (tool, called, answered) in enumerate(_STEPS):
            said.append((called, _calling(number, tool)))
            if answered is not None:
                said.append((answered, _answer(number, tool)))
        for seconds, message in sorted(said, key=lambda pair: pair[0]):
            self.say(run, seconds, message)


def seed_runs(actor: Actor) -> dict[str, Run]:
    return {"failed": _failed(actor), "live": _live(actor)}


def _open(actor: Actor, title: str, begin: datetime) -> _Worker:
    memory = {
        "goal": "Make the image worker keep its memory",
        "plan": ["Reproduce the leak", "Find what holds the buffers", "Mend it"],
        "next_action": "Run the tests",
    }
    new = NewSession(title=title, agent_id="code-agent", user_id="u-7", working_memory=memory)
    session, _events = SessionManager(actor).create(new, now=begin)
    return _Worker(actor, session, begin)


def _new() -> NewRun:
    task = {"task": "Find the memory leak in the image worker", "branch": "main"}
    return NewRun(input=task, agent_id="code-agent", model="gpt-5.1-mini", lease_seconds=_A_DAY)


def _failed(actor: Actor) -> Run:
    worker = _open(actor, "Find the leak in the image worker", timezone.now() - timedelta(hours=3))
    run = worker.runs.create(session_id=worker.session.pk, new=_new(), now=worker.at(0))
    worker.say(run, 1, {"role": "user", "content": "Please find out why the worker grows."})
    worker.steps(run)
    asked = NewRun(
        agent_id="review-agent", model="gpt-5.1", parent_run_id=run.pk, lease_seconds=_A_DAY
    )
    child = worker.runs.create(session_id=worker.session.pk, new=asked, now=worker.at(42))
    worker.runs.complete(run_id=child.pk, output="Looks right.", now=worker.at(70))
    patch = {
        "completed": ["Reproduced the leak", "Found the cache that never ends"],
        "plan": ["Find what holds the buffers", "Mend it"],
        "next_action": "Push the branch",
        "important_files": ["worker/images.py"],
    }
    worker.sessions.patch_memory(
        session_id=worker.session.pk, patch=patch, run_id=run.pk, now=worker.at(142)
    )
    worker.runs.wait(run_id=run.pk, reason="for approval of the push", now=worker.at(150))
    worker.runs.resume(run_id=run.pk, now=worker.at(180))
    error = {
        "type": "PermissionError",
        "message": "git push was refused: the branch main is protected",
        "hint": ["ask for a review", "push to another branch"],
    }
    return worker.runs.fail(run_id=run.pk, error=error, now=worker.at(192))


def _live(actor: Actor) -> Run:
    worker = _open(actor, "修复图像服务的内存泄漏", timezone.now() - timedelta(seconds=150))
    run = worker.runs.create(session_id=worker.session.pk, new=_new(), now=worker.at(0))
    worker.say(run, 1, {"role": "user", "content": "请找出内存不断增长的原因。"})
    worker.steps(run)
    return run


def _calling(number: int, tool: str) -> dict[str, Any]:
    arguments = json.dumps({"path": "worker/images.py"})
    function = {"name": tool, "arguments": arguments}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    usage = {"input_tokens": 1500 + 300 * number, "output_tokens": 90}
    return {"role": "assistant", "content": None, "tool_calls": [call], "usage": usage}


def _answer(number: int, tool: str) -> dict[str, Any]:
    content = f"{tool}: done, 214 lines. " + "All 38 tests pass. " * number
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": content}
