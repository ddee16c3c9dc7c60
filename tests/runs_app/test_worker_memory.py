import ctypes
import subprocess
import sys

import pytest

# A worker after many answers of 1,000 messages: of what they took, a little stays here and there.
_WORKER = """
import resource, time
from runs_app.management import memory

def resident():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * resource.getpagesize()

before = resident()
texts = [bytes(2_000) for _ in range(30_000)]
texts = texts[::100]
freed = resident()
memory._EVERY_SECONDS = 0.05
memory.give_back_memory()
deadline = time.monotonic() + 20
while resident() - before > (freed - before) / 4 and time.monotonic() < deadline:
    time.sleep(0.05)
print(freed - before, resident() - before)
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the call is one of the GNU C library"
)
def test_what_was_freed_between_what_stays_goes_back_to_the_system() -> None:
    command = [sys.executable, "-c", _WORKER]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    freed, kept = map(int, finished.stdout.split())
    assert freed > 50_000_000
    assert kept < freed / 4
