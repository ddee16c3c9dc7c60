"""Notes of what a version changed and no other row tells; see `models.ChangeNote`."""

from collections.abc import Iterable

from ..models import ChangeNote, Session, ToolCall
from ..states import Subject
from ..writes import insert, new_row


def note_session(session: Session, *, version: int) -> None:
    """That the session's own fields are others since this version."""
    _note(session, Subject.SESSION, [session.session_id], version)


def note_calls(session: Session, calls: Iterable[ToolCall | str], *, version: int) -> None:
    """That these tool calls, or those of these ids, are others since this version."""
    ids = [call if isinstance(call, str) else call.id for call in calls]
    _note(session, Subject.TOOL_CALL, ids, version)


def _note(session: Session, subject: Subject, ids: list[str], version: int) -> None:
    rows = {"session_id": session.session_id, "version": version, "subject": subject.value}
    insert([new_row(ChangeNote, subject_id=each, **rows) for each in ids])
