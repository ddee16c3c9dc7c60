from pathlib import Path

import pytest
from django.db import connection

from sessions_app.turns import turn_to_write


@pytest.mark.django_db(transaction=True)
def test_the_lock_file_belongs_to_whom_the_database_belongs() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite has one")
    with turn_to_write():
        database = Path(connection.settings_dict["NAME"])
        its, own = (path.stat() for path in (database, Path(f"{database}-writer")))
    assert (own.st_mode, own.st_uid, own.st_gid) == (its.st_mode, its.st_uid, its.st_gid)
