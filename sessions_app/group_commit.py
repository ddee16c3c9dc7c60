"""Group commit: writes of several threads that are made durable together.

To make a transaction durable takes as long as what most writes do in it. So a write that reads
nothing is handed over: the thread of a process that is first in line does all those that wait, in
one transaction, and the others find theirs done. Nobody is answered before the commit.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections, transaction
from django.db.backends.utils import CursorWrapper

from .turns import (
    database_is_locked,
    end_of_patience,
    in_line,
    may_wait_in_line,
    turn_of_this_process,
)

Result = TypeVar("Result")

# Does works in one transaction, and gives the result of each; or raises, and has done none.
Together = Callable[[Sequence[Any]], Sequence[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class _Write:
    work: Any
    outcome: Future[Any] = field(default_factory=Future)


_waiting: deque[_Write] = deque()


def in_one_transaction(works: Sequence[Callable[[CursorWrapper], Result]]) -> list[Result]:
    """Works that are functions of a cursor, and do nothing but execute statements by it."""
    with transaction.atomic(), connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        return [work(cursor) for work in works]


def commit(work: Any, *, together: Together = in_one_transaction) -> Any:
    """Do ``work`` in a transaction, which may be that of other threads' work, too.

    It is done by ``together``, in any thread of this process, and again after it was taken back. In
    a process, all that is handed over is done by the same function.

    Raises:
        OperationalError: the turn did not come within DB_LOCK_TIMEOUT, or the database failed.
        Exception: what is wrong with ``work``.
    """
    if not may_wait_in_line():
        return together([work])[0]
    mine = _Write(work)
    _waiting.append(mine)
    deadline = end_of_patience()
    try:
        with in_line(deadline, unless=mine.outcome.done) as is_first:
            if is_first:
                with turn_of_this_process(deadline):
                    _settle([*_handed_over()], together, deadline)
    except BaseException as error:
        # What was refused must not be done later; what another thread is doing is waited for.
        if _withdrawn(mine) or not isinstance(error, Exception):
            raise
    return mine.outcome.result()


def _withdrawn(write: _Write) -> bool:
    with suppress(ValueError):
        _waiting.remove(write)
    return write.outcome.cancel()


def _handed_over() -> Iterator[_Write]:
    with suppress(IndexError):  # there is no more, or the last was withdrawn meanwhile
        while True:
            write = _waiting.popleft()
            if write.outcome.set_running_or_notify_cancel():
                yield write


def _settle(writes: Sequence[_Write], together: Together, deadline: float) -> None:
    """Nobody pays for another's error: a group that fails is taken back, and each of it done alone,
    as long as there is time."""
    try:
        is_group = len(writes) > 1
        if is_group and _settled_together(writes, together):
            return
        for write in writes:
            if is_group and time.monotonic() > deadline:
                write.outcome.set_exception(database_is_locked())
            else:
                _settle_alone(write, together)
    finally:
        for write in writes:
            if not write.outcome.done():  # this thread is being ended
                write.outcome.set_exception(OperationalError("interrupted"))


def _settled_together(writes: Sequence[_Write], together: Together) -> bool:
    try:
        results = together([write.work for write in writes])
    except Exception:  # noqa: BLE001 (whose it is comes out when each is done alone)
        return False
    for write, result in zip(writes, results, strict=True):
        write.outcome.set_result(result)
    return True


def _settle_alone(write: _Write, together: Together) -> None:
    try:
        (result,) = together([write.work])
    except Exception as error:  # noqa: BLE001 (raised where the result is asked for)
        write.outcome.set_exception(error)
    else:
        write.outcome.set_result(result)
