import fcntl
import gc
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection, connections, transaction
from django.http.request import validate_host
from django.utils.module_loading import import_string
from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels

from runs_app.management.memory import give_back_memory
from runs_app.management.processes import Family, end_with_parent
from runs_app.management.streaming import end_streams_at_stop, send_endless_answers_apart
from sessions_app.services.tokens import get_or_create_account, issue_token

_ALLOCATIONS_BEFORE_COLLECTION = 20_000
_BACKLOG = 1024

# Any number, as long as all servers take the same.
_SET_UP_LOCK = 0x0D055137

FIRST_RUN = """
First run. What follows is shown only now:

  Operator     {operator} / {password}
  Agent token  {token}

Try it in another terminal, line by line:

SESSION=$(curl -sS {api}/sessions {headers} -d '{{"agent_id": "demo", "title": "First session"}}' \
| grep -o 'sess_[0-9a-z]*' | head -n 1); echo "$SESSION"
curl -sS {api}/sessions/$SESSION/messages {headers} -d '{{"role": "user", "content": "Hello"}}'
curl -sS {api}/sessions/$SESSION/context -H 'Authorization: Bearer {token}'
"""

LATER_RUN = """
The operator's password and the agent's token were printed at the first run. New ones:

  {manage} changepassword operator
  {manage} create_token agent --name NAME
"""


class Command(BaseCommand):
    help = (
        "Migrates the database, makes the first accounts, and serves: worker processes and the "
        "sweep, until SIGTERM or Ctrl-C. Everything is set by the environment (see README.md)."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        _refuse_taken_port()
        try:
            with _alone():
                # Once, before there are workers.
                call_command("migrate", interactive=False, verbosity=0)
                self.stdout.write(_greeting())
                # Before others begin, and before there are workers: none survives a fork.
                connections.close_all()
        except OperationalError as error:
            raise CommandError(f"The database cannot be used: {error}") from error
        _share_memory()
        with _folder_of_metrics():
            code = Family(server=_run_server, chore=_run_sweep).run()
        _tidy_up()
        sys.exit(code)


def _share_memory() -> None:
    """Keep what is loaded by now out of the garbage collector: its marks would give each worker a
    copy of every page that it shares with this process."""
    gc.collect()
    gc.freeze()


@contextmanager
def _alone() -> Iterator[None]:
    """Let one server at a time set a shared database up: two migrations trip over each other.

    It may take longer than a request's statement may, and so may waiting for it. The lock goes
    with the connection, or with the open folder.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0")
            cursor.execute("SELECT pg_advisory_lock(%s)", [_SET_UP_LOCK])
        yield
        return
    folder = os.open(Path(connection.settings_dict["NAME"]).parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextmanager
def _folder_of_metrics() -> Iterator[None]:
    """Where the workers count for all of them; named before any of them loads what counts."""
    if not settings.METRICS_TOKEN:
        yield
        return
    with TemporaryDirectory(prefix="dossier-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        yield


def _tidy_up() -> None:
    """Leave an SQLite database as one file, which a copy then holds whole."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            # Another server may use it still, and will do this at its own end.
            cursor.execute("PRAGMA busy_timeout = 0")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()


def _refuse_taken_port() -> None:
    """Ask before anything is made: the server shares its port with whoever allows that."""
    family = socket.AF_INET6 if ":" in settings.HOST else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.HOST, settings.PORT))
        except OSError as error:
            raise CommandError(
                f"Cannot listen on {settings.HOST}:{settings.PORT} ({error.strerror}). "
                "Choose another with HOST and PORT."
            ) from error


def _greeting() -> str:
    address = _address()
    places = (
        f"Dossier starts at {address} (Ctrl-C stops it)\n\n"
        f"  API          {address}/api/v1\n"
        f"  API docs     {address}/docs\n"
        f"  Admin        {address}/admin/\n"
    )
    return places + (_first_run(address) or LATER_RUN.format(manage=_manage()))


def _address() -> str:
    """Where a person finds the server: under a name that it answers to."""
    if settings.HTTPS:
        return f"https://{settings.ALLOWED_HOSTS[0]}"
    everywhere = settings.HOST in {"0.0.0.0", "::"}  # noqa: S104
    host = "127.0.0.1" if everywhere else settings.HOST
    host = f"[{host}]" if ":" in host else host
    if not validate_host(host, settings.ALLOWED_HOSTS):
        host = settings.ALLOWED_HOSTS[0]
    return f"http://{host}:{settings.PORT}"


def _manage() -> str:
    """How manage.py is called with the Python that runs now."""
    python = Path(sys.executable)
    inside = python.is_relative_to(settings.BASE_DIR)
    return f"{python.relative_to(settings.BASE_DIR) if inside else python} manage.py"


@transaction.atomic
def _first_run(address: str) -> str | None:
    """Make an operator and an agent where there is nobody; None where there is."""
    accounts = get_user_model().objects
    if accounts.exists():
        return None
    password = secrets.token_urlsafe(15)
    operator = accounts.create_superuser("operator", password=password)
    agent, _created = get_or_create_account(username="agent")
    token = issue_token(account=agent, name="first run")
    return FIRST_RUN.format(
        operator=operator.get_username(),
        password=password,
        token=token,
        api=f"{address}/api/v1",
        headers=f"-H 'Authorization: Bearer {token}' -H 'Content-Type: application/json'",
    )


def _run_server() -> None:
    server = Granian(
        target=settings.WSGI_APPLICATION,
        address=settings.HOST,
        port=settings.PORT,
        interface=Interfaces.WSGI,
        workers=settings.WORKERS,
        blocking_threads=settings.THREADS,
        # An idle thread that ends takes its database connection with it: keep both.
        blocking_threads_idle_timeout=600,
        # Connections of a worker; what streams hold is not taken from the rest.
        backpressure=_BACKLOG // settings.WORKERS + settings.MAX_STREAMS,
        backlog=_BACKLOG,
        websockets=False,
        respawn_failed_workers=True,
        workers_kill_timeout=10,
        log_level=LogLevels.warning,
        log_dictconfig=settings.LOGGING,
    )
    send_endless_answers_apart()
    server.serve(target_loader=partial(_load_application, os.getpid()), wrap_loader=False)


def _load_application(parent: int) -> Any:
    """The first thing that each worker process does."""
    end_with_parent(parent)
    end_streams_at_stop()
    # A request's own objects go with their last reference, so there is hardly anything to collect.
    gc.set_threshold(_ALLOCATIONS_BEFORE_COLLECTION)
    give_back_memory()
    return import_string(settings.WSGI_APPLICATION)


def _run_sweep() -> None:
    call_command("expire_sessions", loop=settings.SWEEP_INTERVAL)
