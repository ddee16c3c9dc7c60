"""What can go wrong, as types that carry data and know no HTTP.

``code`` is the stable name that clients see; ``data`` are typed extras; ``config.problems`` maps
each class to a status and a hint, and a test asserts that none is left out.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class DossierError(Exception):
    """Base of every refusal. What its caller can do next is for each door to say in its words."""

    code: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, detail: str, **data: Any) -> None:
        self.detail = detail
        self.data: Mapping[str, Any] = data
        super().__init__(detail)


def pointer_token(key: str) -> str:
    """A key as one token of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


class InvalidJSON(DossierError):
    code, title = "invalid_json", "The body is not acceptable JSON"


class InvalidRequest(DossierError):
    """One or more values are not acceptable; ``pointers`` maps JSON pointers to reasons."""

    code, title = "invalid_request", "The request is not valid"

    def __init__(
        self, detail: str, *, pointers: Mapping[str, str] | None = None, **data: Any
    ) -> None:
        self.pointers = dict(pointers or {})
        super().__init__(detail, **data)

    @classmethod
    def at(cls, pointer: str, reason: str) -> "InvalidRequest":
        """A refusal of the one value that ``pointer`` (RFC 6901) names."""
        return cls(f"{pointer or 'body'}: {reason}", pointers={pointer: reason})


class InvalidItem(InvalidRequest):
    code, title = "invalid_item", "The item is not valid"


class ItemAlreadyInConversation(DossierError):
    code, title = "item_already_in_conversation", "Item already in conversation"


class InvalidCursor(DossierError):
    code, title = "invalid_cursor", "The cursor is not valid"


class NotFound(DossierError):
    code, title = "not_found", "Not found"


class PermissionDenied(DossierError):
    code, title = "permission_denied", "Permission denied"


class SessionClosed(DossierError):
    code, title = "session_closed", "The session is closed"


class SessionExpired(DossierError):
    code, title = "session_expired", "The session has expired"


class SessionDeleted(DossierError):
    code, title = "session_deleted", "The session was deleted"


class InvalidTransition(DossierError):
    code, title = "invalid_transition", "That transition is not possible"


class AlreadyExists(DossierError):
    code, title = "already_exists", "It exists already"


class RunActive(DossierError):
    code, title = "run_active", "Another run is active"


class RunEnded(DossierError):
    code, title = "run_ended", "The run has ended"


class RunInterrupted(DossierError):
    code, title = "run_interrupted", "The run was interrupted"


class RunSuperseded(DossierError):
    code, title = "run_superseded", "A newer attempt has taken over the run"


class SequenceMismatch(DossierError):
    code, title = "sequence_mismatch", "The session has moved on"


class VersionMismatch(DossierError):
    code, title = "version_mismatch", "The version is not the current one"


class HasResult(DossierError):
    code, title = "has_result", "The message's tool call has a result"


class OrphanToolResult(DossierError):
    code, title = "orphan_tool_result", "A tool result answers no unanswered call"


class ClientMessageIdReused(DossierError):
    code, title = "client_message_id_reused", "The client_message_id names another message"


class IdempotencyKeyReused(DossierError):
    code, title = "idempotency_key_reused", "The idempotency key was used for another request"


class IdempotencyInProgress(DossierError):
    code, title = "idempotency_in_progress", "The same request is still being worked on"


class PayloadTooLarge(DossierError):
    code, title = "payload_too_large", "The payload is too large"


class DatabaseBusy(DossierError):
    code, title = "database_busy", "The database is busy"
