"""What can be read of a session, by whom."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from ..actors import EVERY_ACCOUNT, Actor
from ..errors import InvalidRequest, NotFound
from ..folding import fold
from ..jsontext import JSONText
from ..models import Message, Session, SessionEvent, ToolCall, WorkingMemoryRevision
from ..prepared import GIVEN_LIMIT, Given, Listing, Prepared
from ..querysets import (
    MessageQuerySet,
    SessionQuerySet,
    ToolCallQuerySet,
    given_account,
    how_many_fit,
)
from ..rows import MessageRow, SessionRow
from ..states import SessionStatus
from ..terms import Query
from .finding import Search, are_many, for_database, mentioned
from .locking import deleted
from .memory import current_memory
from .metadata import metadata_term

MAX_LISTED_CALLS = 100
UNDELETED = tuple(status for status in SessionStatus if status != SessionStatus.DELETED)


@dataclass(frozen=True, kw_only=True)
class SessionFilters:
    """What a list of sessions is narrowed by; None does not narrow."""

    status: Collection[str] | None = None
    run_status: Collection[str] | None = None
    agent_id: str | None = None
    user_id: str | None = None
    external_id: str | None = None
    parent_session_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    active_after: datetime | None = None
    active_before: datetime | None = None
    expires_before: datetime | None = None
    has_open_tool_calls: bool | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    q: str | None = None


# How every id of a session begins.
_ID = "sess_"
# The filters that compare a column.
_LOOKUPS = {
    "agent_id": "agent_id",
    "user_id": "user_id",
    "external_id": "external_id",
    "parent_session_id": "parent_session",
    "created_after": "created_at__gt",
    "created_before": "created_at__lt",
    "active_after": "last_activity_at__gt",
    "active_before": "last_activity_at__lt",
    "expires_before": "expires_at__lt",
}


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of the raw conversation; its bounds hold also if a message vanished meanwhile."""

    messages: list[MessageRow]
    first_sequence: int | None
    last_sequence: int | None
    has_more: bool


@Prepared
def _by_id(given: type[Given], everyone: bool) -> SessionQuerySet:
    return Session.objects.owned_by(given_account(given, everyone)).filter(pk=given("session_id"))


class _FilterShape(NamedTuple):
    """What of the filters changes the query, and not only its values."""

    everyone: bool
    compared: tuple[str, ...]
    statuses: tuple[str, ...]
    run_statuses: tuple[str, ...] | None
    has_open_tool_calls: bool | None
    term_count: int
    # Words are looked for: whether many texts match, and whether they may be the start of an id.
    mentions: bool = False
    of_many: bool = False
    by_id: bool = False


def _filtered(given: Callable[[str], Any], shape: _FilterShape) -> SessionQuerySet:
    """By all filters but the words."""
    found = Session.objects.owned_by(given_account(given, shape.everyone))
    found = found.filter(**{_LOOKUPS[name]: given(name) for name in shape.compared})
    found = found.with_status(shape.statuses, now=given("now"))
    found = found.with_metadata(given(f"term_{number}") for number in range(shape.term_count))
    if shape.run_statuses is not None:
        found = found.with_run_status(shape.run_statuses, now=given("now"))
    if shape.has_open_tool_calls is not None:
        found = found.with_open_tool_calls(shape.has_open_tool_calls)
    return found


def _matching(
    given: type[Given], order: tuple[str, str], shape: _FilterShape
) -> QuerySet[Session, SessionRow]:
    """What `SessionReader.find` lists."""
    found = _filtered(given, shape)
    if shape.mentions:
        wanted = mentioned(given("words"), many=shape.of_many)
        beginning = Q(pk__startswith=given("beginning"))
        found = found.filter(wanted | beginning if shape.by_id else wanted)
    return found.order_by(*order).rows()


def _history(
    given: type[Given], include_superseded: bool, descending: bool, *narrowed: str
) -> MessageQuerySet:
    """The raw conversation; removed messages are not part of it."""
    history = Message.objects.filter(session=given("session_id"))
    shown = history.filter(removed_at=None) if include_superseded else history.live()
    ordered = shown.order_by("-sequence" if descending else "sequence")
    values: dict[str, Any] = {name: given(name) for name in narrowed}
    return ordered.matching(**values)


@Prepared
def _sizes(given: type[Given], *shape: Any) -> QuerySet[Message, tuple[int, int]]:
    return _history(given, *shape).values_list("sequence", "size")[:GIVEN_LIMIT]


@Prepared
def _messages(given: type[Given], *shape: Any) -> QuerySet[Message, MessageRow]:
    return _history(given, *shape).filter(sequence__range=(given("first"), given("last"))).rows()


