"""A session that is still there this afternoon: `make demo`, or `python examples/demo.py`.

In the morning an agent looks into a web project that does not start, and its process dies before
the repair. The server is killed with SIGKILL and started again. In the afternoon a new process is
told only "continue". Everything that you see happens: files are edited and run, requests go over
HTTP, processes are killed. Only the language model is a script, and the project's packages are
stand-ins.

The database is a temporary SQLite file, or that of DATABASE_URL when it is set (an account and a
token named "demo" then stay in it; the demo's session is deleted). `--folder` works in that folder
and keeps everything, with `outcome.json` in it: what the API answered at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import project_tools
from broken_project import write_project
from demo_server import ROOT, Server
from dossier_client import Dossier, JsonObject, Problem
from model_requests import CALLS, request_for
from repair_agent import AGENT_ID, LEASE_SECONDS

TASK = "My Flask project does not start. Please repair it."


class UnexpectedError(Exception):
    """The demo did not show what it promises."""


@dataclass
class Scene:
    server: Server
    dossier: Dossier
    project: Path
    # New for each demo, so that one database can see many demos.
    user_id: str

    def agent(self, *arguments: str) -> int:
        """A new process of the agent, in the project's folder; it inherits this terminal."""
        environment = {
            **os.environ,
            "DOSSIER_URL": self.server.url,
            "DOSSIER_TOKEN": self.dossier.token,
            "DOSSIER_USER": self.user_id,
        }
        command = [sys.executable, str(ROOT / "examples" / "repair_agent.py"), *arguments]
        return subprocess.run(command, cwd=self.project, env=environment, check=False).returncode

    def find(self) -> JsonObject:
        (session,) = self.dossier.find_sessions(user_id=self.user_id, agent_id=AGENT_ID, limit=2)
        return self.dossier.session(session["session_id"])

    def stored(self, session_id: str) -> JsonObject:
        """Everything that the agent had written, for one comparison."""
        session = self.dossier.session(session_id)
        return {
            "messages": self.dossier.messages(session_id),
            "working_memory": session["working_memory"],
            "tool_calls": self.dossier.tool_calls(session_id),
        }


def play(scene: Scene) -> JsonObject:
    session_id = morning(scene)
    before = scene.stored(session_id)
    kill_the_server(scene, session_id, before)
    lunch(scene, session_id)
    return afternoon(scene, session_id, before)


def morning(scene: Scene) -> str:
    title("Morning: an agent looks into a project that does not start")
    exit_code = scene.agent(TASK, "--crash-after", "remember")
    expect(exit_code == -signal.SIGKILL, "the agent's process was killed in the middle of its work")
    session = scene.find()
    (run,) = scene.dossier.runs(session["session_id"])
    expect(run["status"] == "RUNNING", f"{run['run_id']} is RUNNING: nobody ended it")
    next_action = session["working_memory"]["next_action"]
    expect("requests" in next_action, f"working memory knows what is next: {next_action}")
    expect(not names_requests(scene), "requirements.txt is as it was")
    return str(session["session_id"])


def kill_the_server(scene: Scene, session_id: str, before: JsonObject) -> None:
    title("The server is killed: SIGKILL to its whole process group")
    scene.server.kill()
    expect(not scene.server.answers(), "nothing answers any more")
    scene.server.start()
    expect(scene.stored(session_id) == before, stored_words(before) + " are all there, unchanged")


def stored_words(stored: JsonObject) -> str:
    messages, calls = len(stored["messages"]), len(stored["tool_calls"])
    return f"started again: {messages} messages, {calls} tool calls and the working memory"


def lunch(scene: Scene, session_id: str) -> None:
    title(f"Lunch: {LEASE_SECONDS} seconds without a sign of life")
    give_up_at = time.monotonic() + 3 * LEASE_SECONDS
    while scene.dossier.session(session_id)["status"] == "ACTIVE":
        expect_time_left(give_up_at)
        time.sleep(0.5)
    (run,) = scene.dossier.runs(session_id)
    expect(run["status"] == "INTERRUPTED", f"{run['run_id']} is INTERRUPTED: its lease ran out")
    status = scene.dossier.session(session_id)["status"]
    expect(status == "EXPIRED", "the session is EXPIRED: readable, and closed to plain writes")
    expect(refused_write(scene, session_id) == "session_expired", "a plain write does not wake it")


def expect_time_left(give_up_at: float) -> None:
    if time.monotonic() > give_up_at:
        raise UnexpectedError("the session did not expire in time")


