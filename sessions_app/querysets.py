"""Reads. Each rule about what is seen, and as what, stands here once."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import reduce
from itertools import accumulate
from operator import or_
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import (
    Case,
    Count,
    DateTimeField,
    F,
    Q,
    QuerySet,
    Sum,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce
from django.db.models.query import ValuesListIterable

from .actors import EVERY_ACCOUNT, Actor
from .ids import MAX_ID_LENGTH
from .rows import MessageRow, SessionRow, ToolCallRow
from .states import (
    INTERRUPTED_RUN,
    TROUBLED_RUNS,
    UNFINISHED_RUNS,
    SessionStatus,
)

if TYPE_CHECKING:
    from .models import Message, Session, ToolCall


def given_account(given: Callable[[str], Any], everyone: bool) -> Any:
    """The scope of a prepared query, whose value ``account`` each execution brings."""
    return EVERY_ACCOUNT if everyone else given("account")


def owned(account: Any, *, path: str = "") -> Q:
    """What a scope covers (`Actor.write_scope`): the one place where a row is tied to its account.

    ``path`` leads from the row to its session (``"session__"``).
    Source: report SEC-01 (sub-resources that forgot to check the owner).
    """
    return Q() if account is EVERY_ACCOUNT else Q(**{f"{path}account": account})


def newest_run_in(statuses: Iterable[str]) -> Q:
    """Sessions whose newest run is stored so.

    Not as a list: for one, SQLite would not take a partial index with the same condition.
    """
    return reduce(or_, (Q(newest_run_status=status) for status in statuses))


def attention_sides(*, now: datetime, silent_since: datetime) -> tuple[Q, ...]:
    """Where sessions that need attention are among: each side has an index."""
    active = Q(status=SessionStatus.ACTIVE)
    return (
        active & newest_run_in(TROUBLED_RUNS),
        active & Q(open_tool_call_count__gt=0),
        active & Q(active_run_deadline__isnull=False) & _silent_run(now, silent_since),
    )


def _silent_run(now: datetime, silent_since: datetime) -> Q:
    return Q(active_run_deadline__lte=now) | Q(active_run_seen_at__lte=silent_since)


class SessionQuerySet(QuerySet["Session"]):
    def rows(self) -> "QuerySet[Session, SessionRow]":
        """As `SessionRow`."""
        return _rows(self, SessionRow)

    def owned_by(self, account: Any) -> "SessionQuerySet":
        """Sessions of an account, by its id, or with `EVERY_ACCOUNT` all."""
        return self.filter(owned(account))

    def writable_by(self, actor: Actor) -> "SessionQuerySet":
        return self.owned_by(actor.write_scope)

    def readable_by(self, actor: Actor) -> "SessionQuerySet":
        return self.owned_by(actor.read_scope)

    def with_status(self, statuses: Collection[str], *, now: Any) -> "SessionQuerySet":
        """Sessions whose *effective* status is one of these (expiry is evaluated here)."""
        if {SessionStatus.ACTIVE, SessionStatus.EXPIRED} <= set(statuses):
            return self.filter(status__in=statuses)  # lapsed or not: both are wanted
        lapsed = Q(status=SessionStatus.ACTIVE, expires_at__lte=now)
        wanted = Q(status__in=[s for s in statuses if s != SessionStatus.ACTIVE])
        if SessionStatus.ACTIVE in statuses:
            alive = Q(expires_at__isnull=True) | Q(expires_at__gt=now)
            wanted |= Q(status=SessionStatus.ACTIVE) & alive
        if SessionStatus.EXPIRED in statuses:
            wanted |= lapsed
        return self.filter(wanted)

    def with_run_status(self, statuses: Collection[str], *, now: Any) -> "SessionQuerySet":
        """Sessions whose newest run *is* in one of these statuses: past a deadline, interrupted.

        The deadline is its own while it is queued, the row's while it is the active run, and the
        session's expiry in any case.
        """
        past_deadline = (
            Q(newest_run_deadline__lte=now)
            | Q(newest_run_id=F("active_run_id"), active_run_deadline__lte=now)
            | Q(status=SessionStatus.ACTIVE, expires_at__lte=now)
        )
        cut_off = Q(newest_run_status__in=UNFINISHED_RUNS) & past_deadline
        # A CASE, not a negation: NOT over a null deadline would be null, and drop the row.
        current = Case(When(cut_off, then=Value(INTERRUPTED_RUN)), default=F("newest_run_status"))
        return self.alias(current_run_status=current).filter(current_run_status__in=statuses)

    def with_metadata(self, terms: Iterable[Any]) -> "SessionQuerySet":
        """Sessions whose metadata has all of these terms (see `services.metadata`)."""
        found = self
        for digest in terms:
            # One join each: a single filter would ask one row for two digests.
            found = found.filter(metadata_terms__digest=digest)
        return found

    def with_open_tool_calls(self, wanted: bool) -> "SessionQuerySet":
        """Sessions that have open tool calls, or that have none."""
        some = Q(open_tool_call_count__gt=0)
        return self.filter(some if wanted else ~some)

    def expiring(self, *, now: datetime, until: datetime) -> "SessionQuerySet":
        """Active sessions whose deadline comes by then, unless something happens in them."""
        soon = self.filter(expires_at__gt=now, expires_at__lte=until)
        return soon.filter(status=SessionStatus.ACTIVE)

    def needing_attention(self, *, now: datetime, silent_since: datetime) -> "SessionQuerySet":
        """Active sessions that wait for somebody: their newest run failed, was interrupted, waits
        or gives no sign of life, or calls are open and nothing goes on that would answer them."""
        suspects = reduce(or_, attention_sides(now=now, silent_since=silent_since))
        going_on = Q(newest_run_status__in=["PENDING", "RUNNING"])
        working = going_on & ~_silent_run(now, silent_since)
        # A CASE, not a negation: NOT over a null status would be null, and drop the row.
        at_work = Case(When(working, then=Value(1)), default=Value(0))
        found = self.filter(suspects).with_status([SessionStatus.ACTIVE], now=now)
        return found.alias(at_work=at_work).filter(at_work=0)

    def count_by_status(self, *, now: datetime) -> dict[SessionStatus, int]:
        """How many *are* in each status."""
        lapsed = Q(status=SessionStatus.ACTIVE, expires_at__lte=now)
        stored = self.aggregate(
            lapsed=Count("pk", filter=lapsed),
            **{each.value: Count("pk", filter=Q(status=each)) for each in SessionStatus},
        )
        counts = {each: stored[each.value] for each in SessionStatus}
        counts[SessionStatus.ACTIVE] -= stored["lapsed"]
        counts[SessionStatus.EXPIRED] += stored["lapsed"]
        return counts

    def total(self, *columns: str) -> dict[str, int]:
        """Each of these counters, summed up."""
        sums = self.aggregate(**{f"sum_{name}": Sum(name) for name in columns})
        return {name: int(sums[f"sum_{name}"] or 0) for name in columns}

    def with_id_from(self, beginning: str) -> "SessionQuerySet":
        """Sessions whose id begins so, by a range of ids: their letters sort alike everywhere."""
        return self.filter(pk__gte=beginning, pk__lte=beginning.ljust(MAX_ID_LENGTH, "z"))

    def due(self, *, now: datetime) -> "SessionQuerySet":
        """Sessions in which a deadline has passed that nobody has settled yet."""
        active = Q(status=SessionStatus.ACTIVE)
        # The status beside each deadline: SQLite takes a partial index for an OR's side only by
        # what that side says.
        return self.filter(
            (active & Q(expires_at__lte=now))
            | (active & Q(active_run_deadline__lte=now))
            | (active & Q(other_run_deadline__lte=now))
        )

    def awaiting_purge(self) -> "SessionQuerySet":
        """Tombstones some of whose rows are still there."""
        return self.filter(status=SessionStatus.DELETED, purged_at__isnull=True)


def how_many_fit(sizes: Sequence[int], max_bytes: int | None = None) -> int:
    """How many rows fill a page: at least one, since a row larger than a page must be readable.

    A page holds ``max_bytes``; unless told, as many as the setting MAX_PAGE_BYTES.
    """
    limit = settings.MAX_PAGE_BYTES if max_bytes is None else max_bytes
    fitting = sum(total <= limit for total in accumulate(sizes))
    return min(len(sizes), max(1, fitting))


def _rows(queryset: QuerySet[Any, Any], row: Any) -> Any:
    """The queryset's rows as such tuples, each time in them as its column's text."""
    fields = queryset.model._meta.get_fields()
    times = {field.name for field in fields if isinstance(field, DateTimeField)}
    columns = [Cast(name, TextField()) if name in times else name for name in row._fields]
    found: Any = queryset.values_list(*columns)

    class Rows(ValuesListIterable):
        make = row._make

        def __iter__(self) -> Iterator[Any]:
            return map(row._make, super().__iter__())

    found._iterable_class = Rows
    return found


# The version that added a message, whatever has become of it.
AS_ADDED = Coalesce("added_version", "session_version")


class MessageQuerySet(QuerySet["Message"]):
    def rows(self) -> "QuerySet[Message, MessageRow]":
        """As `MessageRow`."""
        return _rows(self, MessageRow)

    def live(self) -> "MessageQuerySet":
        """What lists and context show: neither removed nor superseded."""
        return self.filter(removed_at__isnull=True, superseded_at__isnull=True)

    def matching(
        self,
        *,
        after: int | None = None,
        before: int | None = None,
        role: str | None = None,
        type: str | None = None,
        run_id: str | None = None,
    ) -> "MessageQuerySet":
        """Messages strictly between two sequences and of a kind; None does not narrow."""
        given = {
            "sequence__gt": after,
            "sequence__lt": before,
            "role": role,
            "type": type,
            "run": run_id,
        }
        return self.filter(**{name: value for name, value in given.items() if value is not None})


class ToolCallQuerySet(QuerySet["ToolCall"]):
    def rows(self) -> "QuerySet[ToolCall, ToolCallRow]":
        """As `ToolCallRow`."""
        return _rows(self, ToolCallRow)

    def readable_by(self, actor: Actor) -> "ToolCallQuerySet":
        """Calls of sessions that the actor may read; a deleted session has none."""
        living = self.exclude(session__status=SessionStatus.DELETED)
        return living.filter(owned(actor.read_scope, path="session__"))

    def matching(
        self,
        *,
        statuses: Collection[str] | None = None,
        name: str | None = None,
        run_id: str | None = None,
    ) -> "ToolCallQuerySet":
        """Calls in one of these statuses, of this tool, of this run; None does not narrow."""
        found = self if statuses is None else self.filter(status__in=statuses)
        found = found if name is None else found.filter(name=name)
        return found if run_id is None else found.filter(run=run_id)

    def open(self) -> "ToolCallQuerySet":
        """Calls that somebody still waits for.

        By the time and not the status, as a check constraint allows: SQLite would not take the
        partial index for a list of statuses.
        """
        return self.filter(finished_at__isnull=True)

    def unanswered_in_chat(self) -> "ToolCallQuerySet":
        """Calls that a message made and no message answered, in the order results answer them.

        Source: lifecycle page, "Tool call": the first unanswered call with that id in the newest
        message that has one. Ids are not unique (report PAIR-06).
        """
        unanswered = self.filter(message_sequence__isnull=False, result_sequence__isnull=True)
        return unanswered.filter(superseded_at__isnull=True).order_by("-message_sequence", "id")
