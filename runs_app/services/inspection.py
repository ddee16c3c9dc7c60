"""One run with all that belongs to it, as far as a page can show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from django.db.models import Case, Model, QuerySet, TextField, When
from django.db.models.functions import Cast, Left

from sessions_app.models import Message, SessionEvent, ToolCall, WorkingMemoryRevision
from sessions_app.states import Subject

from ..models import Run

MOST_CALLS = 200
MOST_CHILDREN = 50
MOST_MESSAGES = 50
MOST_EVENTS = 100
MOST_MARKS = 1_000
# A message up to this size is read whole; of a longer one, so many characters.
WHOLE_BYTES = 16 * 1024
HEAD_CHARACTERS = 4_000

RowT_co = TypeVar("RowT_co", bound=Model, covariant=True)


@dataclass(frozen=True, slots=True)
class Some(Generic[RowT_co]):
    """Rows up to a limit, and whether there are more."""

    rows: Sequence[RowT_co]
    has_more: bool


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """The working memory before a run and after it: the same revision if the run wrote none."""

    before: WorkingMemoryRevision | None
    after: WorkingMemoryRevision | None

    @property
    def is_of_run(self) -> bool:
        return self.before != self.after


def calls_of(run: Run) -> Some[ToolCall]:
    """The run's tool calls in order, without what went in and came out."""
    calls = ToolCall.objects.filter(run=run).order_by("id")
    return _some(calls.defer("arguments", "result", "error_message"), MOST_CALLS)


def children_of(run: Run) -> Some[Run]:
    children = Run.objects.filter(parent_run=run).effective().select_related("session")
    light = children.light().defer("session__metadata", "session__search_text")
    return _some(light.order_by("run_id"), MOST_CHILDREN)


def messages_of(run: Run) -> Some[Message]:
    """The run's newest messages, oldest first; each with ``head``, the beginning of its body."""
    body = Cast("body", TextField())
    head = Case(
        When(size__lte=WHOLE_BYTES, then=body),
        default=Left(body, HEAD_CHARACTERS),
        output_field=TextField(),
    )
    messages = Message.objects.filter(run=run).defer("body", "text").annotate(head=head)
    newest = _some(messages.order_by("-sequence"), MOST_MESSAGES)
    return Some(newest.rows[::-1], newest.has_more)


def marks_of(run: Run) -> Some[Message]:
    """When the run's messages came, the newest of them, oldest first: no more than that."""
    messages = Message.objects.filter(run=run).order_by("-sequence")
    newest = _some(
        messages.only("session_id", "sequence", "role", "type", "created_at"), MOST_MARKS
    )
    return Some(newest.rows[::-1], newest.has_more)


def events_of(run: Run) -> Some[SessionEvent]:
    """The newest of the run's own events, oldest first."""
    events = SessionEvent.objects.filter(
        session=run.session_id, subject=Subject.RUN, subject_id=run.pk
    )
    newest = _some(events.order_by("-sequence"), MOST_EVENTS)
    return Some(newest.rows[::-1], newest.has_more)


def memory_of(run: Run, *, until: datetime) -> MemoryChange:
    """What the agent understood before the run, and what after it; ``until`` is its end."""
    of_session = WorkingMemoryRevision.objects.filter(session=run.session_id)
    mine = WorkingMemoryRevision.objects.filter(run=run)
    ends = list(mine.order_by("version")[:1]) + list(mine.order_by("-version")[:1])
    if not ends:
        then = of_session.filter(created_at__lte=until).order_by("-version").first()
        return MemoryChange(then, then)
    before = of_session.filter(version=ends[0].version - 1).first()
    return MemoryChange(before, ends[-1])


def _some(queryset: QuerySet[RowT_co], limit: int) -> Some[RowT_co]:
    rows = list(queryset[: limit + 1])
    return Some(rows[:limit], len(rows) > limit)
