"""A live server that the races share, and accounts whose writes are really committed."""

import secrets
import subprocess
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections

from sessions_app.services.audit import Verified, verify
from tests.factories import forget
from tests.live_server import LiveServer, fresh_database
from tests.races.invariants import Select, broken, selecting
from tests.races.load import Client


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """As it is installed: no setting but the address and the database."""
    with fresh_database(tmp_path_factory.mktemp("races")) as url:
        with LiveServer(database_url=url) as server:
            yield server


@pytest.fixture
def select(server: LiveServer) -> Iterator[Select]:
    """Reads the server's tables; afterwards no rule may be broken in them."""
    select = selecting(server.database_url)
    yield select
    assert broken(select) == {}
    assert server.faults == []


@pytest.fixture
def connect(server: LiveServer, select: Select) -> Iterator[Callable[[], Client]]:
    """Makes clients, and closes them."""
    made: list[Client] = []

    def connect() -> Client:
        made.append(Client(server))
        return made[-1]

    yield connect
    for client in made:
        client.close()


@pytest.fixture
def client(connect: Callable[[], Client]) -> Client:
    return connect()


@pytest.fixture
def clients(connect: Callable[[], Client]) -> list[Client]:
    """As many as any race here needs."""
    return [connect() for _ in range(20)]


@pytest.fixture
def sweeping(server: LiveServer) -> Iterator[subprocess.Popen[bytes]]:
    """`manage.py expire_sessions` without a pause, beside the server's own sweep."""
    with server.beside("expire_sessions", "--loop", "0.05") as process:
        yield process
        assert process.poll() is None, "the sweep ended by itself"


@pytest.fixture
def db(django_db_setup: None, django_db_blocker) -> Iterator[None]:
    """Instead of pytest-django's: no transaction around the test, since other threads must see
    what it writes, and no flush after it, since that empties the groups too."""
    with django_db_blocker.unblock():
        yield
        connections.close_all()


@pytest.fixture
def account(db: None) -> Iterator[User]:
    """An account in the suite's database; nothing of it stays."""
    account = User.objects.create_user(f"racer-{secrets.token_hex(6)}")
    yield account
    forget(account)


@pytest.fixture
def consistent(account: User) -> Iterator[None]:
    """Afterwards no rule may be broken in the suite's database, and no chain of events."""
    yield
    assert list(verify(Verified())) == []
    with connection.cursor() as cursor:

        def select(query: str) -> list[tuple]:
            cursor.execute(query)
            return cursor.fetchall()

        assert broken(select) == {}
