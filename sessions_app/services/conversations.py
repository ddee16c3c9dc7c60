"""Conversations of items, which is what OpenAI's API calls sessions and their messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.utils import timezone

from ..actors import EVERY_ACCOUNT
from ..errors import ItemAlreadyInConversation, NotFound
from ..models import Message, Session
from ..prepared import GIVEN_LIMIT, Given, Prepared
from ..querysets import given_account
from ..rows import SessionRow
from ..states import SessionStatus
from . import messages as _messages
from .creation import NewSession
from .drafts import Draft
from .items.ids import minted
from .items.outgoing import NamedItem, items_of
from .locking import locked_session, write_transaction
from .manager import SessionManager
from .naming import named, taken

# The official client waits up to ten minutes for each of its three attempts.
SENT_AGAIN_WITHIN = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Page:
    """What a list shows; ``has_more`` of it follows, in the same direction."""

    data: list[Any]
    has_more: bool


class _Found(NamedTuple):
    """An item, and its message: a message may be several items, of which it is one."""

    item: NamedItem
    message: Message
    others_before: int
    others_after: int


class ConversationManager(SessionManager):
    """`SessionManager`, for whoever speaks of items, and knows them by ids.

    Each method raises what the one does that it calls; an id that names no item is NotFound.
    """

    def begin(
        self, new: NewSession, *, items: Sequence[Draft] = (), now: datetime | None = None
    ) -> Session:
        """Create a session with its first messages.

        Raises:
            ItemAlreadyInConversation: two of them have one id.
        """
        with write_transaction():
            moment = now or timezone.now()
            session, _ = self.create(new, now=moment)
            if items:
                self.add(session_id=session.session_id, items=items, now=moment)
        return session

    def add(
        self,
        *,
        session_id: str,
        items: Sequence[Draft],
        is_repeated: bool = False,
        now: datetime | None = None,
    ) -> _messages.Appended:
        """Append messages, each id in a conversation once.

        ``is_repeated``: the client did not learn what became of its request, and sends it again.
        What it sent is then answered as it is stored, if it is the last that was, and that within
        `SENT_AGAIN_WITHIN`.

        Raises:
            ItemAlreadyInConversation: nothing is stored.
        """
        drafts = _messages.draft_messages(items, pointer="/items")
        with self._active(session_id, now) as (session, moment):
            if is_repeated and (stored := _stored_last(session, drafts, now=moment)):
                return _messages.Appended(stored, 0, session.last_sequence, session.version)
            _require_new(session, drafts)
            return _messages.append(
                session,
                drafts,
                run_id=None,
                attempt=None,
                expected_last_sequence=None,
                now=moment,
            )

    def read_items(
        self, *, session_id: str, limit: int, descending: bool, after: str | None = None
    ) -> Page:
        """Items in the order of their messages, from behind the one whose id is ``after``.

        Raises:
            NotFound: also of ``after``, which is then named ``param``.
        """
        bounds: dict[str, Any] = {}
        skipped = 0
        if after is not None:
            bounds, skipped = self._behind(session_id, after, descending=descending)
        page = self.read_page(session_id=session_id, limit=limit, descending=descending, **bounds)
        step = -1 if descending else 1
        found = [item for message in page.messages for item in items_of(message)[::step]][skipped:]
        return Page(found[:limit], page.has_more or len(found) > limit)

    def item(self, *, session_id: str, item_id: str) -> NamedItem:
        """One item."""
        return self._find(session_id, item_id).item

    def remove_item(
        self,
        *,
        session_id: str,
        item_id: str,
        is_repeated: bool = False,
        now: datetime | None = None,
    ) -> Session:
        """Purge the message that the item is, or is of; return the session.

        ``is_repeated``: see `add`; what was removed is then removed.

        Raises:
            HasResult: it made a tool call that has a result.
        """
        with locked_session(session_id, actor=self.actor):  # who comes second finds none
            try:
                sequence = self._find(session_id, item_id).message.sequence
            except NotFound:
                if not (is_repeated and self._was_removed(session_id, item_id)):
                    raise
            else:
                self.remove_message(session_id=session_id, sequence=sequence, now=now)
            return self.get(session_id=session_id)

    def sessions(self, *, limit: int, descending: bool, after: str | None = None) -> Page:
        """Sessions in the order in which they were created, from behind the one named ``after``."""
        values: dict[str, Any] = {}
        if after is not None:
            last = self.get(session_id=after)
            values = {"created_at": last.created_at, "session_id": last.session_id}
        account = self.actor.read_scope
        rows = _created.all(
            account is EVERY_ACCOUNT,
            descending,
            bool(values),
            account=account,
            limit=limit + 1,
            **values,
        )
        return Page(rows[:limit], len(rows) > limit)

    # --- inside --------------------------------------------------------------------------------

    def _behind(
        self, session_id: str, after: str, *, descending: bool
    ) -> tuple[dict[str, Any], int]:
        """Where a page begins behind an item: a bound of sequences, and how many items of the
        first message were read before; it is read again if the item is not its last."""
        try:
            found = self._find(session_id, after)
        except NotFound as error:
            raise NotFound(error.detail, param="after") from error
        behind, before = found.others_after, found.others_before
        if descending:
            behind, before = before, behind
        again = 1 if behind else 0
        at = found.message.sequence
        bound = {"before": at + again} if descending else {"after": at - again}
        return bound, before + 1 if again else 0

    def _was_removed(self, session_id: str, item_id: str) -> bool:
        at = minted(item_id)
        gone = Message.objects.filter(session=self.get(session_id=session_id))
        named = Q(item_id=item_id) | Q(pk=at.message_id if at else None)
        return gone.filter(named, removed_at__isnull=False).exists()

    def _find(self, session_id: str, item_id: str) -> _Found:
        session = self.get(session_id=session_id)
        for message in named(session, [item_id]):
            items = items_of(message)
            for place, item in enumerate(items):
                if item.id == item_id:
                    return _Found(item, message, place, len(items) - place - 1)
        raise NotFound(f"No item found with id '{item_id}'")


@Prepared
def _created(
    given: type[Given], everyone: bool, descending: bool, after: bool
) -> QuerySet[Session, SessionRow]:
    found = Session.objects.owned_by(given_account(given, everyone))
    found = found.exclude(status=SessionStatus.DELETED)
    if after:
        beyond = "lt" if descending else "gt"
        at, pk = given("created_at"), given("session_id")
        # The outer condition alone is what an index can begin at.
        found = found.filter(
            Q(**{f"created_at__{beyond}": at}) | Q(**{f"pk__{beyond}": pk}),
            **{f"created_at__{beyond}e": at},
        )
    order = ("-created_at", "-session_id") if descending else ("created_at", "session_id")
    return found.order_by(*order).rows()[:GIVEN_LIMIT]


def _require_new(session: Session, drafts: Sequence[Draft]) -> None:
    """Refuse an id that the conversation has (row locked), or that comes twice."""
    given = [draft.item_id for draft in drafts if draft.item_id is not None]
    names = set(given)
    if taken(session, names) or len(names) < len(given):
        raise ItemAlreadyInConversation("Item already in conversation", param="items")


def _stored_last(session: Session, drafts: Sequence[Draft], *, now: datetime) -> list[Message]:
    """The messages of the last append, if they are these, all of them and no others, and so new
    that it may have been the same request."""
    count = len(drafts)
    rows = Message.objects.filter(session=session).order_by("-sequence")
    newest = list(rows[: count + 1])
    last, before = newest[:count][::-1], newest[count:]
    if [message.body for message in last] != [draft.body for draft in drafts]:
        return []
    versions = {message.session_version for message in last}
    is_whole = len(versions) == 1 and versions.isdisjoint(each.session_version for each in before)
    return last if is_whole and last[-1].created_at > now - SENT_AGAIN_WITHIN else []
