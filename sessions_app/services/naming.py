"""Whose item an id is: which messages may be called so, and which ids a conversation has."""

from collections.abc import Collection, Sequence

from ..models import Message, Session
from ..prepared import Given, GivenList, Prepared
from ..querysets import MessageQuerySet
from .drafts import Draft
from .items.ids import minted
from .items.outgoing import items_of


def with_new_ids(session: Session, drafts: Sequence[Draft]) -> Sequence[Draft]:
    """Take from drafts the ids of items that the conversation has (row locked), or that come twice:
    as items they are called by ids of ours, since a page begins behind an id."""
    given = {draft.item_id for draft in drafts if draft.item_id is not None}
    if not given:
        return drafts
    known, kept = taken(session, given), []
    for draft in drafts:
        kept.append(draft._replace(item_id=None) if draft.item_id in known else draft)
        known |= {draft.item_id} if draft.item_id is not None else set()
    return kept


def taken(session: Session, item_ids: Collection[str]) -> set[str]:
    """Those of the ids that an item of the conversation has."""
    if not item_ids or not session.last_sequence:
        return set()
    found = {item.id for message in named(session, item_ids) for item in items_of(message)}
    return found.intersection(item_ids)


@Prepared
def _by_message_id(given: type[Given]) -> MessageQuerySet:
    mine = Message.objects.filter(session=given("session_id"), pk__in=[GivenList("message_ids")])
    return mine.live()


@Prepared
def _by_item_id(given: type[Given]) -> MessageQuerySet:
    mine = Message.objects.filter(session=given("session_id"), item_id__in=[GivenList("item_ids")])
    return mine.live().order_by("sequence")


def named(session: Session, item_ids: Collection[str]) -> list[Message]:
    """Messages that may be these items: an id that a client chose may look like one of ours."""
    found = _by_item_id.all(session_id=session.pk, item_ids=item_ids)
    if ours := [at.message_id for at in map(minted, item_ids) if at]:
        found += _by_message_id.all(session_id=session.pk, message_ids=ours)
    return found
