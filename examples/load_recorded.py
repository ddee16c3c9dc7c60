"""Send recorded agent sessions to Dossier, and check that they come back as they were.

    python examples/load_recorded.py FOLDER --url http://127.0.0.1:8000 --token TOKEN

Every `*.json` of the folder is one session: `{"title", "source", "outcome", "messages": [...]}`
with chat messages. A user message and what follows it up to the next one is one run; what stands
before the first user message belongs to no run. The session's external id is made of the file's
name, so a second call sends nothing twice, and a call that was cut off is finished by the next one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.error import URLError

from dossier_client import Dossier, JsonObject, Problem

AGENT_ID = "recorded"
# Well below what one request may hold: 1,000 messages and 10 MB, unless the server says otherwise.
BATCH_MESSAGES = 50
BATCH_CHARACTERS = 1_000_000

# What the server adds to a message. All other keys of an answer are those that were sent.
SERVER_OWNED = {
    "object",
    "message_id",
    "session_id",
    "sequence",
    "type",
    "run_id",
    "session_version",
    "created_at",
}


@dataclass(frozen=True)
class Turn:
    """Messages `first` to `last` of a file, numbered as the server will number them."""

    number: int
    first: int
    messages: list[JsonObject]

    @property
    def last(self) -> int:
        return self.first + len(self.messages) - 1


@dataclass
class Loaded:
    name: str
    session_id: str = ""
    messages: int = 0
    sent: int = 0
    runs: int = 0
    tool_calls: int = 0
    verdict: str = ""


def turns_of(messages: list[JsonObject]) -> list[Turn]:
    """Turn 0 is what stands before the first user message; it may be empty."""
    turns = [Turn(0, 1, [])]
    for position, message in enumerate(messages, start=1):
        if message["role"] == "user":
            turns.append(Turn(len(turns), position, []))
        turns[-1].messages.append(message)
    return turns


def batches_of(messages: list[JsonObject]) -> Iterator[list[JsonObject]]:
    batch: list[JsonObject] = []
    size = 0
    for message in messages:
        weight = len(json.dumps(message, ensure_ascii=False))
        if batch and (len(batch) == BATCH_MESSAGES or size + weight > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += weight
    if batch:
        yield batch


class Loader:
    """Sends one file. `stored` is the number of its messages that the server has."""

    def __init__(self, dossier: Dossier, name: str, recorded: JsonObject) -> None:
        self.dossier = dossier
        self.turns = turns_of(recorded["messages"])
        session = dossier.create_session(
            external_id=f"recorded:{name}",
            if_exists="return",
            agent_id=AGENT_ID,
            title=recorded.get("title", name),
            metadata={key: recorded.get(key) for key in ("source", "outcome")},
        )
        self.session_id: str = session["session_id"]
        self.stored: int = session["last_sequence"]
        self.sent = 0
        # The newest run of a turn counts: an older one may have been cancelled with its session.
        runs = sorted(dossier.runs(self.session_id), key=lambda run: str(run["created_at"]))
        self.runs = {run["metadata"].get("turn"): run for run in runs}
        if session["status"] != "ACTIVE" and not self.is_complete:
            dossier.resume(self.session_id)

    @property
    def is_complete(self) -> bool:
        ended = all(self._has_ended(turn) for turn in self.turns[1:])
        return ended and self.stored >= self.turns[-1].last

    def send(self) -> None:
        self._append(self.turns[0])
        for turn in self.turns[1:]:
            if not self._has_ended(turn):
                run = self._run(turn)
                claim = {"run_id": run["run_id"], "attempt": run["attempt"]}
                self._append(turn, **claim)
                self.dossier.complete_run(run["run_id"], attempt=run["attempt"])

    def _has_ended(self, turn: Turn) -> bool:
        return turn.number in self.runs and self.runs[turn.number]["status"] == "COMPLETED"

    def _run(self, turn: Turn) -> JsonObject:
        run = self.runs.get(turn.number)
        if run is None or run["status"] in ("CANCELLED", "FAILED"):
            return self.dossier.start_run(
                self.session_id, agent_id=AGENT_ID, metadata={"turn": turn.number}
            )
        # An earlier call of this program was cut off in this turn: its run goes on.
        return run if run["status"] == "RUNNING" else self.dossier.resume_run(run["run_id"])

    def _append(self, turn: Turn, **claim: Any) -> None:
        known = max(self.stored - turn.first + 1, 0)
        for batch in batches_of(turn.messages[known:]):
            # With the expected sequence, two loaders at once cannot send the same message twice.
            answer = self.dossier.append(
                self.session_id, batch, expected_last_sequence=self.stored, **claim
            )
            self.stored = answer["last_sequence"]
            self.sent += len(batch)


def as_sent(stored: JsonObject, sent_keys: set[str]) -> JsonObject:
    """The client's part of a stored message: without what the server added or filled in."""
    message = {key: value for key, value in stored.items() if key not in SERVER_OWNED}
    if "client_created_at" in message:
        message["created_at"] = message.pop("client_created_at")
    for key, default in (("content", None), ("status", "completed")):
        if key not in sent_keys and message.get(key) == default:
            message.pop(key, None)
    return message


