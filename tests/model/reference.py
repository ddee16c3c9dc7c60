"""What sessions, runs and tool calls are, said once more: plain Python, no database, no laziness.

The server settles what time has done when somebody comes by; here it happens at its very moment.
Times are whole seconds. A refusal is the name of the error that the managers raise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

LEASE, QUEUE_TIME = 300, 24 * 3600
FINAL_RUN = {"COMPLETED", "FAILED", "CANCELLED"}
OPEN_CALL = {"PENDING", "RUNNING"}


class Refused(Exception):
    """By the name of the error."""


@dataclass(eq=False)
class Call:
    """A tool call; ``made_at`` is the sequence of the message that announced it."""

    name: str | None
    made_at: int | None
    run: "Run | None"
    status: str = "PENDING"
    answered: bool = False
    has_result: bool = False

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_CALL

    def end(self, status: str) -> None:
        if self.is_open:
            self.status = status


@dataclass(eq=False)
class Run:
    """A run; ``story`` is every status that it has had."""

    lease: int
    deadline: int
    attempt: int = 0
    story: list[str] = field(default_factory=lambda: ["PENDING"])

    @property
    def status(self) -> str:
        return self.story[-1]

    @property
    def is_started(self) -> bool:
        return self.status in {"RUNNING", "WAITING"}

    @property
    def is_unfinished(self) -> bool:
        return self.is_started or self.status == "PENDING"


@dataclass(eq=False)
class Session:
    """One session, and everything that may be done to it at a moment ``now``."""

    created: int
    idle: int | None
    story: list[str] = field(default_factory=lambda: ["ACTIVE"])
    expires: int | None = None
    messages: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    memory: dict[str, Any] = field(default_factory=dict)
    memory_version: int = 0
    settled_calls: int = 0

    def __post_init__(self) -> None:
        self._last = self.created
        self._reschedule()

    @property
    def status(self) -> str:
        return self.story[-1]

    @property
    def active_run(self) -> Run | None:
        return next((run for run in self.runs if run.is_started), None)

    # --- time ----------------------------------------------------------------------------------

    def pass_to(self, now: int) -> None:
        """Let everything lapse whose deadline has come, the earliest first, runs before sessions:
        an expiry interrupts what is left."""
        if self.status != "ACTIVE":
            return
        end = now if self.expires is None else min(now, self.expires)
        for run in [run for run in self.runs if run.is_unfinished and run.deadline <= end]:
            self._end(run, "INTERRUPTED")
        if self.expires is not None and self.expires <= now:
            self._leave("EXPIRED")

    # --- the session ---------------------------------------------------------------------------

    def require_active(self) -> None:
        """All that a change of its title asks."""
        self._require_living()
        if self.status != "ACTIVE":
            raise Refused({"CLOSED": "SessionClosed", "EXPIRED": "SessionExpired"}[self.status])

    def close(self) -> None:
        self._end_session("CLOSED", not_from="EXPIRED")

    def expire(self) -> None:
        self._end_session("EXPIRED", not_from="CLOSED")

    def delete(self) -> None:
        self._require_living()
        self._leave("DELETED")

    def resume(self, now: int) -> None:
        self._require_living()
        if self.status != "ACTIVE":
            self.story.append("ACTIVE")
            self._note_activity(now)

    # --- what it holds -------------------------------------------------------------------------

    def append(
        self,
        messages: Sequence[tuple[str, Sequence[str]]],
        now: int,
        *,
        run: Run | None = None,
        attempt: int | None = None,
        expected: int | None = None,
    ) -> None:
        """Messages as (kind, tool call ids); a kind is text, calls, result or error."""
        self.require_active()
        if expected is not None and expected != len(self.messages):
            raise Refused("SequenceMismatch")
        self._fence(run, attempt)
        self._link(messages, run)
        self.messages += [kind for kind, _ in messages]
        self._note_life(run, now)

    def _link(self, messages: Sequence[tuple[str, Sequence[str]]], run: Run | None) -> None:
        self._refuse_orphans(messages)
        for place, (kind, ids) in enumerate(messages, start=len(self.messages) + 1):
            for name in ids:
                if kind == "calls":
                    self._announce(name, place, run)
                else:
                    self._answer(name, failed=kind == "error")

    def _refuse_orphans(self, messages: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Before anything is changed: a batch is taken whole or not at all."""
        waiting = self.waiting()
        for kind, ids in messages:
            for name in ids:
                if kind == "calls":
                    waiting.append(name)
                elif name in waiting:
                    waiting.remove(name)
                else:
                    raise Refused("OrphanToolResult")

    def _announce(self, name: str, place: int, run: Run | None) -> None:
        recorded = [c for c in self.calls if c.made_at is None and c.name == name and c.is_open]
        if not recorded:
            self.calls.append(Call(name, place, run))
            return
        recorded[0].made_at = place
        recorded[0].run = recorded[0].run or run

    def _answer(self, name: str, *, failed: bool) -> None:
        """The first unanswered call with that id in the newest message that has one."""
        waiting = [c for c in self.calls if c.made_at and not c.answered and c.name == name]
        call = max(waiting, key=lambda c: (c.made_at, -self.calls.index(c)))
        call.answered = call.has_result = True
        call.end("FAILED" if failed else "SUCCEEDED")

    def patch_memory(
        self, patch: dict[str, Any], now: int, *, run: Run | None = None, attempt: int | None = None
    ) -> None:
        self.require_active()
        self._fence(run, attempt)
        merged = self.memory | patch
        self.memory = {key: value for key, value in merged.items() if value is not None}
        self.memory_version += 1
        self._note_life(run, now)

    # --- tool calls ----------------------------------------------------------------------------

    def start_call(
        self, name: str | None, now: int, *, run: Run | None = None, attempt: int | None = None
    ) -> Call:
        self.require_active()
        self._fence(run, attempt)
        call = self._started_under(name)
        if call is None:
            call = Call(name, None, None)
            self.calls.append(call)
        call.run = call.run or run
        if call.status == "PENDING":
            call.status = "RUNNING"
        self._note_life(run, now)
        return call

    def _started_under(self, name: str | None) -> Call | None:
        mine = [] if name is None else [call for call in self.calls if call.name == name]
        if running := [call for call in mine if call.is_open]:
            return max(running, key=lambda c: (c.made_at or 0, -self.calls.index(c)))
        return mine[-1] if mine and mine[-1].made_at else None

    def finish_call(self, call: Call, status: str, now: int, *, has_result: bool) -> None:
        self.require_active()
        call.end(status)
        call.has_result = call.has_result or has_result
        self._note_activity(now)

    def settle_call(self, call: Call, now: int) -> None:
        self.require_active()
        if call.has_result or call.status == "SUCCEEDED":
            raise Refused("InvalidTransition")
        if call.is_open:
            call.end("CANCELLED")
            self.settled_calls += 1
            self._note_activity(now)

    # --- runs ----------------------------------------------------------------------------------

    def create_run(self, now: int, *, lease: int, if_active: str, start: bool) -> Run:
        self.require_active()
        active = self.active_run
        if start and active and if_active == "reject":
            raise Refused("RunActive")
        run = Run(lease, now + QUEUE_TIME)
        if start and active and if_active == "cancel":
            self._end(active, "CANCELLED")
        self.runs.append(run)
        if start and (active is None or if_active == "cancel"):
            self._begin(run, now)
        self._note_activity(now)
        return run

    def move_run(self, run: Run, verb: str, attempt: int | None, now: int, *, seconds: int) -> None:
        """By the name of the manager's method; ``seconds`` is how long it may wait."""
        ends = {"complete": "COMPLETED", "fail": "FAILED", "cancel": "CANCELLED"}
        if verb in ends:
            self._end_run(run, ends[verb], attempt, now)
        elif verb == "wait":
            self._wait(run, attempt, seconds, now)
        else:
            {"start": self._start, "resume": self._resume, "heartbeat": self._beat}[verb](
                run, attempt, now
            )

    def _start(self, run: Run, attempt: int | None, now: int) -> None:
        self._admit(run, attempt)
        self._require(run, "PENDING")
        self._begin(run, now)

    def _resume(self, run: Run, attempt: int | None, now: int) -> None:
        self._admit(run, attempt, "INTERRUPTED")
        self._require(run, "INTERRUPTED", "WAITING")
        self._begin(run, now)

    def _wait(self, run: Run, attempt: int | None, seconds: int, now: int) -> None:
        self._admit(run, attempt)
        self._require(run, "RUNNING")
        run.story.append("WAITING")
        run.deadline = now + seconds
        self._note_activity(now)

    def _beat(self, run: Run, attempt: int | None, now: int) -> None:
        self._check_attempt(run, attempt)
        if run.status == "CANCELLED":
            return
        self._admit(run, attempt)
        self._require(run, "RUNNING", "WAITING")
        self._note_life(run, now)

    def _end_run(self, run: Run, status: str, attempt: int | None, now: int) -> None:
        self._admit(run, attempt, *({"INTERRUPTED"} if status != "COMPLETED" else ()))
        self._end(run, status)
        self._note_activity(now)

    # --- inside --------------------------------------------------------------------------------

    def _require_living(self) -> None:
        if self.status == "DELETED":
            raise Refused("SessionDeleted")

    def _end_session(self, status: str, *, not_from: str) -> None:
        self._require_living()
        if self.status == not_from:
            raise Refused("InvalidTransition")
        if self.status != status:
            self._leave(status)

    def _leave(self, status: str) -> None:
        if self.status == "ACTIVE":
            for run in [run for run in self.runs if run.is_unfinished]:
                self._end(run, "INTERRUPTED" if status == "EXPIRED" else "CANCELLED")
        if status != "EXPIRED":
            for call in self.calls:
                call.end("CANCELLED")
        self.story.append(status)
        self.expires = None

    def _begin(self, run: Run, now: int) -> None:
        if self.active_run not in (None, run):
            raise Refused("RunActive")
        run.attempt += 1
        run.story.append("RUNNING")
        run.deadline = now + run.lease
        self._note_activity(now)

    def _end(self, run: Run, status: str) -> None:
        run.story.append(status)
        for call in self.calls if status != "INTERRUPTED" else ():
            if call.run is run:
                call.end("CANCELLED" if status == "CANCELLED" else "FAILED")

    def _fence(self, run: Run | None, attempt: int | None) -> None:
        if run is not None:
            self._check_attempt(run, attempt)
            self._refuse_ended(run)

    def _admit(self, run: Run, attempt: int | None, *allowed: str) -> None:
        self.require_active()
        self._check_attempt(run, attempt)
        self._refuse_ended(run, *allowed)

    def _check_attempt(self, run: Run, attempt: int | None) -> None:
        if attempt is not None and attempt < run.attempt:
            raise Refused("RunSuperseded")

    def _refuse_ended(self, run: Run, *allowed: str) -> None:
        if run.status in FINAL_RUN:
            raise Refused("RunEnded")
        if run.status == "INTERRUPTED" and "INTERRUPTED" not in allowed:
            raise Refused("RunInterrupted")

    def _require(self, run: Run, *statuses: str) -> None:
        if run.status not in statuses:
            raise Refused("InvalidTransition")

    def _note_life(self, run: Run | None, now: int) -> None:
        """A write of a run is a sign of its life."""
        if run is not None and run.status == "RUNNING":
            run.deadline = now + run.lease
        self._note_activity(now)

    def _note_activity(self, now: int) -> None:
        self._last = now
        self._reschedule()

    def _reschedule(self) -> None:
        if self.idle is not None:
            active = self.active_run
            idle_until = self._last + self.idle
            self.expires = max(idle_until, active.deadline) if active else idle_until

    def waiting(self) -> list[str]:
        """The ids under which a result is expected."""
        return [call.name or "" for call in self.calls if call.made_at and not call.answered]

    def deadlines(self) -> list[int]:
        """Of the session and its runs, which do not outlive it."""
        found = [] if self.expires is None else [self.expires]
        return found + [self.deadline_of(run) for run in self.runs if run.is_unfinished]

    def deadline_of(self, run: Run) -> int:
        return run.deadline if self.expires is None else min(run.deadline, self.expires)

    # --- what is compared ----------------------------------------------------------------------

    def counters(self) -> dict[str, int]:
        return {
            "last_sequence": len(self.messages),
            "message_count": len(self.messages),
            "tool_call_count": len(self.calls),
            "open_tool_call_count": sum(call.is_open for call in self.calls),
            "run_count": len(self.runs),
            "failed_run_count": sum(run.status == "FAILED" for run in self.runs),
            "working_memory_version": self.memory_version,
        }

    def stories(self) -> Iterator[list[str]]:
        """Of the session, then of each run."""
        yield self.story
        for run in self.runs:
            yield run.story
