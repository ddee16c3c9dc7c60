"""``manage.py expire_sessions``: the sweep, once or for ever."""

import logging
import signal
from argparse import ArgumentParser
from threading import Event
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, close_old_connections

from runs_app.services.sweep import Swept, due, sweep

logger = logging.getLogger("dossier.sweep")


class Command(BaseCommand):
    help = (
        "Interrupt runs and expire sessions whose deadline has passed, finish interrupted "
        "deletions, go on with what operators decided of many sessions, and drop old idempotency "
        "records. Safe to run at any time, any number at once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what is due; do nothing")
        parser.add_argument("--batch", type=int, default=100, help="rows at a time (default 100)")
        parser.add_argument("--loop", type=float, metavar="SECONDS", help="go on until stopped")

    def handle(self, *, dry_run: bool, batch: int, loop: float | None, **_: Any) -> None:
        if batch < 1 or (loop is not None and loop <= 0):
            raise CommandError("--batch and --loop must be greater than zero.")
        if loop is None:
            swept = due() if dry_run else sweep(batch=batch)
            self.stdout.write(_told(swept, dry_run=dry_run))
            if swept.failed:
                raise CommandError(
                    f"{swept.failed} sessions were left for later, or failed; see the log."
                )
            return
        stopped = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: stopped.set())
        while not stopped.is_set():
            self._round(batch=batch, dry_run=dry_run)
            stopped.wait(loop)

    def _round(self, *, batch: int, dry_run: bool) -> None:
        """One round of the loop, which is told in the log; a database that is busy or gone is tried
        again next time."""
        close_old_connections()
        try:
            swept = due() if dry_run else sweep(batch=batch)
        except (OperationalError, InterfaceError) as error:
            # By its kind only: a database's message may repeat a row.
            logger.warning("The sweep will try again: %s", type(error).__name__)
            return
        if swept != Swept():
            logger.info(_told(swept, dry_run=dry_run))


def _told(swept: Swept, *, dry_run: bool) -> str:
    verb = "would be" if dry_run else "were"
    return (
        f"{swept.settled} sessions {verb} settled, {swept.purged} purged, "
        f"{swept.moved} moved as operators decided, "
        f"{swept.idempotency_records} idempotency records dropped."
    )
