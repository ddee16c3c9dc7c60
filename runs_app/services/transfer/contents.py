"""What a session holds, read in portions: its memory does not grow with the session."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Model, QuerySet

from sessions_app.jsontext import JSONText
from sessions_app.models import Message, Session, SessionEvent, ToolCall, WorkingMemoryRevision
from sessions_app.querysets import how_many_fit
from sessions_app.services.memory import current_memory

from ...models import Run

# As many rows are read at once as fit in the second, at least one and at most the first.
_MOST_ROWS, _MOST_BYTES = 1_000, 1 << 20
# A revision's size stands in no column, and may be that of MAX_WORKING_MEMORY_BYTES.
_MOST_REVISIONS = 20

_SHOWN_OF_MESSAGE = (
    "message_id",
    "sequence",
    "role",
    "type",
    "client_message_id",
    "run_id",
    "session_version",
    "added_version",
    "created_at",
    "removed_at",
    "superseded_at",
    "body",
)


@dataclass(frozen=True, slots=True)
class Contents:
    """A session and all that belongs to it, at a moment. Each call reads anew, inside one
    `read_snapshot`; order is that in which things came to be."""

    session: Session
    now: datetime

    def runs(self) -> Iterator[Run]:
        """As they are at the moment; see `RunQuerySet.timed`."""
        mine = Run.objects.filter(session=self.session)
        return _by_size(mine, mine.timed(), key="run_id")

    def messages(self) -> Iterator[dict[str, Any]]:
        """All of them, also those that were removed or superseded, by their columns' names."""
        mine = Message.objects.filter(session=self.session)
        return _by_size(mine, mine.values(*_SHOWN_OF_MESSAGE), key="sequence")

    def tool_calls(self) -> Iterator[ToolCall]:
        mine = ToolCall.objects.filter(session=self.session)
        return _by_size(mine, mine, key="id")

    def memory_revisions(self) -> Iterator[WorkingMemoryRevision]:
        mine = WorkingMemoryRevision.objects.filter(session=self.session)
        return _by_number(mine, key="version", most=_MOST_REVISIONS)

    def events(self) -> Iterator[SessionEvent]:
        mine = SessionEvent.objects.filter(session=self.session)
        return _by_number(mine, key="sequence", most=_MOST_ROWS)

    def working_memory(self) -> JSONText:
        """The current document."""
        return current_memory(self.session)


def _by_size(rows: QuerySet[Any], shown: QuerySet[Any, Any], *, key: str) -> Iterator[Any]:
    """``shown`` in the order of a key, as many at once as the column ``size`` allows."""
    all_sizes = rows.order_by(key).values_list(key, "size")
    rest = all_sizes
    while sizes := list(rest[:_MOST_ROWS]):
        rest = all_sizes.filter(**{f"{key}__gt": sizes[-1][0]})
        while fitting := how_many_fit([size for _, size in sizes], _MOST_BYTES):
            ends = sizes[0][0], sizes[fitting - 1][0]
            yield from shown.filter(**{f"{key}__range": ends}).order_by(key)
            sizes = sizes[fitting:]


def _by_number(rows: QuerySet[Any], *, key: str, most: int) -> Iterator[Any]:
    portion: list[Model] = [*rows.order_by(key)[:most]]
    while portion:
        yield from portion
        after = {f"{key}__gt": getattr(portion[-1], key)}
        portion = [*rows.filter(**after).order_by(key)[:most]]
