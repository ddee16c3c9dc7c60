import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from sessions_app.services.audit import export


class Command(BaseCommand):
    help = (
        "Write every lifecycle event and every content read to standard output, a line of JSON "
        "each, with the digests that chain them. Kept elsewhere, the file shows later what was "
        "changed meanwhile (`verify_audit --against`)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--session", metavar="ID", help="of this session only")

    def handle(self, *, session: str | None, **_: Any) -> None:
        for line in export(session_id=session):
            sys.stdout.buffer.write(line)
