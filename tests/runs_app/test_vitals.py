import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs_app.services.vitals import take_vitals


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads a plan of SQLite")
@pytest.mark.parametrize(
    ("column", "index"),
    {
        "expires_at": "session_by_expiry",
        "active_run_deadline": "session_by_run_deadline",
        "other_run_deadline": "session_by_queue_deadline",
        "deleted_at": "session_awaiting_purge",
    }.items(),
)
def test_what_is_due_is_the_first_of_an_index(column: str, index: str) -> None:
    with CaptureQueriesContext(connection) as captured:
        take_vitals(now=timezone.now())
    first = f'SELECT "sessions_app_session"."{column}"'
    (asked,) = (query["sql"] for query in captured if query["sql"].startswith(first))
    with connection.cursor() as cursor:
        plan = str(cursor.execute(f"EXPLAIN QUERY PLAN {asked}").fetchall())
    assert f"INDEX {index}" in plan
    assert "TEMP B-TREE" not in plan