def refused_write(scene: Scene, session_id: str) -> str | None:
    try:
        scene.dossier.append(session_id, [{"role": "user", "content": "Are you there?"}])
    except Problem as problem:
        return problem.code
    return None


def afternoon(scene: Scene, session_id: str, before: JsonObject) -> JsonObject:
    title('Afternoon: a new process is told only "continue"')
    expect(scene.agent("continue") == 0, "the agent says that it is done")
    expect(names_requests(scene), "requirements.txt names requests now")
    expect(starts(scene), "the project starts")
    outcome = {
        "session": scene.dossier.session(session_id),
        "runs": scene.dossier.runs(session_id),
        **scene.stored(session_id),
    }
    expect_runs(outcome["runs"])
    expect(outcome["session"]["status"] == "CLOSED", "the session is CLOSED")
    expect_history(outcome["messages"], before["messages"])
    expect(outcome["session"]["open_tool_calls"] == [], "no tool call is left open")
    outcome["requests"] = requests_of(scene, session_id)
    return outcome


def requests_of(scene: Scene, session_id: str) -> JsonObject:
    """What each API would be asked after this day, its marks left in."""
    packets = {api: scene.dossier.context(session_id, format=api) for api in CALLS}
    for api, packet in packets.items():
        marks = json.dumps(packet["messages"]).count('"synthetic": true')
        expect(marks == 1, f"{api}: the call that the crash interrupted has a result that says so")
    return {api: request_for(api, packet) for api, packet in packets.items()}


def expect_runs(runs: list[JsonObject]) -> None:
    # By creation and not as listed, because a list may begin with the newest.
    first, second = sorted(runs, key=lambda run: str(run["created_at"]))
    expect(first["status"] == "INTERRUPTED", f"the first run stays INTERRUPTED: {first['run_id']}")
    expect(second["status"] == "COMPLETED", f"the second run is COMPLETED: {second['run_id']}")
    expect(second["retry_of"] == first["run_id"], "the second run says which one it took over from")


def expect_history(messages: list[JsonObject], morning_messages: list[JsonObject]) -> None:
    sequences = [message["sequence"] for message in messages]
    expect(sequences == list(range(1, len(messages) + 1)), "messages are numbered without a gap")
    unchanged = messages[: len(morning_messages)] == morning_messages
    expect(unchanged, f"the first {len(morning_messages)} of them are still those of the morning")


def names_requests(scene: Scene) -> bool:
    return "requests" in (scene.project / "requirements.txt").read_text()


def starts(scene: Scene) -> bool:
    return not project_tools.start("start.py", scene.project).is_error


def title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise UnexpectedError(f"NOT SO: {what}")
    print(f"  ok          {what}", flush=True)


def set_the_scene(folder: Path) -> Scene:
    project = folder / "bookshop"
    write_project(project)
    database_url = os.environ.get("DATABASE_URL") or f"sqlite:///{folder}/dossier.sqlite3"
    server = Server(database_url, folder / "server.log")
    server.manage("migrate", "--no-input")
    token = server.manage("create_token", "demo", "--name", "demo")
    user_id = f"maria-{uuid.uuid4().hex[:8]}"
    return Scene(server, Dossier(server.url, token), project, user_id)


def run_demo(folder: Path, keep: bool) -> None:
    title("A server with a fresh token, and a small Flask project (its packages are stand-ins)")
    scene = set_the_scene(folder)
    try:
        scene.server.start()
        expect(scene.server.answers(), f"the server answers at {scene.server.url}")
        outcome = play(scene)
        if keep:
            (folder / "outcome.json").write_text(json.dumps(outcome, indent=1))
        else:
            scene.dossier.delete(outcome["session"]["session_id"], "end of the demo")
    finally:
        scene.server.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description="A session that is still there this afternoon.")
    parser.add_argument("--folder", type=Path, help="work in this folder and keep everything in it")
    folder: Path | None = parser.parse_args().folder
    # Whoever ends the demo early ends its server with it: the finally blocks run.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    # A proxy of the environment cannot reach this machine's loopback.
    os.environ["no_proxy"] = "127.0.0.1"
    try:
        with tempfile.TemporaryDirectory(prefix="dossier-demo-") as temporary:
            run_demo(folder.resolve() if folder else Path(temporary).resolve(), keep=bool(folder))
    except (UnexpectedError, Problem, RuntimeError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    print("\nThe session outlived its agent, its server and its lunch break.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
