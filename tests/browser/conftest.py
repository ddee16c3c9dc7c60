"""One site for all browser tests, and one browser for all tests of a module.

The site grows by what tests add, in any order: each looks for what is its own, or for what no
other changes.
"""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from tests.browser import site as sites
from tests.browser.trial import on_trial
from tests.live_server import LiveServer


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sites.Site]:
    with sites.furnished(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(scope="session")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sites.Site]:
    """Another one, whose sessions are there to be acted on."""
    with on_trial(tmp_path_factory.mktemp("trial")) as trial:
        yield trial


@pytest.fixture(scope="session")
def server(site: sites.Site) -> LiveServer:
    return site.server


@pytest.fixture(scope="session")
def ids(site: sites.Site) -> dict[str, str]:
    return site.ids


@pytest.fixture
def page(chromium: Any, site: sites.Site) -> Iterator[Any]:
    """An administrator's, on a laptop."""
    with site.visit(chromium, viewport={"width": 1440, "height": 900}) as page:
        yield page


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    # No longer than a module: while it runs, Django refuses to use its database in this process.
    with sites.chromium() as browser:
        yield browser
