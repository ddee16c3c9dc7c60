"""What can be read of a session, by whom."""

from django.db.models import QuerySet

from ..actors import Actor
from ..errors import NotFound
from ..jsontext import JSONText
from ..models import Message, Session, SessionEvent, ToolCall, WorkingMemoryRevision
from ..states import SessionStatus
from .locking import deleted
from .memory import current_memory


class SessionReader:
    """The reading half of `SessionManager`, for one actor.

    Every method raises NotFound for what the actor may not see, exactly as for what does not
    exist, and SessionDeleted for a tombstone.
    """

    def __init__(self, actor: Actor) -> None:
        self.actor = actor

    def get(self, *, session_id: str) -> Session:
        """Find one session, whatever its status but DELETED."""
        session = Session.objects.readable_by(self.actor).filter(pk=session_id).first()
        if session is None:
            raise NotFound(f"There is no session {session_id}.")
        if session.status == SessionStatus.DELETED:
            raise deleted(session)
        return session

    def read_history(
        self, *, session_id: str, include_superseded: bool = False
    ) -> QuerySet[Message]:
        """The raw conversation, in order; removed messages are not part of it."""
        history = Message.objects.filter(session=self.get(session_id=session_id))
        shown = history.filter(removed_at=None) if include_superseded else history.live()
        return shown.order_by("sequence")

    def read_message(self, *, session_id: str, sequence: int) -> Message:
        """One message, whole; also one that was removed (its content is gone) or superseded."""
        session = self.get(session_id=session_id)
        message = Message.objects.filter(session=session, sequence=sequence).first()
        if message is None:
            raise NotFound(f"There is no message {sequence}.")
        return message

    def read_memory(self, *, session_id: str) -> tuple[Session, JSONText]:
        """The session and its current working memory."""
        session = self.get(session_id=session_id)
        return session, current_memory(session)

    def memory_revisions(self, *, session_id: str) -> QuerySet[WorkingMemoryRevision]:
        """All revisions of the working memory."""
        return WorkingMemoryRevision.objects.filter(session=self.get(session_id=session_id))

    def tool_calls(self, *, session_id: str) -> QuerySet[ToolCall]:
        """The tool history."""
        return ToolCall.objects.filter(session=self.get(session_id=session_id))

    def tool_call(self, *, id: str) -> ToolCall:
        """One tool call by our id."""
        call = ToolCall.objects.readable_by(self.actor).filter(pk=id).first()
        if call is None:
            raise NotFound(f"There is no tool call {id}.")
        return call

    def events(self, *, session_id: str) -> QuerySet[SessionEvent]:
        """Who did what to the session and its runs, and why."""
        return SessionEvent.objects.filter(session=self.get(session_id=session_id))
