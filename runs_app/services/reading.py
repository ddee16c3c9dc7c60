"""What can be read of runs, by whom."""

from sessions_app.actors import Actor
from sessions_app.errors import NotFound
from sessions_app.services import SessionManager

from ..models import Run
from ..querysets import RunQuerySet


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

    def list_of(self, *, session_id: str) -> RunQuerySet:
        """One session's runs.

        Raises:
            NotFound, SessionDeleted: as for the session.
        """
        session = SessionManager(self.actor).get(session_id=session_id)
        return Run.objects.filter(session=session).effective()
