"""The lifecycle of a session and of a tool call, as data.

ACTIVE ──close──▶ CLOSED ──┐
  │ ▲                      ├─resume─▶ ACTIVE
  │ └──────────────────────┤
  └──expire─▶ EXPIRED ─────┘          any of the three ──delete──▶ DELETED (final)
"""

from datetime import datetime

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class SessionStatus(TextChoices):
    ACTIVE = "ACTIVE", _("Active")
    CLOSED = "CLOSED", _("Closed")
    EXPIRED = "EXPIRED", _("Expired")
    DELETED = "DELETED", _("Deleted")


SESSION_TRANSITIONS: dict[SessionStatus, frozenset[SessionStatus]] = {
    SessionStatus.ACTIVE: frozenset(
        {SessionStatus.CLOSED, SessionStatus.EXPIRED, SessionStatus.DELETED}
    ),
    SessionStatus.CLOSED: frozenset({SessionStatus.ACTIVE, SessionStatus.DELETED}),
    SessionStatus.EXPIRED: frozenset({SessionStatus.ACTIVE, SessionStatus.DELETED}),
    SessionStatus.DELETED: frozenset(),
}


class ToolCallStatus(TextChoices):
    PENDING = "PENDING", _("Pending")
    RUNNING = "RUNNING", _("Running")
    SUCCEEDED = "SUCCEEDED", _("Succeeded")
    FAILED = "FAILED", _("Failed")
    CANCELLED = "CANCELLED", _("Cancelled")


OPEN_TOOL_CALLS = frozenset({ToolCallStatus.PENDING, ToolCallStatus.RUNNING})
FINAL_TOOL_CALLS = frozenset(ToolCallStatus) - OPEN_TOOL_CALLS

TOOL_CALL_TRANSITIONS: dict[ToolCallStatus, frozenset[ToolCallStatus]] = {
    ToolCallStatus.PENDING: frozenset({ToolCallStatus.RUNNING}) | FINAL_TOOL_CALLS,
    ToolCallStatus.RUNNING: FINAL_TOOL_CALLS,
    **{final: frozenset() for final in FINAL_TOOL_CALLS},
}


# A run's statuses, as the session row mirrors its newest run's. They are runs_app's, which may not
# be asked from here; a test holds the two together.
RUN_STATUSES = (
    "PENDING",
    "RUNNING",
    "WAITING",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "INTERRUPTED",
)
UNFINISHED_RUNS = frozenset({"PENDING", "RUNNING", "WAITING"})
INTERRUPTED_RUN = "INTERRUPTED"
# A newest run that leaves an active session to a person.
TROUBLED_RUNS = ("FAILED", INTERRUPTED_RUN, "WAITING")


class Subject(TextChoices):
    """What a lifecycle event is about."""

    SESSION = "session", _("Session")
    RUN = "run", _("Run")
    TOOL_CALL = "tool_call", _("Tool call")
    CONTENT = "content", _("Content")


class ActorType(TextChoices):
    ACCOUNT = "account", _("Account")
    OPERATOR = "operator", _("Operator")
    SYSTEM = "system", _("System")


def effective_status(status: str, *, expires_at: datetime | None, now: datetime) -> SessionStatus:
    """The status that every endpoint and page shows: a session at its deadline *is* expired.

    Source: lifecycle page, "Expiry"; report TTL-03 (rows past their time stayed readable by id).
    """
    if status == SessionStatus.ACTIVE and expires_at is not None and expires_at <= now:
        return SessionStatus.EXPIRED
    return SessionStatus(status)


class ContentPage(TextChoices):
    """Where somebody can read what another's session contains."""

    TRANSCRIPT = "transcript", _("Transcript")
    MEMORY = "memory", _("Working memory")
    TOOLS = "tools", _("Tool calls")
    RUNS = "runs", _("Runs")
    RAW = "raw", _("Raw data")
    API = "api", _("REST API")


class BulkOutcome(TextChoices):
    """What has become of one session of a `BulkMove`."""

    CHANGED = "CHANGED", _("Changed")
    KEPT = "KEPT", _("Stays as it is")
    REFUSED = "REFUSED", _("Failed")


class BulkEnd(TextChoices):
    """Why nothing more is done of a `BulkMove`."""

    DONE = "DONE", _("Done")
    STOPPED = "STOPPED", _("Stopped")
    WITHDRAWN = "WITHDRAWN", _("The right was withdrawn")
