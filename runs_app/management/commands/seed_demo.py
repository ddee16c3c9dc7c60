"""``manage.py seed_demo``: a database that looks as if it had been worked with for a month."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from runs_app.management import demo
from sessions_app.models import Session


class Command(BaseCommand):
    help = (
        "Write believable sessions of the last 30 days, in English and Chinese, for looking at "
        "the console and for measuring it. Not for a database that is in use."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--sessions", type=int, default=1_000, help="how many (default 1000)")
        parser.add_argument("--seed", type=int, default=1, help="the same seed, the same stories")
        parser.add_argument(
            "--force", action="store_true", help="add them to the sessions that are there"
        )

    def handle(self, *, sessions: int, seed: int, force: bool, **_: Any) -> None:
        if sessions < 1:
            raise CommandError("--sessions must be greater than zero.")
        if not force and Session.objects.exists():
            raise CommandError("There are sessions in this database; --force adds to them.")
        begun = time.monotonic()
        for count in demo.seed(sessions=sessions, seed=seed, now=timezone.now()):
            if count % 10_000 == 0:
                self.stdout.write(f"{count} sessions …")
        self.stdout.write(f"{sessions} sessions in {time.monotonic() - begun:.0f} s.")
