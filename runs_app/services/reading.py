"""What can be read of runs, by whom."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sessions_app.actors import Actor
from sessions_app.errors import NotFound
from sessions_app.services import SessionManager

from ..models import Run
from ..querysets import RunQuerySet

# Source: contract, "Runs": no sign of life for ten minutes.
STUCK_AFTER = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilters:
    """What to look for among runs; None is any."""

    status: Collection[str] | None = None
    agent_id: str | None = None
    started_after: datetime | None = None
    started_before: datetime | None = None
    stuck: bool = False


class RunReader:
    """The reading half of `RunManager`, for one actor. Runs come as they are *now*: past its
    deadline a run is interrupted, whatever is stored."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor

    def get(self, *, run_id: str) -> Run:
        """One run.

        Raises:
            NotFound: unknown, another account's, or of a deleted session.
        """
        run = self.list_all().filter(pk=run_id).first()
        if run is None:
            raise NotFound(f"There is no run {run_id}.")
        return run

    def list_all(self) -> RunQuerySet:
        """The runs of every session that the actor may read."""
        return Run.objects.readable_by(self.actor).effective()

    def find(self, *, filters: RunFilters, now: datetime) -> RunQuerySet:
        """The runs that match, by what they are at this moment."""
        found = self.list_all().started_between(filters.started_after, filters.started_before)
        if filters.status is not None:
            found = found.with_status(filters.status, now=now)
        if filters.agent_id is not None:
            found = found.filter(agent_id=filters.agent_id)
        return found.stuck(now=now, since=now - STUCK_AFTER) if filters.stuck else found

    def list_of(self, *, session_id: str) -> RunQuerySet:
        """One session's runs.

        Raises:
            NotFound, SessionDeleted: as for the session.
        """
        session = SessionManager(self.actor).get(session_id=session_id)
        return Run.objects.filter(session=session).effective()
