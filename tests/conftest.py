"""The database that tests run on, and accounts that talk to the API."""

import os
import shutil
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from tests.api_client import APIClient
from tests.factories import make_account, make_token


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """SQLite in a file, since threads do not share a memory; a new one for each worker and run."""
    database = settings.DATABASES["default"]
    if database["ENGINE"] == "django.db.backends.sqlite3":
        folder: Path = tmp_path_factory.mktemp("database")
        database["TEST"] = {**database.get("TEST", {}), "NAME": str(folder / "test.sqlite3")}


def pytest_runtest_setup(item: pytest.Item) -> None:
    chromium = os.environ.get("CHROMIUM", "chromium")
    if item.get_closest_marker("browser") and not shutil.which(chromium):
        pytest.skip(f"{chromium} is not installed (CHROMIUM names another)")


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
