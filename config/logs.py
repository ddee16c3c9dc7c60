"""How a log line leaves the process."""

import logging
import os
import sys


class LineHandler(logging.Handler):
    """Each record in one write to stderr, without a lock: threads that answer requests would wait
    for each other here. The kernel keeps lines of up to 4 KB whole."""

    def handle(self, record: logging.LogRecord) -> bool:
        """logging's own, without its lock."""
        kept = bool(self.filter(record))
        if kept:
            self.emit(record)
        return kept

    def emit(self, record: logging.LogRecord) -> None:
        try:
            os.write(sys.stderr.fileno(), f"{self.format(record)}\n".encode(errors="replace"))
        except Exception:  # noqa: BLE001 (a line that cannot be written must not fail a request)
            self.handleError(record)
