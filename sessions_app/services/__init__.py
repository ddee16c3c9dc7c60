"""The service layer: every write of session state is one call of `SessionManager`."""

from ..actors import Actor
from .creation import NewSession, SessionChanges
from .forking import NewFork
from .manager import SessionManager
from .messages import Appended
from .recording import Outcome

__all__ = [
    "Actor",
    "Appended",
    "NewFork",
    "NewSession",
    "Outcome",
    "SessionChanges",
    "SessionManager",
]
