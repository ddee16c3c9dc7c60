"""What a log line says, and how it leaves the process: JSON, one object in a line, to stderr.

A line never holds what people wrote. So of an exception it tells the kind, the database's code and
where it happened, and never the message: that of a driver quotes values.
"""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from traceback import walk_tb
from typing import Any

import orjson
import structlog
from django.conf import settings
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from structlog.stdlib import ProcessorFormatter, add_log_level, add_logger_name
from structlog.types import EventDict, Processor

from sessions_app.ids import MAX_ID_LENGTH

# No line of ours says where in the code, or in which thread, it was written: the answers to these
# questions are not asked for ("Optimization" in Python's logging HOWTO).
logging._srcfile = None
logging.logThreads = logging.logMultiprocessing = False

_MOST_FRAMES = 50
_MOST_CAUSES = 5
_LONGEST_STATEMENT = 2000

# The request that this thread answers: each line that is written meanwhile says whose it is.
current_request: ContextVar[HttpRequest | None] = ContextVar("current_request", default=None)


# --- How it leaves ---


def write_line(line: bytes) -> None:
    """In one write, without a lock: threads that answer requests would wait for each other here.
    The kernel keeps lines of up to 4 KB whole."""
    os.write(sys.stderr.fileno(), line + b"\n")


class LineHandler(logging.Handler):
    """For records of Python's logging."""

    def handle(self, record: logging.LogRecord) -> bool:
        """logging's own, without its lock."""
        kept = bool(self.filter(record))
        if kept:
            self.emit(record)
        return kept

    def emit(self, record: logging.LogRecord) -> None:
        try:
            write_line(self.format(record).encode(errors="replace"))
        except Exception:  # noqa: BLE001 (a line that cannot be written must not fail a request)
            self.handleError(record)


class _LineLogger:
    """For structlog: what is left to do when the processors are done."""

    def info(self, line: bytes) -> None:
        with suppress(OSError):
            write_line(line)

    debug = warning = error = critical = info


# --- What it says ---


def add_request(_logger: Any, _method: str, line: EventDict) -> EventDict:
    """Say whose request it is: its id, the account's name and the session's id, as far as they are
    known by now. Nothing is looked up for it."""
    request = current_request.get()
    if request is not None:
        facts = vars(request)
        line["request_id"] = facts["request_id"]
        user = facts.get("_cached_user") or facts.get("user")
        if user is not None and type(user) is not SimpleLazyObject and user.username:
            line["account"] = user.username
        match = request.resolver_match
        named = match and match.kwargs.get("session_id")
        if session_id := named or facts.get("agent_session_id"):
            line["session_id"] = session_id[:MAX_ID_LENGTH]  # anything may stand in a path
    return line


def tell_exception(_logger: Any, _method: str, line: EventDict) -> EventDict:
    _kind, error, _traceback = line.pop("exc_info", None) or (None, None, None)
    if error is not None:
        line["exception"] = [*_told(error)]
    return line


def _told(error: BaseException | None) -> Iterator[dict[str, Any]]:
    """The exception, then what it came from."""
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        kind = type(error)
        told = {"type": f"{kind.__module__}.{kind.__qualname__}", "at": _places(error)}
        code = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)
        yield told | {"code": code} if code else told
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _places(error: BaseException) -> list[str]:
    """Where it happened, the innermost last."""
    codes = [(frame.f_code, number) for frame, number in walk_tb(error.__traceback__)]
    return [
        f"{code.co_filename}:{number} {code.co_qualname}" for code, number in codes[-_MOST_FRAMES:]
    ]


def _render(_logger: Any, _method: str, line: EventDict) -> bytes:
    try:
        return orjson.dumps(line)
    except orjson.JSONEncodeError:  # half of a character; or what only has a text
        return json.dumps(line, default=str).encode()


_STAMPED: list[Processor] = [
    add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    add_request,
]

structlog.configure(
    processors=[*_STAMPED, _render],
    wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(settings.LOG_LEVEL)),
    logger_factory=_LineLogger,
    cache_logger_on_first_use=True,
)


def make_formatter() -> ProcessorFormatter:
    """The same line of a record of Python's logging."""
    return ProcessorFormatter(
        foreign_pre_chain=[*_STAMPED, add_logger_name, tell_exception],
        processors=[
            ProcessorFormatter.remove_processors_meta,
            lambda *given: _render(*given).decode(),
        ],
    )


# --- Statements that take long ---

_log = structlog.get_logger()


@receiver(connection_created, dispatch_uid="config.watch_statements")
def watch_statements(*, connection: Any, **_: Any) -> None:
    """Have statements timed, in every process."""
    watched = log_if_slow in connection.execute_wrappers
    if settings.SLOW_QUERY_MS and not watched:
        # Others are pushed on top of it, and popped from there.
        connection.execute_wrappers.insert(0, log_if_slow)


def log_if_slow(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
) -> Any:
    """Log a statement that took `SLOW_QUERY_MS` or longer, waiting included: its text, in which
    places stand for the values, and none of these."""
    began = time.perf_counter()
    try:
        return execute(sql, params, many, context)
    finally:
        took = (time.perf_counter() - began) * 1000
        if took >= settings.SLOW_QUERY_MS:
            _log.warning("slow query", duration_ms=round(took, 1), sql=sql[:_LONGEST_STATEMENT])
