"""Files that come or go over HTTP, where the disk is full."""

import errno
import sqlite3
from contextlib import closing

import pytest

from sessions_app.api.uploads import room_on_disk
from sessions_app.errors import DatabaseBusy


class TestRoomOnDisk:
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
    def test_that_is_not_there_is_told_as_what_will_pass(self, number: int) -> None:
        with pytest.raises(DatabaseBusy), room_on_disk():
            raise OSError(number, "full")

    def test_is_asked_of_sqlite_too(self) -> None:
        with closing(sqlite3.connect("")) as database:
            database.execute("CREATE TABLE a (b)")
            database.execute("PRAGMA max_page_count = 2")
            with pytest.raises(DatabaseBusy), room_on_disk():
                database.execute("INSERT INTO a VALUES (zeroblob(1000000))")

    def test_is_not_what_fails_otherwise(self) -> None:
        with pytest.raises(ConnectionError), room_on_disk():
            raise ConnectionError