def same(sent: JsonObject, stored: JsonObject) -> bool:
    back = as_sent(stored, set(sent))
    if sent.keys() != back.keys():
        return False
    return all(_same_value(key, sent[key], back[key]) for key in sent)


def _same_value(key: str, sent: Any, back: Any) -> bool:
    if key == "created_at" and isinstance(sent, str):
        # The one value that is understood: an instant, given back in the server's spelling.
        return datetime.fromisoformat(sent) == datetime.fromisoformat(back)
    # As text: it sees the order of keys, and True is not 1.
    return json.dumps(sent) == json.dumps(back)


def differences(sent: list[JsonObject], stored: list[JsonObject]) -> list[str]:
    found = [f"{len(sent)} sent, {len(stored)} stored"] if len(sent) != len(stored) else []
    for sequence, (ours, theirs) in enumerate(zip(sent, stored, strict=False), start=1):
        if theirs["sequence"] != sequence or not same(ours, theirs):
            found.append(f"message {sequence} differs")
    return found


def load_file(dossier: Dossier, path: Path) -> Loaded:
    loaded = Loaded(path.stem)
    try:
        recorded: JsonObject = json.loads(path.read_text(encoding="utf-8"))
        loader = Loader(dossier, path.stem, recorded)
        loader.send()
        session = dossier.session(loader.session_id)
        loaded.session_id = loader.session_id
        loaded.messages = session["message_count"]
        loaded.runs = session["run_count"]
        loaded.tool_calls = session["tool_call_count"]
        loaded.sent = loader.sent
        found = differences(recorded["messages"], dossier.messages(loader.session_id))
        loaded.verdict = "; ".join(found) or "equal"
    except (Problem, KeyError, ValueError) as error:
        loaded.verdict = f"{type(error).__name__}: {error}"
    return loaded


def print_table(rows: list[Loaded]) -> None:
    width = max(len(row.name) for row in rows)
    heads = ("session", "messages", "sent", "runs", "calls", "read back")
    print(f"{'file':<{width}}  {heads[0]:<31}  " + "  ".join(heads[1:]))
    for row in rows:
        print(
            f"{row.name:<{width}}  {row.session_id:<31}  {row.messages:>8}  {row.sent:>4}"
            f"  {row.runs:>4}  {row.tool_calls:>5}  {row.verdict}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="its *.json files are recorded sessions")
    parser.add_argument(
        "--url",
        default=os.environ.get("DOSSIER_URL", "http://127.0.0.1:8000"),
        help="of the server (default: DOSSIER_URL, or http://127.0.0.1:8000)",
    )
    parser.add_argument(
        "--token",
        default=os.environ.get("DOSSIER_TOKEN"),
        help="of the account that they will belong to (default: DOSSIER_TOKEN)",
    )
    options = parser.parse_args()
    paths = sorted(options.folder.glob("*.json"))
    if not paths or not options.token:
        parser.error("a folder with *.json files and a token are needed")
    dossier = Dossier(options.url, options.token)
    try:
        rows = [load_file(dossier, path) for path in paths]
    except URLError as error:
        parser.exit(1, f"{options.url} does not answer: {error.reason}\n")
    print_table(rows)
    return 0 if all(row.verdict == "equal" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
