"""What of one line must fit together. Every function raises InvalidRequest."""

from sessions_app.jsontext import JSONText
from sessions_app.models import Session, ToolCall
from sessions_app.states import OPEN_TOOL_CALLS, SessionStatus

from ...models import Run
from ...states import STARTED, UNFINISHED
from .reading import Fields


def keep_time_of_status(session: Session, fields: Fields) -> None:
    """Each status has its own time, and no other's."""
    of_status = {SessionStatus.CLOSED: "closed_at", SessionStatus.EXPIRED: "expired_at"}
    for status, name in of_status.items():
        if (session.status == status) != (getattr(session, name) is not None):
            raise fields.refusal(name, f"does not fit the status {session.status}")
    if session.status != SessionStatus.EXPIRED:
        session.expires_at = None  # of an ACTIVE one it is counted from the last activity


def check_times_of_run(run: Run, fields: Fields) -> None:
    """As the table's constraints demand it; nor may an unfinished run be without a deadline."""
    unfinished, started = run.status in UNFINISHED, run.status in STARTED
    if unfinished == (run.ended_at is not None):
        raise fields.refusal("ended_at", f"does not fit the status {run.status}")
    if unfinished and started == (run.started_at is None):
        raise fields.refusal("started_at", f"does not fit the status {run.status}")
    if unfinished and run.lease_expires_at is None:
        raise fields.refusal("lease_expires_at", "must be a time while the run has not ended")


def check_state_of_call(call: ToolCall, fields: Fields) -> None:
    """As the table's constraints demand it; and what a message answered has a result."""
    if (call.status in OPEN_TOOL_CALLS) != (call.finished_at is None):
        raise fields.refusal("finished_at", f"does not fit the status {call.status}")
    if call.message_sequence is not None and call.tool_call_id is None:
        raise fields.refusal("tool_call_id", "must be a string where a message made the call")
    if call.result_sequence is None:
        return
    if call.message_sequence is None or call.result_sequence <= call.message_sequence:
        raise fields.refusal("result_sequence", "must come after message_sequence")
    if call.result is None:
        raise fields.refusal("result", "is missing, though a message has answered the call")


def run_error(fields: Fields) -> JSONText | None:
    """A run's ``error``, in the form in which the API takes it."""
    error = fields.take("error")
    if error is None:
        return None
    types = {"type": str, "message": str, "retryable": bool}
    usual = isinstance(error, dict) and {"type", "message"} <= error.keys() <= types.keys()
    if not usual or not all(isinstance(error[name], types[name]) for name in error):
        raise fields.refusal("error", "must be an object with type and message")
    return JSONText.of(error)
