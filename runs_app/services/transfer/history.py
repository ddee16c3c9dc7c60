"""The lifecycle that a file's events tell, held against where its session and runs stand."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sessions_app.errors import InvalidRequest
from sessions_app.models import Session, SessionEvent
from sessions_app.states import SESSION_TRANSITIONS, Subject

from ...states import RUN_TRANSITIONS
from .reading import at_line
from .scratch import Scratch

# Of these, each event goes on where the one before it ended.
_TRANSITIONS: Mapping[str, Mapping[str, frozenset[str]]] = {
    Subject.SESSION.value: {k.value: frozenset(v) for k, v in SESSION_TRANSITIONS.items()},
    Subject.RUN.value: {k.value: frozenset(v) for k, v in RUN_TRANSITIONS.items()},
}
_SESSION_LINE = 2
_RUNS = """
SELECT line, run_id, became.status, run.status FROM run
LEFT JOIN became ON became.subject_id = run.run_id WHERE became.status IS NOT run.status
ORDER BY line
"""


class Fact(NamedTuple):
    """What an import itself does to the session or to one of its runs."""

    subject: Subject
    subject_id: str
    from_status: str | None
    to_status: str


def make_table(scratch: Scratch) -> None:
    scratch.execute("CREATE TABLE became (subject_id PRIMARY KEY, status) WITHOUT ROWID")


def note(scratch: Scratch, event: SessionEvent) -> None:
    """Remember what something has become.

    Raises:
        InvalidRequest: it cannot have become that, from what it was by the events before.
    """
    if event.subject not in _TRANSITIONS:
        return
    before = _status(scratch, event.subject_id)
    if event.from_status != before:
        raise InvalidRequest.at("/from_status", f"must be {before}, where the one before it ended")
    if event.to_status is None or not _may_become(event.subject, before, event.to_status):
        raise InvalidRequest.at("/to_status", f"is no transition from {before}")
    values = (event.subject_id, event.to_status)
    scratch.execute("INSERT OR REPLACE INTO became VALUES (?, ?)", values)


def check(scratch: Scratch, session: Session) -> None:
    """Hold the runs and the session, as they will be, against their events.

    Raises:
        InvalidRequest: by its events one of them cannot be what its line says.
    """
    lines = [(_SESSION_LINE, _fact_of(scratch, session))]
    for line, fact in (*lines, *_facts_of_runs(scratch)):
        if not _may_become(fact.subject, fact.from_status, fact.to_status):
            with at_line(line):
                reason = f"is {fact.to_status}, and by its events {fact.from_status}"
                raise InvalidRequest.at("/status", reason)


def facts(scratch: Scratch, session: Session) -> Iterator[Fact]:
    """That it was imported; and what becomes of runs that cannot go on, or had lapsed."""
    yield _fact_of(scratch, session)
    for _, fact in _facts_of_runs(scratch):
        yield fact


def _fact_of(scratch: Scratch, session: Session) -> Fact:
    session_id = session.session_id
    return Fact(Subject.SESSION, session_id, _status(scratch, session_id), session.status)


def _facts_of_runs(scratch: Scratch) -> Iterator[tuple[int, Fact]]:
    for line, *values in scratch.execute(_RUNS):
        yield line, Fact(Subject.RUN, *values)


def _status(scratch: Scratch, subject_id: str) -> str | None:
    found = scratch.first("SELECT status FROM became WHERE subject_id = ?", (subject_id,))
    return found[0] if found else None


def _may_become(subject: str, before: str | None, after: str) -> bool:
    """A session that is imported becomes what it was."""
    if before is None or (subject == Subject.SESSION and before == after):
        return True
    return after in _TRANSITIONS[subject].get(before, ())
