"""Writes of several threads that wait for each other (`sessions_app.group_commit`)."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from django.db import connections

from sessions_app import group_commit
from tests.processes import wait_until

HandOver = Callable[..., list[Future[Any]]]


@contextmanager
def threads() -> Iterator[HandOver]:
    """Call functions in this order, each in a thread of its own, with its own connection, the next
    one when what the last one writes waits: to be used while somebody is first `in_line`."""

    def in_thread(call: Callable[[], Any]) -> Any:
        try:
            return call()
        finally:
            connections.close_all()

    def hand_over(*calls: Callable[[], Any]) -> list[Future[Any]]:
        begun: list[Future[Any]] = []
        for call in calls:
            begun.append(pool.submit(in_thread, call))
            wait_until(lambda: len(group_commit._waiting) == len(begun))
        return begun

    with ThreadPoolExecutor(8) as pool:
        yield hand_over
