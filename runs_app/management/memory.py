"""Memory that a worker has freed, given back to the system."""

import ctypes
import threading
import time
from collections.abc import Callable

_EVERY_SECONDS = 5


def give_back_memory() -> None:
    """Start a thread that does it now and then.

    The GNU C library keeps what was freed between things that stay, as large answers, forks and
    imports leave it. To look through all of it takes some milliseconds, for which nobody waits but
    who asks that library for memory. Other C libraries have no such call.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim.argtypes = [ctypes.c_size_t]
        threading.Thread(target=_trim_forever, args=[trim], name="memory", daemon=True).start()


def _trim_forever(trim: Callable[[int], int]) -> None:
    while True:
        time.sleep(_EVERY_SECONDS)
        trim(0)
