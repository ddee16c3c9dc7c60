"""What can go wrong, as types that carry data and know no HTTP.

``code`` is the stable name that clients see; ``data`` are typed extras; ``config.problems`` maps
each class to a status, and a test asserts that none is left out.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class DossierError(Exception):
    """Base of every refusal. ``hint`` says what the caller can do next."""

    code: ClassVar[str]
    title: ClassVar[str]
    hint: ClassVar[str] = ""

    def __init__(self, detail: str, **data: Any) -> None:
        self.detail = f"{detail} {self.hint}".strip()
        self.data: Mapping[str, Any] = data
        super().__init__(self.detail)


def pointer_token(key: str) -> str:
    """A key as one token of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


class InvalidJSON(DossierError):
    code, title = "invalid_json", "The body is not acceptable JSON"


class InvalidRequest(DossierError):
    """One or more values are not acceptable; ``pointers`` maps JSON pointers to reasons."""

    code, title = "invalid_request", "The request is not valid"

    def __init__(self, detail: str, *, pointers: Mapping[str, str] | None = None) -> None:
        self.pointers = dict(pointers or {})
        super().__init__(detail)

    @classmethod
    def at(cls, pointer: str, reason: str) -> "InvalidRequest":
        """A refusal of the one value that ``pointer`` (RFC 6901) names."""
        return cls(f"{pointer or 'body'}: {reason}", pointers={pointer: reason})


class InvalidCursor(DossierError):
    code, title = "invalid_cursor", "The cursor is not valid"
    hint = "Start again without a cursor."


class NotFound(DossierError):
    code, title = "not_found", "Not found"


class PermissionDenied(DossierError):
    code, title = "permission_denied", "Permission denied"


class SessionClosed(DossierError):
    code, title = "session_closed", "The session is closed"
    hint = "Resume the session first (POST …/resume)."


class SessionExpired(DossierError):
    code, title = "session_expired", "The session has expired"
    hint = "Resume the session first (POST …/resume)."


class SessionDeleted(DossierError):
    code, title = "session_deleted", "The session was deleted"
    hint = "Its data is gone; create a new session."


class InvalidTransition(DossierError):
    code, title = "invalid_transition", "That transition is not possible"
    hint = "Read the current status and choose a transition that leaves it."


class AlreadyExists(DossierError):
    code, title = "already_exists", "It exists already"
    hint = "Use the existing one, or send if_exists=return."


class RunActive(DossierError):
    code, title = "run_active", "Another run is active"
    hint = "Wait for it, cancel it, or send if_active=cancel or if_active=queue."


class RunEnded(DossierError):
    code, title = "run_ended", "The run has ended"
    hint = "Start a new run."


class RunInterrupted(DossierError):
    code, title = "run_interrupted", "The run was interrupted"
    hint = "Resume the run first (POST /runs/{run_id}/resume)."


class RunSuperseded(DossierError):
    code, title = "run_superseded", "A newer attempt has taken over the run"
    hint = "Stop this worker: its attempt is no longer the current one."


class SequenceMismatch(DossierError):
    code, title = "sequence_mismatch", "The session has moved on"
    hint = "Read the messages after your last sequence, then send again."


class VersionMismatch(DossierError):
    code, title = "version_mismatch", "The version is not the current one"
    hint = "Read it again, apply your change, and send the new ETag."


class HasResult(DossierError):
    code, title = "has_result", "The message's tool call has a result"
    hint = "Remove the message with the result first."


class OrphanToolResult(DossierError):
    code, title = "orphan_tool_result", "A tool result answers no unanswered call"
    hint = "Store the assistant message with its tool_calls first, in order."


class ClientMessageIdReused(DossierError):
    code, title = "client_message_id_reused", "The client_message_id names another message"
    hint = "Send the stored content, or a new client_message_id."


class IdempotencyKeyReused(DossierError):
    code, title = "idempotency_key_reused", "The idempotency key was used for another request"
    hint = "Send the same request again, or a new key."


class IdempotencyInProgress(DossierError):
    code, title = "idempotency_in_progress", "The same request is still being worked on"
    hint = "Send it again a little later, with the same key."


class PayloadTooLarge(DossierError):
    code, title = "payload_too_large", "The payload is too large"
    hint = "Send less at a time."


class DatabaseBusy(DossierError):
    code, title = "database_busy", "The database is busy"
    hint = "Nothing was stored; send it again a little later."
