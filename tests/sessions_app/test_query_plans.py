"""Which index serves what is asked at every append, every page and every sweep (report BIG-02).

SQLite says it for empty tables as for full ones; it is also the pickier of the two about partial
indexes.
"""

import pytest
from django.db import connection
from django.db.models import QuerySet

from sessions_app.models import Message, Session, ToolCall, WorkingMemoryRevision
from tests.domain import NOON

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="reads a plan of SQLite"),
]

CALLS = ToolCall.objects.filter(session="sess_1")
ANSWERED = CALLS.filter(superseded_at=None, result_sequence__lte=9).order_by("-result_sequence")
SUMMARIES = Message.objects.filter(session="sess_1", through_sequence__isnull=False)


@pytest.mark.parametrize(
    ("rows", "index"),
    [
        (CALLS.unanswered_in_chat().filter(tool_call_id__in=["c1"]), "tool_call_unanswered"),
        (CALLS.open().order_by("id"), "tool_call_open"),
        (CALLS.open().filter(message_sequence=None).order_by("id"), "tool_call_open"),
        (Session.objects.awaiting_purge(), "session_awaiting_purge"),
        (WorkingMemoryRevision.objects.filter(run="run_1"), "memory_by_run"),
        (SUMMARIES.live().filter(sequence__lte=9).order_by("-sequence"), "message_compaction"),
        (ANSWERED, "tool_call_by_result"),
        (Message.objects.filter(session="sess_1", item_id__in=["rs_1"]).live(), "message_by_item"),
    ],
    ids=[
        "unanswered",
        "open",
        "recorded",
        "awaiting purge",
        "memory of a run",
        "summary",
        "cut",
        "item",
    ],
)
def test_reads_by_an_index(rows: QuerySet, index: str) -> None:
    assert f"INDEX {index}" in rows.explain()


def test_the_sweep_looks_up_each_kind_of_deadline() -> None:
    plan = Session.objects.due(now=NOON).explain()
    names = ["session_by_expiry", "session_by_run_deadline", "session_by_queue_deadline"]
    assert [name for name in names if f"INDEX {name}" not in plan] == []
