"""Database connections that outlive a request; imported where requests are served."""

import select
import sys
import threading
import time
from datetime import UTC, datetime
from typing import Any

from django.core.signals import got_request_exception, request_started
from django.db import NotSupportedError, connections
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg.adapt import Buffer, Loader
from psycopg.errors import FeatureNotSupported

# A connection that was in use so lately is taken for alive; who is wrong about it gets a 503.
_SURE_FOR_SECONDS = 1.0

_looked = threading.local()


@receiver(request_started, dispatch_uid="config.drop_dead_connections")
def drop_dead_connections(**_: Any) -> None:
    """Close this thread's connection if the database has ended it, so that a new one is opened.

    An idle connection has nothing to read but the server's farewell: to look for it once a second
    costs no query, as Django's own check (CONN_HEALTH_CHECKS) does at every request.
    """
    now = time.monotonic()
    if now - getattr(_looked, "at", 0) < _SURE_FOR_SECONDS:
        return
    _looked.at = now
    for connection in connections.all(initialized_only=True):
        driver = connection.connection
        if connection.vendor != "postgresql" or driver is None or connection.in_atomic_block:
            continue
        if driver.closed or _has_news(driver.fileno()):
            connection.close()


@receiver(got_request_exception, dispatch_uid="config.drop_outdated_plans")
def drop_outdated_plans(**_: Any) -> bool:
    """Close this thread's connection if the error in hand tells that it holds a statement that was
    prepared before a migration: "cached plan must not change result type", at each execution."""
    error = sys.exception()
    outdated = isinstance(error, NotSupportedError) and isinstance(
        error.__cause__, FeatureNotSupported
    )
    if outdated:
        connections.close_all()
    return outdated


class _MomentLoader(Loader):
    """A tenth of the time that Django's own loader takes, for rows that are full of times."""

    timezone = UTC  # if it were not the connection's, Django would replace the loader

    def load(self, data: Buffer) -> datetime:
        return datetime.fromisoformat(bytes(data).decode())


@receiver(connection_created, dispatch_uid="config.load_moments")
def load_moments(*, connection: Any, **_: Any) -> None:
    """PostgreSQL writes times in ISO 8601, in UTC as Django has set its connection."""
    if connection.vendor == "postgresql":
        connection.connection.adapters.register_loader("timestamptz", _MomentLoader)


def _has_news(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