class SessionReader:
    """The reading half of `SessionManager`, for one actor.

    Every method raises NotFound for what the actor may not see, exactly as for what does not
    exist, and SessionDeleted for a tombstone.
    """

    def __init__(self, actor: Actor) -> None:
        self.actor = actor

    def get(self, *, session_id: str) -> Session:
        """Find one session, whatever its status but DELETED."""
        account = self.actor.read_scope
        session = _by_id.first(account is EVERY_ACCOUNT, session_id=session_id, account=account)
        if session is None:
            raise NotFound(f"There is no session {session_id}.")
        if session.status == SessionStatus.DELETED:
            raise deleted(session)
        return session

    def find(self, *, filters: SessionFilters, order: tuple[str, str], now: datetime) -> Listing:
        """Sessions that match at this moment, as a list shows them (`SessionRow`); by words, all of
        which one text of the session has."""
        shape, values = self._asked(filters, now)
        if filters.q and (query := Query.of(filters.q)):
            beginning = fold(filters.q)
            shape = shape._replace(
                mentions=True,
                of_many=are_many(query, self.actor.read_scope),
                by_id=beginning.startswith(_ID),
            )
            values |= {"words": for_database(query), "beginning": beginning}
        return Listing(Session, _matching, order, (shape,), values)

    def search(self, *, filters: SessionFilters, now: datetime) -> Search:
        """The texts that have all words of ``filters.q``, of sessions that match the other filters
        at this moment.

        Raises:
            InvalidRequest: there is nothing to look for.
        """
        query = Query.of(filters.q or "")
        if not query:
            raise InvalidRequest.at("/q", "must hold a letter, a digit or a sign")
        shape, values = self._asked(filters, now)
        sessions = _filtered(values.__getitem__, shape).exclude(status=SessionStatus.DELETED)
        return Search(query, self.actor.read_scope, sessions)

    def _asked(self, filters: SessionFilters, now: datetime) -> tuple[_FilterShape, dict[str, Any]]:
        """What the filters but the words make of the query, and its values."""
        compared = {name: getattr(filters, name) for name in _LOOKUPS}
        compared = {name: value for name, value in compared.items() if value is not None}
        terms = [metadata_term(*item) for item in filters.metadata.items()]
        account = self.actor.read_scope
        shape = _FilterShape(
            everyone=account is EVERY_ACCOUNT,
            compared=tuple(compared),
            statuses=tuple(filters.status or UNDELETED),
            run_statuses=None if filters.run_status is None else tuple(filters.run_status),
            has_open_tool_calls=filters.has_open_tool_calls,
            term_count=len(terms),
        )
        values: dict[str, Any] = {f"term_{number}": term for number, term in enumerate(terms)}
        return shape, values | {"account": account, "now": now, **compared}

    def open_tool_calls(self, *, session: Session) -> list[str]:
        """The ids of the first hundred open calls of a session that was read already."""
        if not session.open_tool_call_count:
            return []
        calls = ToolCall.objects.filter(session=session).open().order_by("id")
        return list(calls.values_list("id", flat=True)[:MAX_LISTED_CALLS])

    def read_page(
        self,
        *,
        session_id: str,
        limit: int,
        descending: bool = False,
        include_superseded: bool = False,
        **narrowed: Any,
    ) -> HistoryPage:
        """A page of the raw conversation: as many messages as ``limit`` and one answer hold.

        ``narrowed`` is what `MessageQuerySet.matching` takes. Sizes are read first, so that no
        message is loaded in vain.
        """
        values = {name: value for name, value in narrowed.items() if value is not None}
        values["session_id"] = self.get(session_id=session_id).session_id
        shape = (include_superseded, descending, *sorted(narrowed.keys() & values.keys()))
        sizes = _sizes.all(*shape, limit=limit + 1, **values)
        fitting = how_many_fit([size for _, size in sizes[:limit]])
        if not fitting:
            return HistoryPage([], None, None, has_more=False)
        ends = sizes[0][0], sizes[fitting - 1][0]
        rows = _messages.all(*shape, first=min(ends), last=max(ends), **values)
        return HistoryPage(rows, min(ends), max(ends), has_more=len(sizes) > fitting)

    def read_message(self, *, session_id: str, sequence: int) -> Message:
        """One message, whole; also one that was removed (its content is gone) or superseded."""
        session = self.get(session_id=session_id)
        message = Message.objects.filter(session=session, sequence=sequence).first()
        if message is None:
            raise NotFound(f"There is no message {sequence}.")
        return message

    def read_messages(self, *, session_id: str, sequences: Sequence[int]) -> list[Message]:
        """These messages, whole, in the order in which they are named; a purge may take them."""
        session = self.get(session_id=session_id)
        rows = Message.objects.filter(session=session, sequence__in=sequences).defer("text")
        found = {message.sequence: message for message in rows}
        return [found[sequence] for sequence in sequences if sequence in found]

    def read_memory(self, *, session_id: str) -> tuple[Session, JSONText]:
        """The session and its current working memory."""
        session = self.get(session_id=session_id)
        return session, current_memory(session)

    def memory_of(self, *, session: Session) -> JSONText:
        """The current working memory of a session that was read already."""
        return current_memory(session)

    def memory_revision(self, *, session_id: str, version: int) -> WorkingMemoryRevision:
        """One revision of the working memory, with its document."""
        revision = self.memory_revisions(session_id=session_id).filter(version=version).first()
        if revision is None:
            raise NotFound(f"There is no revision {version}.")
        return revision

    def memory_revisions(self, *, session_id: str) -> QuerySet[WorkingMemoryRevision]:
        """All revisions of the working memory."""
        return WorkingMemoryRevision.objects.filter(session=self.get(session_id=session_id))

    def tool_calls(self, *, session_id: str) -> ToolCallQuerySet:
        """The tool history."""
        return ToolCall.objects.filter(session=self.get(session_id=session_id))

    def tool_call(self, *, id: str) -> ToolCall:
        """One tool call by our id."""
        call = ToolCall.objects.readable_by(self.actor).filter(pk=id).first()
        if call is None:
            raise NotFound(f"There is no tool call {id}.")
        return call

    def events(self, *, session_id: str) -> QuerySet[SessionEvent]:
        """Who did what to the session and its runs, and why."""
        return SessionEvent.objects.filter(session=self.get(session_id=session_id))
