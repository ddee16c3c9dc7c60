"""Memory that a worker has freed, given back to the system."""

import ctypes
import threading
import time

_EVERY_SECONDS = 5


def give_back_memory() -> None:
    """Start a thread that does it now and then.

    The GNU C library keeps what was freed between things that stay: after large answers and
    imports, a third of a worker. To look through all of it takes some milliseconds, without the
    interpreter's lock. Other C libraries have no such call.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        threading.Thread(target=_trim_forever, args=[trim], name="memory", daemon=True).start()


def _trim_forever(trim: "ctypes._NamedFuncPointer") -> None:
    while True:
        time.sleep(_EVERY_SECONDS)
        trim(0)
