"""How the cache is reached in which attempts and requests are counted."""

from importlib.util import find_spec
from typing import Any

from environs import EnvError

_LOCAL = "django.core.cache.backends.locmem.LocMemCache"
_REDIS = "django.core.cache.backends.redis.RedisCache"
_BOUNDS: dict[str, dict[str, Any]] = {
    _LOCAL: {"MAX_ENTRIES": 100_000},
    # In seconds: nobody waits longer to be counted.
    _REDIS: {"socket_connect_timeout": 1, "socket_timeout": 1},
}


def cache_options(cache: dict[str, Any]) -> dict[str, Any]:
    """What `CACHE_URL` names, with bounds in time, or of what one process remembers.

    Raises:
        EnvError: it cannot be used.
    """
    backend = cache["BACKEND"]
    if backend not in _BOUNDS:
        raise EnvError("CACHE_URL must begin with redis://, rediss:// or locmem://")
    if backend == _REDIS and find_spec("redis") is None:
        raise EnvError("CACHE_URL needs a library that is not installed: requirements-redis.txt.")
    return cache | {"OPTIONS": _BOUNDS[backend] | cache.get("OPTIONS", {})}
