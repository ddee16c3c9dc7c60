"""Pictures of every page: `make screenshots` writes them to screenshots/.

To have one more page in it, add it to PAGES; what it shows is made by `demo_data`.
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import FLAGS
from tests.live_server import ROOT, LiveServer, fresh_database

FOLDER = ROOT / "screenshots"
LAPTOP, PHONE = (1440, 900), (390, 844)
PASSWORD = secrets.token_urlsafe(16)

# A name, and an address in which what `demo_data.seed` prints is filled in.
PAGES = {
    "home": "/admin/",
    "sessions": "/admin/sessions_app/session/",
    "sessions-none": "/admin/sessions_app/session/?q=nothing-is-called-this",
    "session": "/admin/sessions/{talk}/",
    "session-memory": "/admin/sessions/{talk}/memory/",
    "session-runs": "/admin/sessions/{talk}/runs/",
    "session-tools": "/admin/sessions/{talk}/tools/",
    "session-events": "/admin/sessions/{talk}/events/",
    "session-raw": "/admin/sessions/{talk}/raw/",
    "close": "/admin/sessions_app/session/close/?id={session}",
    "delete": "/admin/sessions_app/session/remove/?id={session}",
    "runs": "/admin/runs_app/run/",
    "runs-failed": "/admin/runs_app/run/?status=FAILED",
    "run": "/admin/runs_app/run/{run}/change/",
    "run-failed": "/admin/runs_app/run/{failed_run}/change/",
    "run-live": "/admin/runs_app/run/{live_run}/change/",
    "tool-calls": "/admin/sessions_app/toolcall/",
    "tool-call": "/admin/sessions_app/toolcall/{call}/change/",
    "messages": "/admin/sessions_app/message/",
    "events": "/admin/sessions_app/sessionevent/",
    "content-reads": "/admin/sessions_app/contentread/",
    "tokens": "/admin/sessions_app/accesstoken/",
    "token-new": "/admin/sessions_app/accesstoken/add/",
    "accounts": "/admin/auth/user/",
    "account": "/admin/auth/user/1/change/",
    "account-new": "/admin/auth/user/add/",
    "groups": "/admin/auth/group/",
    "group": "/admin/auth/group/1/change/",
    "password": "/admin/password_change/",
}


class Look(NamedTuple):
    """One way of looking at all pages."""

    name: str
    size: tuple[int, int] = LAPTOP
    scheme: str = "light"
    language: str = "en-US"


LOOKS = (
    Look("light"),
    Look("dark", scheme="dark"),
    Look("chinese", language="zh-CN"),
    Look("phone", size=PHONE),
    Look("phone-dark-chinese", size=PHONE, scheme="dark", language="zh-CN"),
)


def take_all(browser: Browser, server: LiveServer, ids: dict[str, str]) -> Iterator[Path]:
    for look in LOOKS:
        context = browser.new_context(
            base_url=server.url,
            viewport={"width": look.size[0], "height": look.size[1]},
            color_scheme=look.scheme,  # type: ignore[arg-type]
            locale=look.language,
            timezone_id="Asia/Shanghai",
        )
        page = context.new_page()
        page.goto("/admin/")
        yield take(page, look, "login")
        enter(page)
        for name, address in wanted().items():
            page.goto(address.format(**ids))
            yield take(page, look, name)
        context.close()


def wanted() -> dict[str, str]:
    """PAGES, or those that the variable ONLY names."""
    only = os.environ.get("ONLY", "").split()
    return {name: at for name, at in PAGES.items() if not only or name in only}


def enter(page: Page) -> None:
    page.locator("[name=username]").fill("admin")
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("#user-tools", state="attached")


def take(page: Page, look: Look, name: str) -> Path:
    page.wait_for_load_state("networkidle")
    path = FOLDER / look.name / f"{name}.png"
    page.screenshot(path=path, full_page=True)
    return path


def main() -> None:
    executable: Any = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    with (
        tempfile.TemporaryDirectory() as folder,
        fresh_database(Path(folder)) as url,
        LiveServer(database_url=url, WORKERS=1) as server,
        sync_playwright() as engine,
    ):
        seed = f"from tests.browser.demo_data import seed; seed('{PASSWORD}')"
        printed = server.manage("shell", "--no-imports", "-c", seed)
        ids = dict(line.split("=") for line in printed.splitlines())
        browser = engine.chromium.launch(executable_path=executable, args=FLAGS)
        taken = list(take_all(browser, server, ids))
        browser.close()
    print(f"{len(taken)} pictures in {FOLDER.name}/")  # noqa: T201


if __name__ == "__main__":
    main()
