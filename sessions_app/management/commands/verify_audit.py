from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sessions_app.services.audit import Fault, Verified, compare, verify


class Command(BaseCommand):
    help = (
        "Follow the chains of lifecycle events and of content reads, and say where one was broken: "
        "a row that was changed, removed or put in. Fails if there is one. Safe while the server "
        "runs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--against",
            type=Path,
            metavar="FILE",
            help="hold what is stored also against this file of `export_audit`",
        )

    def handle(self, *, against: Path | None, **_: Any) -> None:
        done = Verified()
        faults = sum(self._tell(fault) for fault in verify(done))
        self.stdout.write(f"{done.rows} rows in {done.chains} chains were followed.")
        if against is not None:
            faults += self._compare(against)
        if faults:
            raise CommandError(f"{faults} faults: what is stored is not what was written.")

    def _compare(self, file: Path) -> int:
        done = Verified()
        try:
            with file.open("rb") as lines:
                faults = sum(self._tell(fault) for fault in compare(lines, done))
        except (OSError, ValueError) as error:
            raise CommandError(f"{file} cannot be compared: {error}") from error
        self.stdout.write(f"{done.rows} rows of {file} were compared.")
        return faults

    def _tell(self, fault: Fault) -> bool:
        self.stderr.write(f"{fault.name} {fault.sequence} of {fault.session_id} {fault.reason}")
        return True
