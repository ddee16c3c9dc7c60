"""Database connections that outlive a request; imported where requests are served."""

import select
import sys
import threading
import time
from datetime import UTC, datetime
from typing import Any

import psycopg
from django.conf import settings
from django.core.signals import got_request_exception, request_started
from django.db import NotSupportedError, connections
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg.abc import PQGen
from psycopg.adapt import Buffer, Loader
from psycopg.errors import FeatureNotSupported

# A connection that was in use so lately is taken for alive; who is wrong about it gets a 503.
SURE_FOR_SECONDS = 1.0

# Beyond the time after which the server itself ends a statement.
_GRACE_SECONDS = 5

# When a thread has looked last; one that serves no requests never has.
_looked = threading.local()


@receiver(request_started, dispatch_uid="config.drop_dead_connections")
def drop_dead_connections(**_: Any) -> None:
    """Close this thread's connection if the database has ended it, so that a new one is opened.

    An idle connection has nothing to read but the server's farewell: to look for it once a second
    costs no query, as Django's own check (CONN_HEALTH_CHECKS) does at every request.
    """
    now = time.monotonic()
    if now - getattr(_looked, "at", 0) < SURE_FOR_SECONDS:
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


class _BoundConnection(psycopg.Connection[Any]):
    """Gives up a server that neither finishes a statement nor ends it by its own timeout: one that
    hangs (its disk, its machine) holds the connection open and says nothing."""

    def wait(self, gen: PQGen, interval: float = 0.1, timeout: float | None = None) -> Any:
        longest = settings.DB_STATEMENT_TIMEOUT + _GRACE_SECONDS
        try:
            return super().wait(gen, interval, timeout or longest)
        except psycopg.OperationalError as error:
            if error.sqlstate is None:  # not the server's word: it is late, or gone
                self.pgconn.finish()  # nothing may be sent after what was not answered
            raise


@receiver(connection_created, dispatch_uid="config.bound_waits")
def bound_waits(*, connection: Any, **_: Any) -> None:
    """For threads that serve requests; migrations and the sweep may take their time."""
    serves = hasattr(_looked, "at")
    if connection.vendor == "postgresql" and serves and settings.DB_STATEMENT_TIMEOUT:
        # Django connects by a function of the driver, which takes no class.
        connection.connection.__class__ = _BoundConnection


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
