"""An agent that repairs the project in the current folder and keeps its state in Dossier.

    cd some/project
    python repair_agent.py "My project does not start. Please repair it."
    python repair_agent.py "continue"

The second line may be another process on another day: it finds the newest session of this user
and this agent, resumes it, and goes on from the resume packet. DOSSIER_URL, DOSSIER_TOKEN and
DOSSIER_USER say where and who. `--crash-after TOOL` kills the process, as a power cut would, once
the result of that tool is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import project_tools
from dossier_client import Dossier, JsonObject, Problem
from model_requests import CALLS, described
from scripted_model import Turn, Verdict, repair

AGENT_ID = "repair-agent"
# A run without a sign of life for this long is INTERRUPTED, and a session without activity for this
# long is EXPIRED. Short, so that nobody waits for the demo; real agents take minutes and days.
LEASE_SECONDS = 10
IDLE_TIMEOUT_SECONDS = 10


@dataclass
class Work:
    """One run of one session: each write names the run, which renews its lease."""

    dossier: Dossier
    session_id: str
    run: JsonObject
    crash_after: str | None = None

    @property
    def claim(self) -> JsonObject:
        return {"run_id": self.run["run_id"], "attempt": self.run["attempt"]}

    def keep(self, *messages: JsonObject) -> None:
        self.dossier.append(self.session_id, list(messages), **self.claim)

    def remember(self, **patch: Any) -> str:
        memory = self.dossier.patch_memory(self.session_id, patch, **self.claim)
        return f"working memory is at version {memory['version']}"

    def answer(self, call: JsonObject) -> JsonObject:
        """Run one tool and store what it gave, before anything else happens."""
        name = call["function"]["name"]
        arguments = json.loads(call["function"]["arguments"])
        show("call", "\n  ".join([name, *(f"{key}: {value}" for key, value in arguments.items())]))
        if name == "remember":
            result = project_tools.Result(self.remember(**arguments))
        else:
            result = project_tools.use(name, arguments)
        message = {"role": "tool", "tool_call_id": call["id"], "content": result.text}
        if result.is_error:
            message["is_error"] = True
        self.keep(message)
        show("result", result.text)
        if name == self.crash_after:
            show("crash", "the agent's process is gone, and its run was not ended")
            os.kill(os.getpid(), signal.SIGKILL)
        return message

    def follow(self, turn: Turn) -> Verdict:
        """Do what the model says until it has a verdict."""
        step = next(turn)
        while True:
            self.keep(step)
            show("assistant", step["content"])
            results = [self.answer(call)["content"] for call in step["tool_calls"]]
            try:
                step = turn.send(results)
            except StopIteration as end:
                verdict: Verdict = end.value
                return verdict


def begin(dossier: Dossier, user_id: str, text: str) -> JsonObject:
    return dossier.create_session(
        agent_id=AGENT_ID,
        user_id=user_id,
        metadata={"project": Path.cwd().name},
        idle_timeout_seconds=IDLE_TIMEOUT_SECONDS,
    )


def pick_up(dossier: Dossier, user_id: str) -> JsonObject:
    """The resume packet of the newest session of this user and this agent."""
    found = dossier.find_sessions(user_id=user_id, agent_id=AGENT_ID, limit=1)
    if not found:
        sys.exit("There is nothing to continue.")
    show("found", f"{found[0]['session_id']} is {found[0]['status']}")
    packet = dossier.resume(found[0]["session_id"], last_n=20)
    show_packet(packet)
    return packet


def start_run(dossier: Dossier, session_id: str, text: str, **fields: Any) -> JsonObject:
    return dossier.start_run(
        session_id,
        input={"text": text},
        agent_id=AGENT_ID,
        model="scripted",
        lease_seconds=LEASE_SECONDS,
        **fields,
    )


def show_requests(work: Work) -> None:
    """What a model would be asked now: the script that stands for one needs no such request."""
    for api in CALLS:
        packet = work.dossier.context(work.session_id, format=api, mark_synthetic="false")
        show("model", f"{api}: {described(api, packet)}")


def work_on(work: Work, text: str, memory: JsonObject) -> bool:
    work.keep({"role": "user", "content": text})
    show("user", text)
    show_requests(work)
    verdict = work.follow(repair(text, memory))
    work.keep({"role": "assistant", "content": verdict.text})
    show("assistant", verdict.text)
    attempt = work.claim["attempt"]
    if not verdict.solved:
        error = {"type": "not_solved", "message": verdict.text}
        work.dossier.fail_run(work.run["run_id"], error=error, attempt=attempt)
        return False
    work.dossier.complete_run(work.run["run_id"], output={"text": verdict.text}, attempt=attempt)
    work.dossier.close(work.session_id, "repaired")
    show("closed", f"{work.run['run_id']} is COMPLETED, the session is CLOSED")
    return True


def act(dossier: Dossier, user_id: str, text: str, crash_after: str | None) -> bool:
    if text.strip().lower() == "continue":
        packet = pick_up(dossier, user_id)
        session = packet["session"]
        memory = packet["working_memory"]
        cut_off = packet["interrupted_run"]
        origin = {"retry_of": cut_off["run_id"]} if cut_off else {}
    else:
        session = begin(dossier, user_id, text)
        memory = session["working_memory"]
        origin = {}
    run = start_run(dossier, session["session_id"], text, **origin)
    show("session", session["session_id"])
    show("run", f"{run['run_id']} is {run['status']}")
    return work_on(Work(dossier, session["session_id"], run, crash_after), text, memory)


def show(who: str, text: str | None) -> None:
    lines = (text or "(no words, only tool calls)").strip().splitlines()
    for number, line in enumerate(lines):
        print(f"  {who if number == 0 else '':<12}{line}", flush=True)


def show_packet(packet: JsonObject) -> None:
    memory = packet["working_memory"]
    show("resumed", f"from {packet['resumed_from']}; the packet says:")
    show("goal", memory["goal"])
    show("plan", "; ".join(memory["plan"]))
    show("completed", "; ".join(memory["completed"]))
    show("errors", "; ".join(memory["errors"]))
    show("next", memory["next_action"])
    for message in packet["messages"][-2:]:
        show("last", f"{message['sequence']}. {message['role']}: {message['content']}")
    for call in packet["open_tool_calls"]:
        show("open", f"{call['name']} was called, and nobody knows what came of it")
    if packet["interrupted_run"]:
        show("cut off", f"{packet['interrupted_run']['run_id']} is INTERRUPTED")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("text")
    parser.add_argument("--crash-after", metavar="TOOL")
    options = parser.parse_args()
    dossier = Dossier(os.environ["DOSSIER_URL"], os.environ["DOSSIER_TOKEN"])
    user_id = os.environ.get("DOSSIER_USER", "maria")
    try:
        return 0 if act(dossier, user_id, options.text, options.crash_after) else 1
    except Problem as problem:
        print(f"The server refused: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
