"""Group commit, where a database has one writer at a time (SQLite).

To make a transaction durable takes as long as what most writes do in it. So a write that is made of
statements alone is handed over: the thread that gets the turn does all those of its process that
wait, in one transaction, and the others find theirs done. Nobody is answered before the commit.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections, transaction
from django.db.backends.utils import CursorWrapper

from .turns import in_line, takes_turns, turn_of_this_process

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Write:
    work: Callable[[CursorWrapper], Any]
    outcome: Future[Any] = field(default_factory=Future)


_waiting: deque[_Write] = deque()


def commit(work: Callable[[CursorWrapper], Result]) -> Result:
    """Call ``work`` in a transaction, which may be that of other threads' work, too.

    Any thread of this process may call it, and again after it was taken back: it may do nothing but
    execute statements.

    Raises:
        OperationalError: the turn did not come within DB_LOCK_TIMEOUT, or the database failed.
        Exception: what ``work`` raises.
    """
    if not takes_turns():
        return _done_together([work])[0]
    mine = _Write(work)
    _waiting.append(mine)
    deadline = time.monotonic() + settings.DB_LOCK_TIMEOUT
    try:
        with in_line(deadline):
            if not mine.outcome.done():
                with turn_of_this_process(deadline):
                    _settle([*_handed_over()])
    except OperationalError:
        if mine.outcome.cancel():
            raise
    return mine.outcome.result()


def _handed_over() -> Iterator[_Write]:
    while _waiting:
        write = _waiting.popleft()
        if write.outcome.set_running_or_notify_cancel():
            yield write


def _settle(writes: Sequence[_Write]) -> None:
    """Nobody pays for another's error: a group that fails is taken back, and each of it done alone.

    That the database cannot do it now is true for all.
    """
    try:
        results = _done_together([each.work for each in writes])
    except Exception as error:  # noqa: BLE001 (raised where its result is asked for)
        if len(writes) == 1 or isinstance(error, OperationalError):
            for each in writes:
                each.outcome.set_exception(error)
        else:
            for each in writes:
                _settle([each])
    else:
        for each, result in zip(writes, results, strict=True):
            each.outcome.set_result(result)


def _done_together(works: Sequence[Callable[[CursorWrapper], Any]]) -> list[Any]:
    with transaction.atomic(), connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        return [work(cursor) for work in works]
