"""Pictures of every page: `make screenshots` writes them to screenshots/.

To have one more page in it, add it to PAGES; what it shows is made by `demo_data`.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page

from tests.browser.site import Site, chromium, enter, furnished
from tests.live_server import ROOT

FOLDER = ROOT / "screenshots"
LAPTOP, PHONE = (1440, 900), (390, 844)

# A name, and an address in which what `demo_data.seed` prints is filled in.
PAGES = {
    "home": "/admin/",
    "sessions": "/admin/sessions_app/session/",
    "sessions-attention": "/admin/sessions_app/session/?attention=yes",
    "sessions-filtered": "/admin/sessions_app/session/?agent=analyst&failed=yes"
    "&active_from=2026-01-01T00:00&metadata=tier%3Dgold",
    "sessions-bulk": "/admin/sessions/bulk/{bulk}/",
    "sessions-bulk-live": "/admin/sessions/bulk/{live_bulk}/",
    "sessions-bulks": "/admin/sessions/bulk/",
    "sessions-none": "/admin/sessions_app/session/?q=nothing-is-called-this",
    "session": "/admin/sessions/{talk}/",
    "session-live": "/admin/sessions/{live_session}/",
    "session-search": "/admin/sessions/{talk}/search/?q=export",
    "session-memory": "/admin/sessions/{talk}/memory/",
    "session-runs": "/admin/sessions/{talk}/runs/",
    "session-tools": "/admin/sessions/{talk}/tools/",
    "session-events": "/admin/sessions/{talk}/events/",
    "session-raw": "/admin/sessions/{talk}/raw/",
    "close": "/admin/sessions_app/session/close/?id={session}",
    "close-all": "/admin/sessions_app/session/",
    "delete-all": "/admin/sessions_app/session/",
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


# What leads from there to a page that has no address of its own: an action that is asked for.
ASKED = {"close-all": "close", "delete-all": "remove"}


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


def take_all(browser: Browser, site: Site) -> Iterator[Path]:
    for look in LOOKS:
        context = browser.new_context(
            base_url=site.server.url,
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
            show(page, name, address.format(**site.ids))
            yield take(page, look, name)
        context.close()


def show(page: Page, name: str, address: str) -> None:
    page.goto(address)
    if name in ASKED:
        page.locator("[data-across]").check()
        page.locator("select[name=action]").select_option(ASKED[name])
        page.locator("#changelist-form button[name=index]").click()
        page.wait_for_selector(".confirm")


def wanted() -> dict[str, str]:
    """PAGES, or those that the variable ONLY names."""
    only = os.environ.get("ONLY", "").split()
    return {name: at for name, at in PAGES.items() if not only or name in only}


def take(page: Page, look: Look, name: str) -> Path:
    page.wait_for_load_state("networkidle")
    path = FOLDER / look.name / f"{name}.png"
    page.screenshot(path=path, full_page=True)
    return path


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        furnished(Path(folder)) as site,
        chromium() as browser,
    ):
        taken = list(take_all(browser, site))
    print(f"{len(taken)} pictures in {FOLDER.name}/")  # noqa: T201


if __name__ == "__main__":
    main()
