"""One browser for all tests of a module."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    executable = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()
