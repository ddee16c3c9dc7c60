"""Group commit, where a database has one writer at a time (SQLite).

To make a transaction durable takes as long as what most writes do in it. So a write that is made of
statements alone is handed over: the thread that gets the turn does all those of its process that
wait, in one transaction, and the others find theirs done. Nobody is answered before the commit.
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
    takes_turns,
    turn_of_this_process,
)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class _Write:
    work: Callable[[CursorWrapper], Any]
    outcome: Future[Any] = field(default_factory=Future)


_waiting: deque[_Write] = deque()


def commit(work: Callable[[CursorWrapper], Result]) -> Result:
    """Call ``work`` in a transaction, which may be that of other threads' work, too.

    Any thread of this process may call it, and again after it was taken back: it may do nothing but
    execute statements, by the cursor that it is given.

    Raises:
        OperationalError: the turn did not come within DB_LOCK_TIMEOUT, or the database failed.
        Exception: what ``work`` raises.
    """
    if not takes_turns():
        return _done_together([work])[0]
    mine = _Write(work)
    _waiting.append(mine)
    deadline = end_of_patience()
    try:
        with in_line(deadline, unless=mine.outcome.done) as is_first:
            if is_first:
                with turn_of_this_process(deadline):
                    _settle([*_handed_over()], deadline)
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


def _settle(writes: Sequence[_Write], deadline: float) -> None:
    """Nobody pays for another's error: a group that fails is taken back, and each of it done alone,
    as long as there is time."""
    try:
        is_group = len(writes) > 1
        if is_group and _settled_together(writes):
            return
        for write in writes:
            if is_group and time.monotonic() > deadline:
                write.outcome.set_exception(database_is_locked())
            else:
                _settle_alone(write)
    finally:
        for write in writes:
            if not write.outcome.done():  # this thread is being ended
                write.outcome.set_exception(OperationalError("interrupted"))


def _settled_together(writes: Sequence[_Write]) -> bool:
    try:
        results = _done_together([write.work for write in writes])
    except Exception:  # noqa: BLE001 (whose it is comes out when each is done alone)
        return False
    for write, result in zip(writes, results, strict=True):
        write.outcome.set_result(result)
    return True


def _settle_alone(write: _Write) -> None:
    try:
        (result,) = _done_together([write.work])
    except Exception as error:  # noqa: BLE001 (raised where the result is asked for)
        write.outcome.set_exception(error)
    else:
        write.outcome.set_result(result)


def _done_together(works: Sequence[Callable[[CursorWrapper], Any]]) -> list[Any]:
    with transaction.atomic(), connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        return [work(cursor) for work in works]
