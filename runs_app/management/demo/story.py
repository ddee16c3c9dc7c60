"""One session's life, told as rows: what the managers would have written, without asking the
database for each step. A test holds what comes out against the rules for whatever is stored."""

import random
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User

from runs_app.models import Run
from runs_app.states import FINAL, STARTED, RunStatus
from sessions_app.jsontext import JSONText
from sessions_app.models import (
    Message,
    MetadataTerm,
    Session,
    ToolCall,
    WorkingMemoryRevision,
)
from sessions_app.services.metadata import index_text, metadata_term
from sessions_app.states import ActorType, SessionStatus, Subject, ToolCallStatus
from sessions_app.usage import NO_USAGE, Usage

from .exchanges import Exchange, Said
from .ledger import Ledger
from .rows import Ids, Rows
from .scenarios import ERRORS

LEASE = timedelta(minutes=2)
LONG_LEASE = timedelta(hours=2)
TIERS = ("gold", "silver", "free")


class Story(Ledger):
    """Builds the rows of one session."""

    def __init__(
        self,
        *,
        account: User,
        exchange: Exchange,
        at: datetime,
        timeout: int | None,
        ids: Ids,
        rng: random.Random,
    ) -> None:
        super().__init__(account=account, at=at, ids=ids)
        self.rng = rng
        self.content: list[Any] = []
        tier, number = rng.choice(TIERS), rng.randint(1, 400)
        self.session = Session(
            session_id=ids.new("sess", at),
            account_id=account.pk,
            agent_id=exchange.scenario.agent,
            user_id=rng.choice(exchange.scenario.users),
            title=exchange.title,
            metadata=JSONText(f'{{"tier":"{tier}","team":{number % 9},"source":"demo"}}'),
            idle_timeout_seconds=timeout,
            created_at=at,
            updated_at=at,
            last_activity_at=at,
        )
        if number % 3 == 0:
            self.session.external_id = f"ticket-{self.session.pk[-8:]}-{number}"
        index_text(self.session)
        for key, value in (("tier", tier), ("team", str(number % 9)), ("source", "demo")):
            digest = metadata_term(key, value)
            self.content.append(MetadataTerm(session_id=self.session.pk, digest=digest))
        self.event(Subject.SESSION, self.session.pk, None, SessionStatus.ACTIVE)
        self._remember(exchange.memories[0], None)
        self._say(exchange.system, None)

    # --- runs ---

    def run(self, exchange: Exchange, status: RunStatus, *, takes: timedelta, stuck: bool) -> None:
        """A task from its beginning to this status; ``takes`` is how long it was worked on."""
        run = self._create_run(exchange, LONG_LEASE if stuck else LEASE)
        if status == RunStatus.PENDING:
            run.lease_expires_at = self.session.other_run_deadline = self.now + timedelta(hours=24)
            self.session.newest_run_deadline = run.lease_expires_at
            return
        run.attempt, run.started_at = 1, self.now
        self._move(run, RunStatus.RUNNING)
        self.wait(takes * 0.1)
        self._say(exchange.ask, run)
        self.wait(takes * 0.2)
        call = self._announce(exchange, run)
        if status in {RunStatus.COMPLETED, RunStatus.FAILED}:
            self.wait(takes * 0.4)
            self._answer(call, exchange, run, failed=status == RunStatus.FAILED)
        if status == RunStatus.COMPLETED:
            self.wait(takes * 0.3)
            self._say(exchange.answer, run)
            self._remember(exchange.memories[1], run)
        self._settle(run, call, exchange, status)

    def _create_run(self, exchange: Exchange, lease: timedelta) -> Run:
        self.touch()
        run = Run(
            run_id=self.ids.new("run", self.now),
            session_id=self.session.pk,
            agent_id=exchange.scenario.agent,
            model=exchange.scenario.model,
            status=RunStatus.PENDING,
            input=exchange.input,
            lease_seconds=int(lease.total_seconds()),
            created_at=self.now,
            session_version=self.session.version,
        )
        self.session.run_count += 1
        self.session.newest_run_id, self.session.newest_run_status = run.pk, run.status
        self.event(Subject.RUN, run.pk, None, run.status)
        self.content.append(run)
        run.size = run.content_size
        return run

    def _settle(self, run: Run, call: ToolCall, exchange: Exchange, status: RunStatus) -> None:
        run.heartbeat_at = self.now
        run.lease_expires_at = self.now + timedelta(seconds=run.lease_seconds)
        if status in FINAL:
            self.touch()
            self._end(run, call, exchange, status)
        elif status == RunStatus.INTERRUPTED:
            run.ended_at = run.lease_expires_at
            self.touch(activity=False, at=run.ended_at)
            self._move(run, status, reason="no sign of life before the deadline", system=True)
        elif status == RunStatus.WAITING:
            run.wait_reason = exchange.scenario.waits_for
            run.lease_expires_at = self.now + timedelta(days=7)
            self.touch()
            self._move(run, status, reason=run.wait_reason)
        if status in STARTED:
            self._mirror(run)

    def _end(self, run: Run, call: ToolCall, exchange: Exchange, status: RunStatus) -> None:
        run.ended_at = self.now
        if status == RunStatus.COMPLETED:
            run.output = exchange.output
        elif status == RunStatus.FAILED:
            kind, message = self.rng.choice(ERRORS)
            run.error = JSONText.of({"type": kind, "message": message})
        else:
            run.cancel_reason = "The user asked for something else"
            self._close(call, ToolCallStatus.CANCELLED)
            call.error_type = "run_cancelled"
        run.size = run.content_size
        self._move(run, status, reason=run.cancel_reason or "")

    def _mirror(self, run: Run) -> None:
        session = self.session
        session.active_run_id, session.active_run_attempt = run.pk, run.attempt
        running = run.status == RunStatus.RUNNING
        session.active_run_lease_seconds = run.lease_seconds if running else None
        session.active_run_deadline = run.lease_expires_at
        session.active_run_seen_at = run.heartbeat_at

    def _move(self, run: Run, to: RunStatus, *, reason: str = "", system: bool = False) -> None:
        origin, run.status = run.status, to
        run.session_version = self.session.version
        self.session.newest_run_status = to
        self.session.failed_run_count += to == RunStatus.FAILED
        self.event(Subject.RUN, run.pk, origin, to, reason=reason, system=system)

    # --- messages ---

    def _say(self, said: Said, run: Run | None) -> None:
        session = self.session
        self.touch()
        session.last_sequence += 1
        session.message_count += 1
        session.head_sequence += said.role == "system"
        if said.usage is not NO_USAGE:
            for row in filter(None, (session, run)):
                (Usage.of(row) + said.usage).store(row)
        self.content.append(
            Message(
                message_id=self.ids.new("msg", self.now),
                session_id=session.pk,
                sequence=session.last_sequence,
                role=said.role,
                body=said.body,
                size=said.size,
                text=said.text,
                run_id=run.pk if run else None,
                session_version=session.version,
                created_at=self.now,
            )
        )

    def _announce(self, exchange: Exchange, run: Run) -> ToolCall:
        self._say(exchange.call, run)
        self.session.tool_call_count += 1
        self.session.open_tool_call_count += 1
        call = ToolCall(
            id=self.ids.new("call", self.now),
            session_id=self.session.pk,
            run_id=run.pk,
            tool_call_id=exchange.tool_call_id,
            name=exchange.scenario.tool,
            arguments=exchange.arguments,
            size=len(exchange.arguments),
            message_sequence=self.session.last_sequence,
            created_at=self.now,
            session_version=self.session.version,
        )
        self.content.append(call)
        return call

    def _answer(self, call: ToolCall, exchange: Exchange, run: Run, *, failed: bool) -> None:
        said = exchange.failure if failed else exchange.result
        self._say(said, run)
        self._close(call, ToolCallStatus.FAILED if failed else ToolCallStatus.SUCCEEDED)
        call.result = JSONText.of(said.body.value["content"])
        call.size += len(call.result)
        call.result_sequence = self.session.last_sequence
        call.started_at = call.created_at
        call.duration_ms = round((self.now - call.created_at).total_seconds() * 1000)

    def _close(self, call: ToolCall, status: ToolCallStatus) -> None:
        call.status, call.finished_at = status, self.now
        call.session_version = self.session.version
        self.session.open_tool_call_count -= 1

    def _remember(self, memory: JSONText, run: Run | None) -> None:
        session = self.session
        if session.working_memory_version:
            self.touch()
        session.working_memory_version += 1
        self.content.append(
            WorkingMemoryRevision(
                session_id=session.pk,
                version=session.working_memory_version,
                memory=memory,
                sequence=session.last_sequence,
                run_id=run.pk if run else None,
                actor_type=ActorType.ACCOUNT,
                actor_id=self.account.username,
                session_version=session.version,
                created_at=self.now,
            )
        )

    # --- the session ---

    def close(self) -> None:
        self.session.closed_at = self.now
        self._leave(SessionStatus.CLOSED, reason="The task is done")

    def expire(self) -> None:
        seconds = self.session.idle_timeout_seconds or 3600
        self.now = self.session.last_activity_at + timedelta(seconds=seconds)
        self.session.expired_at = self.session.expires_at = self.now
        self._leave(SessionStatus.EXPIRED, reason="idle timeout", system=True)

    def delete(self) -> None:
        """What a purged session leaves: its tombstone and its events."""
        session = self.session
        session.deleted_at = session.purged_at = self.now
        self._leave(SessionStatus.DELETED, reason="The customer asked for it")
        self.content.clear()
        for name in ("external_id", "user_id", "title", "idle_timeout_seconds"):
            setattr(session, name, None)
        session.newest_run_id = session.newest_run_status = None
        session.metadata, session.search_text = JSONText("{}"), ""
        session.working_memory_version = 0
        NO_USAGE.store(session)

    def live(self) -> None:
        """It goes on: its deadline counts from the last activity, or is its active run's."""
        session = self.session
        if session.idle_timeout_seconds is not None:
            idle = session.last_activity_at + timedelta(seconds=session.idle_timeout_seconds)
            session.expires_at = max(idle, session.active_run_deadline or idle)

    def hand_over(self, rows: Rows) -> None:
        for row in (self.session, *self.events, *self.content):
            rows.add(row)

    def _leave(self, to: SessionStatus, *, reason: str, system: bool = False) -> None:
        self.touch(activity=False)
        self.session.status = to
        self.event(
            Subject.SESSION, self.session.pk, SessionStatus.ACTIVE, to, reason=reason, system=system
        )
