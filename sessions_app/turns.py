"""Whose turn it is to write, where a database has one writer at a time (SQLite).

SQLite lets waiting writers sleep and try again, ever longer: who came last may come first, and the
lock is free while all sleep. Here the threads of a process wait for each other in the order in
which they came. Those at the head of their process's queue ask again all the time, and only one of
them, who is next, asks for the turn itself: so the process that has just written lets another one
go first, and none works while the others starve.
"""

import fcntl
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from itertools import chain, repeat
from pathlib import Path

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

# Bytes of the lock file.
_TURN, _NEXT = 0, 1
# A write takes about half a millisecond; one that takes longer may take seconds.
_SOON_SECONDS, _LATER_SECONDS = 0.00005, 0.001
_TIMES_SOON = 20

# The threads of this process that want to write; the first of them may.
_line: deque[int] = deque()
_moved = threading.Condition()


class _Here(threading.local):
    has_turn = False


_here = _Here()


def turn_to_write() -> AbstractContextManager[None]:
    """Wait for the turn of this thread; whoever is in a transaction has it, and what that leaves to
    be done after it, too.

    Raises:
        OperationalError: not within DB_LOCK_TIMEOUT.
    """
    return _its_turn() if takes_turns() else nullcontext()


def takes_turns() -> bool:
    """Whether this thread has to wait for its turn before it writes."""
    connection = connections[DEFAULT_DB_ALIAS]
    has_turn = connection.in_atomic_block or _here.has_turn
    return connection.vendor == "sqlite" and not has_turn and _name(connection) != ":memory:"


def end_of_patience() -> float:
    """Until when a thread that asks now waits for its turn, by the monotonic clock."""
    return time.monotonic() + settings.DB_LOCK_TIMEOUT


@contextmanager
def _its_turn() -> Iterator[None]:
    deadline = end_of_patience()
    with in_line(deadline), turn_of_this_process(deadline):
        yield


@contextmanager
def in_line(deadline: float, *, unless: Callable[[], bool] = lambda: False) -> Iterator[bool]:
    """Wait until no other thread of this process is before this one: True; or until there is no
    more reason to wait: False.

    Raises:
        OperationalError: neither before ``deadline`` (of the monotonic clock).
    """
    me = threading.get_ident()
    with _moved:
        _line.append(me)
    try:
        with _moved:
            left = max(0, deadline - time.monotonic())
            if not _moved.wait_for(lambda: unless() or _line[0] == me, left):
                raise database_is_locked()
            is_first = not unless()
        yield is_first
    finally:
        with _moved:
            _line.remove(me)
            _moved.notify_all()


@contextmanager
def turn_of_this_process(deadline: float) -> Iterator[None]:
    """Wait until no other process writes; to be called by who is first in line.

    Raises:
        OperationalError: not until ``deadline``.
    """
    file = _lock_file(_name(connections[DEFAULT_DB_ALIAS]), os.getpid())
    _take(file, _NEXT, deadline)
    try:
        _take(file, _TURN, deadline)
    finally:
        _release(file, _NEXT)
    _here.has_turn = True
    try:
        yield
    finally:
        _here.has_turn = False
        _release(file, _TURN)


def _name(connection: BaseDatabaseWrapper) -> str:
    return str(connection.settings_dict["NAME"])


def _take(file: int, place: int, deadline: float) -> None:
    """Locks of this kind belong to a process: of its threads, one at a time comes here."""
    pauses = chain(repeat(_SOON_SECONDS, _TIMES_SOON), repeat(_LATER_SECONDS))
    while not _is_taken(file, place):
        if time.monotonic() > deadline:
            raise database_is_locked()
        time.sleep(next(pauses))


def _is_taken(file: int, place: int) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except BlockingIOError:
        return False
    return True


def _release(file: int, place: int) -> None:
    fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


@cache
def _lock_file(database: str, process: int) -> int:
    """Opened anew in each process, which its locks belong to.

    Whoever may use the database may use it, also after root was the first to write.
    """
    # Where the database cannot be reached this says so, in the database's own words.
    connections[DEFAULT_DB_ALIAS].ensure_connection()
    its = Path(database).stat()
    file = os.open(f"{database}-writer", os.O_RDWR | os.O_CREAT, its.st_mode & 0o777)
    with suppress(PermissionError):
        os.fchown(file, its.st_uid, its.st_gid)
    return file


def database_is_locked() -> OperationalError:
    return OperationalError("database is locked")
