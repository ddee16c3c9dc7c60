"""A live server with a month of sessions, and visits to it by people who are logged in."""

import json
import os
import secrets
import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.live_server import LiveServer, fresh_database

# Of what a page does by itself: busy machines are slow.
expect.set_options(timeout=30_000)

PASSWORD = secrets.token_urlsafe(16)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Site:
    """The server, what `demo_data.seed` printed, and what a browser keeps of each login."""

    server: LiveServer
    ids: dict[str, str]
    logins: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def visit(self, browser: Browser, name: str | None = "admin", **options: Any) -> Iterator[Page]:
        """A page in which this person (None: nobody) has logged in, and nothing may go wrong.

        What a policy forbids, and what a script stumbles over, is an error of its console.
        """
        kept = {"storage_state": self._login(browser, name)} if name else {}
        context = browser.new_context(
            base_url=self.server.url, **{"locale": "en-US", **kept, **options}
        )
        page = context.new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        try:
            yield page
        finally:
            context.close()
        assert faults == []

    def call(self, path: str, **body: Any) -> Any:
        """What the API answers to the agent."""
        request = urllib.request.Request(
            f"{self.server.url}/api/v1/{path}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def _login(self, browser: Browser, name: str) -> Any:
        if name not in self.logins:
            context = browser.new_context(base_url=self.server.url)
            enter(context.new_page(), name)
            self.logins[name] = context.storage_state()
            context.close()
        return self.logins[name]


def enter(page: Page, name: str = "admin") -> None:
    page.goto("/admin/")
    page.locator("[name=username]").fill(name)
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("#user-tools", state="attached")


@contextmanager
def furnished(folder: Path) -> Iterator[Site]:
    with fresh_database(folder) as url, LiveServer(database_url=url, WORKERS=1) as server:
        seed = f"from tests.browser.demo_data import seed; seed('{PASSWORD}')"
        printed = server.manage("shell", "--no-imports", "-c", seed)
        yield Site(server, dict(line.split("=") for line in printed.splitlines()))


@contextmanager
def chromium() -> Iterator[Browser]:
    executable = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()
