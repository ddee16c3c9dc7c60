"""Whose turn it is to write, where a database has one writer at a time (SQLite).

SQLite lets waiting writers sleep and try again, ever longer: who came last may come first, and the
lock is free while all sleep. Here the threads of a process wait for each other in the order in
which they came, and those at the head of their process's queue ask again every millisecond.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections

_AGAIN_AFTER_SECONDS = 0.001

# Reentrant: what a transaction leaves to be done after it may write, too.
_queue = threading.RLock()


@contextmanager
def turn_to_write() -> Iterator[None]:
    """Wait for the turn of this thread; whoever is in a transaction has it.

    Raises:
        OperationalError: not within DB_LOCK_TIMEOUT.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    name = str(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or connection.in_atomic_block or name == ":memory:":
        yield
        return
    deadline = time.monotonic() + settings.DB_LOCK_TIMEOUT
    if not _queue.acquire(timeout=settings.DB_LOCK_TIMEOUT):
        raise _locked()
    try:
        file = _lock_file(name, os.getpid())
        while not _taken(file):
            if time.monotonic() > deadline:
                raise _locked()
            time.sleep(_AGAIN_AFTER_SECONDS)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
    finally:
        _queue.release()


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@cache
def _lock_file(database: str, process: int) -> int:
    """Opened anew in each process: a descriptor that a fork inherits shares its lock.

    Whoever may use the database may use it, also after root was the first to write.
    """
    its = Path(database).stat()
    file = os.open(f"{database}-writer", os.O_RDONLY | os.O_CREAT, its.st_mode & 0o777)
    with suppress(PermissionError):
        os.fchown(file, its.st_uid, its.st_gid)
    return file


def _locked() -> OperationalError:
    return OperationalError("database is locked")
