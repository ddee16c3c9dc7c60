from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import timezone

from sessions_app.errors import DossierError
from sessions_app.services.tokens import get_or_create_account, issue_token


class Command(BaseCommand):
    help = (
        "Make a token for the REST API and print it, alone, on standard output. It is shown once. "
        "A new account is a service account: it cannot log in anywhere else."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("account", metavar="ACCOUNT", help="user name; made where it is new")
        parser.add_argument("--name", required=True, help="what the token is for")
        parser.add_argument(
            "--days", type=int, help="how long it works; without this, until it is revoked"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            account, created = get_or_create_account(username=options["account"])
            token = issue_token(
                account=account, name=options["name"], expires_at=_in_days(options["days"])
            )
        except DossierError as error:
            raise CommandError(error.detail) from error
        except DatabaseError as error:
            raise CommandError(f"The database has refused ({error}). Is it migrated?") from error
        self.stderr.write(f"{'New account' if created else 'Account'}: {account.get_username()}")
        self.stdout.write(token)


def _in_days(days: int | None) -> datetime | None:
    try:
        return None if days is None else timezone.now() + timedelta(days=days)
    except OverflowError as error:
        raise CommandError("--days lies beyond all calendars.") from error
