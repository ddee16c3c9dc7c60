import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.db import OperationalError, connection, connections

from sessions_app import turns
from sessions_app.turns import in_line, turn_to_write
from tests.processes import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has many writers"),
]

# Another process: it locks or unlocks the first byte of the lock file, which is the turn, or the
# second, whose holder is next.
_OTHER = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    for line in sys.stdin:
        what, place = line.split()
        fcntl.lockf(file, getattr(fcntl, what), 1, int(place))
        print("done", flush=True)
"""
TURN, NEXT = 0, 1


def lock_file() -> Path:
    return Path(f"{connection.settings_dict['NAME']}-writer")


@pytest.fixture
def other() -> Iterator[Callable[[str, int], None]]:
    with turn_to_write():
        pass  # makes the file
    command = [sys.executable, "-c", _OTHER, str(lock_file())]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:

        def ask(what: str, place: int) -> None:
            assert process.stdin
            assert process.stdout
            print(what, place, file=process.stdin, flush=True)
            assert process.stdout.readline() == "done\n"

        yield ask


def require_turn() -> None:
    with turn_to_write():
        pass


class TestATurn:
    @pytest.mark.parametrize("place", [TURN, NEXT])
    def test_is_waited_for_and_so_is_who_is_next(
        self, other: Callable[[str, int], None], settings: Any, place: int
    ) -> None:
        settings.DB_LOCK_TIMEOUT = 0.05
        other("LOCK_EX", place)
        with pytest.raises(OperationalError, match="locked"):
            require_turn()
        other("LOCK_UN", place)
        require_turn()

    def test_is_kept_for_what_follows_inside(
        self, other: Callable[[str, int], None], settings: Any
    ) -> None:
        settings.DB_LOCK_TIMEOUT = 0.05
        with turn_to_write():
            other("LOCK_EX", NEXT)
            require_turn()

    def test_is_over_after_an_error(self, other: Callable[[str, int], None]) -> None:
        with pytest.raises(ZeroDivisionError), turn_to_write():
            raise ZeroDivisionError
        other("LOCK_EX", TURN)


class TestTheLineOfThreads:
    def test_is_served_in_its_order(self) -> None:
        served: list[int] = []

        def write(number: int) -> None:
            with turn_to_write():
                served.append(number)
            connections.close_all()

        threads = [Thread(target=write, args=[number]) for number in range(4)]
        with turn_to_write():
            for before, thread in enumerate(threads, 1):
                thread.start()
                wait_until(lambda before=before: len(turns._line) == before + 1)  # type: ignore[misc]
            assert served == []
        for thread in threads:
            thread.join()
        assert served == [0, 1, 2, 3]

    def test_is_left_by_who_has_waited_too_long(self) -> None:
        refused: list[str] = []

        def give_up() -> None:
            with pytest.raises(OperationalError) as error, in_line(time.monotonic() + 0.05):
                pass
            refused.append(str(error.value))

        with in_line(time.monotonic() + 5):
            thread = Thread(target=give_up)
            thread.start()
            thread.join()
            assert len(turns._line) == 1
        assert refused == ["database is locked"]
        require_turn()


def test_the_lock_file_belongs_to_whom_the_database_belongs() -> None:
    with turn_to_write():
        its, own = Path(connection.settings_dict["NAME"]).stat(), lock_file().stat()
    assert (own.st_mode, own.st_uid, own.st_gid) == (its.st_mode, its.st_uid, its.st_gid)
