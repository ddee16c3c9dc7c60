"""Whether a session is stored as the model says it is; read as clients read it."""

from typing import Any

from runs_app.models import Run
from runs_app.states import effective_status as status_of_run
from sessions_app.models import Message, Session, SessionEvent, ToolCall
from sessions_app.services.memory import current_memory
from sessions_app.states import effective_status
from tests.domain import later
from tests.model import reference

# What time does: true at once, and written down by whoever comes by.
_LAPSES = {"INTERRUPTED", "EXPIRED"}
_ROLES = {"text": "user", "calls": "assistant", "result": "tool", "error": "tool"}


def assert_same(
    model: reference.Session, ids: dict[Any, str], clock: int, *, settled: bool = False
) -> None:
    """Compare everything, and note the ids of runs and calls that are new.

    ``settled``: the sweep was here, so that nothing may be left to be written down.
    """
    row = Session.objects.get(pk=ids[model])
    now = later(clock)
    assert effective_status(row.status, expires_at=row.expires_at, now=now) == model.status
    _assert_story(row, model.story, row.pk, settled)
    if model.status == "DELETED":
        return
    assert {name: getattr(row, name) for name in model.counters()} == model.counters()
    if model.status == "ACTIVE":
        assert row.expires_at == (None if model.expires is None else later(model.expires))
    _assert_messages(row, model)
    _assert_runs(row, model, ids, clock, settled)
    _assert_calls(row, model, ids)
    assert current_memory(row).value["extra"] == model.memory


def _assert_messages(row: Session, model: reference.Session) -> None:
    stored = Message.objects.filter(session=row).order_by("sequence")
    told = [(place, _ROLES[kind]) for place, kind in enumerate(model.messages, start=1)]
    assert list(stored.values_list("sequence", "role")) == told


def _assert_runs(
    row: Session, model: reference.Session, ids: dict[Any, str], clock: int, settled: bool
) -> None:
    stored = list(Run.objects.filter(session=row).effective().order_by("run_id"))
    found = [
        (status_of_run(run.status, deadline=run.deadline, now=later(clock)), run.attempt)
        for run in stored
    ]
    assert found == [(run.status, run.attempt) for run in model.runs]
    for told, run in zip(model.runs, stored, strict=True):
        ids[told] = run.pk
        assert (run.ended_at is None) == (run.status in {"PENDING", "RUNNING", "WAITING"})
        assert not told.is_unfinished or run.deadline == later(model.deadline_of(told))
        _assert_story(row, told.story, run.pk, settled)


def _assert_calls(row: Session, model: reference.Session, ids: dict[Any, str]) -> None:
    stored = list(ToolCall.objects.filter(session=row).order_by("id"))
    found = [
        (c.tool_call_id, c.status, c.message_sequence, c.run_id, c.result_sequence is not None)
        for c in stored
    ]
    told = [
        (call.name, call.status, call.made_at, ids[call.run] if call.run else None, call.answered)
        for call in model.calls
    ]
    assert found == told
    ids.update(zip(model.calls, [call.pk for call in stored], strict=True))
    settled = SessionEvent.objects.filter(session=row, subject="tool_call")
    assert settled.count() == model.settled_calls


def _assert_story(row: Session, story: list[str], subject_id: str, settled: bool) -> None:
    """The events tell every status, in order; only what has lapsed may still be missing."""
    events = SessionEvent.objects.filter(session=row, subject_id=subject_id).order_by("sequence")
    told = list(events.values_list("to_status", flat=True))
    missing = story[len(told) :]
    assert told == story[: len(told)]
    assert not missing if settled else set(missing) <= _LAPSES
