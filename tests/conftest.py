"""The database that tests run on, and accounts that talk to the API."""

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from pytest_django import DjangoDbBlocker, Settings
from xdist.scheduler import LoadGroupScheduling

from tests.api_client import APIClient
from tests.factories import make_account, make_token
from tests.tampering import tables_can_be_emptied

# Tests start more than a hundred processes, each of which would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """SQLite in a file, since threads do not share a memory; a new one for each worker and run.

    On PostgreSQL no commit waits for the disk: what a crash leaves is tested at live servers, whose
    databases are their own.
    """
    database = settings.DATABASES["default"]
    if database["ENGINE"] == "django.db.backends.sqlite3":
        folder: Path = tmp_path_factory.mktemp("database")
        database["TEST"] = {**database.get("TEST", {}), "NAME": str(folder / "test.sqlite3")}
    else:
        database["OPTIONS"]["options"] += " -c synchronous_commit=off"


@pytest.fixture(scope="session", autouse=True)
def emptied_tables() -> Iterator[None]:
    with tables_can_be_emptied():
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    chromium = os.environ.get("CHROMIUM", "chromium")
    if item.get_closest_marker("browser") and not shutil.which(chromium):
        pytest.skip(f"{chromium} is not installed (CHROMIUM names another)")


# Tests that share a live server, and tests that take so long that they must not come last.
SHARING = (
    "tests/browser/",
    "tests/conversations/",
    "tests/races/",
    "tests/real/",
    "tests/config/test_serve.py",
)
LONG = ("tests/test_demo.py", "tests/sessions_app/test_plans_at_size.py")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: no use in looking for garbage in it."""
    gc.freeze()


class _ByLiveServer(LoadGroupScheduling):
    """Tests that share a live server go to one worker, so that none is set up twice.

    By their paths: with pytest 9.2, xdist 3.8 loses the marks that it would group by.
    """

    def _split_scope(self, nodeid: str) -> str:
        return next((path for path in SHARING if nodeid.startswith(path)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadGroupScheduling | None:
    """`--dist loadgroup`: it begins with the large groups, and fills up with the rest."""
    return _ByLiveServer(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(scope="class")
def class_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A transaction around the tests of a class, for rows that cost too much to be made for each.

    The transaction of each test (`db`) is inside it: what a test does to these rows is taken back
    before the next one, and they are after the last.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def remembered_tokens(settings: Settings) -> None:
    """For many requests of one account: its token is looked up once, as in production.

    Everywhere else each request asks for it (`tests.settings`).
    """
    settings.TOKEN_CACHE_SECONDS = 3600


@pytest.fixture
def agent(db: None) -> User:
    """The account that `api` belongs to."""
    return make_account("agent")


@pytest.fixture
def api(agent: User) -> APIClient:
    """A client that checks every answer against the OpenAPI document."""
    return APIClient(make_token(account=agent))


@pytest.fixture
def stranger(db: None) -> APIClient:
    """Another account: it must see nothing of `agent`'s."""
    return APIClient(make_token(account=make_account("stranger")))


@pytest.fixture
def auditor(db: None) -> APIClient:
    """An account that reads every account's sessions."""
    account = make_account("auditor", permissions=["view_all_sessions"])
    return APIClient(make_token(account=account))


@pytest.fixture
def say(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture) -> Callable[[str], None]:
    """Print a line of figures into the report of a soak."""

    def say(line: str) -> None:
        reporter = request.config.pluginmanager.get_plugin("terminalreporter")
        if reporter and request.node.get_closest_marker("soak"):
            with capsys.disabled():
                reporter.write_line(f" {line}")

    return say
