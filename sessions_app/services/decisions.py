"""What an operator can decide of a session: the right that it takes, and the call that does it."""

from collections.abc import Callable
from typing import NamedTuple

from ..actors import Actor
from ..states import SessionStatus
from .manager import SessionManager


class Decision(NamedTuple):
    """``carry_out`` takes ``session_id`` and ``reason``, and tells whether anything changed."""

    permission: str
    carry_out: Callable[..., bool]


def _delete(manager: SessionManager, *, session_id: str, reason: str) -> bool:
    manager.delete(session_id=session_id, reason=reason)
    return True


DECISIONS: dict[SessionStatus, Decision] = {
    SessionStatus.CLOSED: Decision(
        "sessions_app.close_session", lambda manager, **move: manager.close(**move)[1]
    ),
    SessionStatus.EXPIRED: Decision(
        "sessions_app.expire_session", lambda manager, **move: manager.expire(**move)[1]
    ),
    SessionStatus.ACTIVE: Decision(
        "sessions_app.resume_session", lambda manager, **move: manager.resume(**move)[1] is not None
    ),
    SessionStatus.DELETED: Decision("sessions_app.delete_session", _delete),
}


def bring(actor: Actor, session_id: str, *, to: SessionStatus, reason: str) -> bool:
    """Bring the session to that status; tell whether anything changed.

    Raises:
        NotFound, SessionDeleted, InvalidTransition: it stays as it is.
    """
    return DECISIONS[to].carry_out(SessionManager(actor), session_id=session_id, reason=reason)
