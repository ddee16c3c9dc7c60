"""``manage.py import_sessions``: what people have of their agents, as sessions."""

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from sessions_app.management.transcripts import FORMATS, BadFileError, Loader
from sessions_app.services import Actor, SessionManager


class Command(BaseCommand):
    help = (
        "Store transcripts of agents as sessions. A file that was stored already, wholly or in "
        "part, is not stored twice; one that cannot be taken is named with its line and left out."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="file or folder")
        parser.add_argument("--format", required=True, choices=list(FORMATS))
        parser.add_argument("--account", required=True, help="user name of the sessions' owner")
        parser.add_argument("--agent-id", help="of the sessions (default: by the format)")
        parser.add_argument("--user-id", help="of the sessions")

    def handle(self, *, paths: list[Path], format: str, account: str, **options: Any) -> None:
        reader, patterns = FORMATS[format]
        loader = Loader(
            SessionManager(Actor.account(_account(account))),
            reader,
            agent_id=options["agent_id"],
            user_id=options["user_id"],
        )
        files = list(dict.fromkeys(_files(paths, patterns)))
        refused = 0
        total = sum(file.stat().st_size for file in files)
        # On a terminal only: elsewhere the lines of the files tell how far it is.
        with tqdm(total=total, unit="B", unit_scale=True, disable=None, file=self.stderr) as bar:
            for file in files:
                refused += not self._load(loader, file, bar)
        if refused:
            raise CommandError(f"{refused} of {len(files)} files were left out.")

    def _load(self, loader: Loader, path: Path, bar: Any) -> bool:
        before = bar.n
        try:
            with path.open("rb") as file:
                loaded = loader.load(file, lambda done: bar.update(before + done - bar.n))
        except (BadFileError, OSError) as error:
            self._say(bar, self.stderr, f"{path}: {error}")
            return False
        finally:
            bar.update(before + path.stat().st_size - bar.n)
        known = loaded.messages - loaded.stored
        self._say(
            bar,
            self.stdout,
            f"{path}: sessions: {loaded.sessions}, messages stored: {loaded.stored}, "
            f"known before: {known}",
        )
        return True

    def _say(self, bar: Any, stream: Any, line: str) -> None:
        bar.clear()
        stream.write(line)
        bar.refresh()


def _account(name: str) -> User:
    account = User.objects.filter(username=name).first()
    if account is None:
        raise CommandError(f"There is no account {name}; `create_token` makes one.")
    return account


def _files(paths: list[Path], patterns: tuple[str, ...]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(found for each in patterns for found in path.rglob(each))
        elif path.is_file():
            yield path
        else:
            raise CommandError(f"There is no file {path}.")
