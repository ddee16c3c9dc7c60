"""RunManager: the only writer of runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from sessions_app.errors import NotFound
from sessions_app.jsontext import JSONText
from sessions_app.models import Session
from sessions_app.services.fencing import check_attempt
from sessions_app.services.lifecycle import clean_reason, settled_session
from sessions_app.services.locking import locked_session, require_active, write_transaction
from sessions_app.usage import Usage

from ..models import Run
from ..states import RunStatus
from . import creation, settling, transitions
from .creation import NewRun, wait_seconds
from .reading import RunReader
from .transfer import Staged, restoring


class RunManager(RunReader):
    """Everything that can be done to a run, for one actor.

    Each method is one transaction under the session's row lock: lapsed runs are settled first,
    then the attempt and the transition are checked, then the run, the session's mirror of it and
    the lifecycle event are written.

    Every method raises NotFound for what the actor may not see; SessionClosed or SessionExpired
    when the session is not ACTIVE; RunEnded and RunInterrupted with the run's current state when
    it has ended; RunSuperseded for an older ``attempt``.
    """

    def create(
        self,
        *,
        session_id: str,
        new: NewRun,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> Run:
        """Create a run, and start it unless ``start`` is false or it must queue.

        Raises:
            RunActive: another top-level run is started and ``if_active`` is ``reject``.
            NotFound: ``retry_of`` or ``parent_run_id`` is no run of this session.
            InvalidTransition: the parent run has ended.
        """
        with self._active_session(session_id, now, if_match) as (session, moment):
            return creation.create(session, new, actor=self.actor, now=moment)

    def restore(self, staged: Staged, *, now: datetime | None = None) -> Session:
        """Store a session that was read from a file (`transfer.stage`), as one of the account's.

        It is here because the file holds the session's runs, too.

        Raises:
            AlreadyExists: the account has a session of its external id.
        """
        with write_transaction():
            return restoring.restore(staged, actor=self.actor, now=now or timezone.now())

    def start(
        self,
        *,
        run_id: str,
        attempt: int | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> Run:
        """Start a queued run: its first attempt."""
        with self._run(run_id, attempt, now, if_match) as (session, run, moment):
            transitions.refuse_unless(run, {RunStatus.PENDING})
            transitions.begin_attempt(session, run, actor=self.actor, now=moment)
            return run

    def resume(
        self,
        *,
        run_id: str,
        attempt: int | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> Run:
        """Go on with an interrupted or waiting run: the next attempt, which fences the last."""
        resumable = {RunStatus.INTERRUPTED, RunStatus.WAITING}
        with self._run(run_id, attempt, now, if_match, RunStatus.INTERRUPTED) as found:
            session, run, moment = found
            transitions.refuse_unless(run, resumable)
            transitions.begin_attempt(session, run, actor=self.actor, now=moment)
            return run

    def wait(
        self,
        *,
        run_id: str,
        reason: str,
        timeout_seconds: int | None = None,
        attempt: int | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> Run:
        """Let a running run wait for something outside, until a deadline.

        Raises:
            InvalidRequest: a timeout out of bounds.
        """
        seconds = wait_seconds(timeout_seconds)
        cleaned = clean_reason(reason)
        with self._run(run_id, attempt, now, if_match) as (session, run, moment):
            transitions.refuse_unless(run, {RunStatus.RUNNING})
            run.wait_reason, run.heartbeat_at = cleaned, moment
            run.lease_expires_at = moment + timedelta(seconds=seconds)
            transitions.move(
                session, run, RunStatus.WAITING, actor=self.actor, reason=cleaned, now=moment
            )
            return run

    def heartbeat(
        self, *, run_id: str, attempt: int | None = None, now: datetime | None = None
    ) -> Run:
        """A sign of life: renews the lease and the session's expiry, and no version.

        Of a cancelled run it renews nothing and answers, so that the worker learns of it.
        """
        with self._locked_run(run_id, now) as (session, run, moment):
            check_attempt(run.run_id, current=run.attempt, given=attempt)
            if run.status == RunStatus.CANCELLED:
                return run
            require_active(session)
            transitions.refuse_ended(run)
            transitions.refuse_unless(run, {RunStatus.RUNNING, RunStatus.WAITING})
            transitions.renew(session, run, now=moment)
            return run

    def complete(
        self,
        *,
        run_id: str,
        output: Any = None,
        usage: Usage | None = None,
        attempt: int | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> Run:
        """End a run well. ``usage`` replaces what its messages have counted."""
        text = None if output is None else JSONText.of(output, pointer="/output")
        with self._run(run_id, attempt, now, if_match) as (session, run, moment):
            run.output = text
            transitions.report_usage(session, run, usage)
            transitions.end(session, run, RunStatus.COMPLETED, actor=self.actor, now=moment)
            return run

    def fail(
        self,
        *,
        run_id: str,
        error: Any,
        usage: Usage | None = None,
        attempt: int | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> Run:
        """End a run badly; also one that was interrupted."""
        text = JSONText.of(error, pointer="/error")
        with self._run(run_id, attempt, now, if_match, RunStatus.INTERRUPTED) as found:
            session, run, moment = found
            run.error = text
            transitions.report_usage(session, run, usage)
            transitions.end(session, run, RunStatus.FAILED, actor=self.actor, now=moment)
            return run

    def cancel(
        self,
        *,
        run_id: str,
        reason: str | None = None,
        attempt: int | None = None,
        if_match: int | None = None,
        now: datetime | None = None,
    ) -> Run:
        """Cancel a run at once, whether or not its worker lives (report RUN-03)."""
        cleaned = clean_reason(reason)
        with self._run(run_id, attempt, now, if_match, RunStatus.INTERRUPTED) as found:
            session, run, moment = found
            transitions.end(
                session, run, RunStatus.CANCELLED, actor=self.actor, reason=cleaned, now=moment
            )
            return run

    def interrupt_lapsed(self, *, session_id: str, now: datetime | None = None) -> None:
        """Interrupt all that has lapsed, also what the session's row does not know of, and
        whatever the session's status (the sweep's call)."""
        with locked_session(session_id, actor=self.actor) as session:
            settling.interrupt_lapsed(session, now=now or timezone.now())

    # --- inside --------------------------------------------------------------------------------

    @contextmanager
    def _active_session(
        self, session_id: str, now: datetime | None, if_match: int | None
    ) -> Iterator[tuple[Session, datetime]]:
        with settled_session(session_id, actor=self.actor, now=now, if_match=if_match) as (
            session,
            moment,
        ):
            require_active(session)
            yield session, moment

    @contextmanager
    def _locked_run(
        self, run_id: str, now: datetime | None, if_match: int | None = None
    ) -> Iterator[tuple[Session, Run, datetime]]:
        session_id = self._session_of(run_id)
        with settled_session(session_id, actor=self.actor, now=now, if_match=if_match) as (
            session,
            moment,
        ):
            yield session, transitions.load(session, run_id), moment

    @contextmanager
    def _run(
        self,
        run_id: str,
        attempt: int | None,
        now: datetime | None,
        if_match: int | None,
        *allowed: RunStatus,
    ) -> Iterator[tuple[Session, Run, datetime]]:
        with self._locked_run(run_id, now, if_match) as (session, run, moment):
            require_active(session)
            check_attempt(run.run_id, current=run.attempt, given=attempt)
            transitions.refuse_ended(run, allowed=allowed)
            yield session, run, moment

    def _session_of(self, run_id: str) -> str:
        found = Run.objects.readable_by(self.actor).filter(pk=run_id)
        session_id = found.values_list("session_id", flat=True).first()
        if session_id is None:
            raise NotFound(f"There is no run {run_id}.")
        return session_id
