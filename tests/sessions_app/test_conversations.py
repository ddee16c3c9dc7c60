"""Items that are sent again without a key: what is taken for the same request."""

from datetime import timedelta

import pytest

from sessions_app.services.conversations import SENT_AGAIN_WITHIN, ConversationManager
from sessions_app.services.items.incoming import draft_items
from tests.domain import NOON, Desk, row

A_MOMENT = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("later", "stored"), [(SENT_AGAIN_WITHIN - A_MOMENT, 1), (SENT_AGAIN_WITHIN, 2)]
)
def test_what_is_sent_again_is_the_same_request_for_some_time(
    desk: Desk, later: timedelta, stored: int
) -> None:
    session_id = desk.open()
    conversations = ConversationManager(desk.actor)
    items = draft_items([{"role": "user", "content": "Go on"}], pointer="/items")
    conversations.add(session_id=session_id, items=items, now=NOON)
    conversations.add(session_id=session_id, items=items, now=NOON + later, is_repeated=True)
    assert row(session_id).last_sequence == stored
