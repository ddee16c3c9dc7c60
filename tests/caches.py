"""The caches in which is counted, both kinds; Redis as a server of its own."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.cache import caches
from pytest_django import Settings

from config.caches import cache_options
from tests.live_server import free_port

LOCAL = "django.core.cache.backends.locmem.LocMemCache"
REDIS = "django.core.cache.backends.redis.RedisCache"


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", "/tmp"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            _await(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()


@pytest.fixture(params=["locmem", "redis"])
def counting(request: pytest.FixtureRequest, settings: Settings) -> Iterator[None]:
    """An empty cache of each kind."""
    if request.param == "locmem":
        chosen = {"BACKEND": LOCAL, "LOCATION": "counting"}
    else:
        chosen = {"BACKEND": REDIS, "LOCATION": request.getfixturevalue("redis_url")}
    with cache_of(settings, chosen):
        caches["default"].clear()
        yield


@contextmanager
def cache_of(settings: Settings, chosen: dict[str, str]) -> Iterator[None]:
    settings.CACHES = {"default": cache_options(dict(chosen))}
    yield
    caches["default"].close()


def _await(port: int) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("redis-server does not answer")
