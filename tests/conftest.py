"""The database that tests run on. Factories and fixtures of the domain are elsewhere."""

import os
import shutil
from pathlib import Path

import pytest
from django.conf import settings


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
