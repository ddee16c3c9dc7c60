"""How often something was done lately: counted in Django's cache, for all processes (and machines)
that share it.

Time is cut into windows of one length, and each has its count, so that one cache operation tells.
Twice the number is possible in a moment that two windows share.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import ceil
from typing import Any

from django.conf import settings
from django.core.cache import cache

logger = logging.getLogger(__name__)


def spend(name: str, *, most: int, seconds: int) -> int:
    """Count one more of ``name``. Returns 0, or, when there were more than ``most`` in this window
    of so many seconds, after how many of them the next one begins.

    While the cache cannot be reached nothing is held up.
    """
    now = time.time()
    window = int(now // seconds)
    with _whatever_the_cache_says():
        if _count(_key(name, window), seconds) > most:
            return ceil((window + 1) * seconds - now)
    return 0


def refund(name: str, *, seconds: int) -> None:
    """Take the last one back: it need not have been counted."""
    with suppress(ValueError), _whatever_the_cache_says():
        cache.decr(_key(name, int(time.time() // seconds)))


@contextmanager
def _whatever_the_cache_says() -> Iterator[None]:
    try:
        yield
    except ValueError:  # its word for what it does not have
        raise
    except Exception as error:  # noqa: BLE001 (each kind of cache has kinds of its own)
        logger.warning("the cache does not count: %s", type(error).__name__)


def _key(name: str, window: int) -> str:
    return f"throttle:{name}:{window}"


def _count(key: str, seconds: int) -> int:
    try:
        return cache.incr(key)
    except ValueError:  # the first; unless somebody else is
        return 1 if cache.add(key, 1, timeout=seconds) else cache.incr(key)


def client_address(meta: dict[str, Any]) -> str:
    """Who sent the request, as far as it can be believed: with `PROXIES` in front of the server,
    the outermost of them wrote that entry of ``X-Forwarded-For``; whatever stands before it, and
    all of it without a proxy, anybody may write."""
    peer = str(meta.get("REMOTE_ADDR", ""))
    passed = [part.strip() for part in meta.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    if not settings.PROXIES or len(passed) < settings.PROXIES:
        return peer
    return passed[-settings.PROXIES] or peer
