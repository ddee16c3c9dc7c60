"""The runs of a file among each other, and what becomes of those that were not finished."""

from datetime import datetime, timedelta

from django.conf import settings

from sessions_app.errors import InvalidRequest
from sessions_app.models import Session
from sessions_app.states import SessionStatus

from ...states import RunStatus
from .reading import at_line
from .scratch import Scratch

_REFERENCES = {"parent_run_id": "parent_run_id", "retry_of_id": "retry_of"}
# The runs with how deep they stand: two levels below a top-level one at most
# (`runs_app.services.creation`). In a circle, and below one, none has a depth.
_DEPTHS = """
WITH RECURSIVE tree(run_id, depth, waits) AS (
    SELECT run_id, 1, status = 'PENDING' FROM run WHERE parent_run_id IS NULL
    UNION ALL
    SELECT run.run_id, depth + 1, waits AND run.status = 'PENDING'
    FROM run JOIN tree ON run.parent_run_id = tree.run_id WHERE depth < 3
)
"""
_TOO_DEEP = f"{_DEPTHS} SELECT min(line) FROM run WHERE run_id NOT IN (SELECT run_id FROM tree)"  # noqa: S608
# All but queued runs below none but queued ones, which can go on waiting.
_CUT_OFF = f"""{_DEPTHS}
UPDATE run SET status = 'INTERRUPTED', ended_at = min(lease_expires_at, ?)
WHERE status IN ('RUNNING', 'WAITING') OR (
    status = 'PENDING' AND NOT (? AND run_id IN (SELECT run_id FROM tree WHERE waits))
)
"""  # noqa: S608
_WAIT = "UPDATE run SET lease_expires_at = min(lease_expires_at, ?) WHERE status = 'PENDING'"


def resolve(scratch: Scratch) -> None:
    """Give the references among runs their new names, now that all are known.

    Raises:
        InvalidRequest: one names no run of the file, or they stand deeper than they may.
    """
    scratch.execute("CREATE INDEX run_by_parent ON run (parent_run_id)")
    scratch.execute("CREATE UNIQUE INDEX run_by_id ON run (run_id)")
    for column, name in _REFERENCES.items():
        lost = scratch.first(
            f"SELECT min(line) FROM run WHERE {column} NOT IN (SELECT old FROM ids)"  # noqa: S608
        )
        _refuse(lost[0], name, "is not in this file")
        scratch.execute(
            f"UPDATE run SET {column} = (SELECT new FROM ids WHERE old = {column}) "  # noqa: S608
            f"WHERE {column} IS NOT NULL"
        )
    _refuse(scratch.first(_TOO_DEEP)[0], "parent_run_id", "stands too deep, or in a circle")


def settle(scratch: Scratch, session: Session, *, now: datetime) -> None:
    """Interrupt the runs whose worker is not here, and let the session know of the others."""
    is_active = session.status == SessionStatus.ACTIVE
    at = now.isoformat(timespec="microseconds")
    scratch.execute(_CUT_OFF, (at, is_active))
    longest = now + timedelta(hours=settings.PENDING_TTL_HOURS)
    scratch.execute(_WAIT, (longest.isoformat(timespec="microseconds"),))
    _mirror(scratch, session)


def _mirror(scratch: Scratch, session: Session) -> None:
    """What `transitions.mirror` keeps in the session's row, of runs none of which is started."""
    failed, queued_until = scratch.first(
        "SELECT count(*) FILTER (WHERE status = 'FAILED'), "
        "min(lease_expires_at) FILTER (WHERE status = 'PENDING') FROM run"
    )
    session.failed_run_count, session.other_run_deadline = failed, _moment(queued_until)
    newest = scratch.first(
        "SELECT run_id, status, lease_expires_at FROM run WHERE parent_run_id IS NULL "
        "ORDER BY line DESC LIMIT 1"
    )
    if newest is not None:
        session.newest_run_id, session.newest_run_status, until = newest
        queued = session.newest_run_status == RunStatus.PENDING
        session.newest_run_deadline = _moment(until) if queued else None


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _refuse(line: int | None, name: str, reason: str) -> None:
    if line is not None:
        with at_line(line):
            raise InvalidRequest.at(f"/{name}", reason)
