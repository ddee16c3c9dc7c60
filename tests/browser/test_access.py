"""What axe finds on each page, in both themes, and what works without a mouse."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.screenshots import PAGES, PASSWORD
from tests.live_server import LiveServer, fresh_database

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

pytestmark = pytest.mark.browser

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[LiveServer, dict[str, str]]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        fresh_database(Path(folder)) as url,
        LiveServer(database_url=url, WORKERS=1) as server,
    ):
        seed = f"from tests.browser.demo_data import seed; seed('{PASSWORD}')"
        printed = server.manage("shell", "--no-imports", "-c", seed)
        yield server, dict(line.split("=") for line in printed.splitlines())


@pytest.fixture(scope="module", params=["light", "dark"])
def page(chromium: Any, site: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    server, _ids = site
    context = chromium.new_context(
        base_url=server.url, color_scheme=request.param, reduced_motion="reduce"
    )
    page = context.new_page()
    refused: list[str] = []
    page.on("console", lambda said: refused.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: refused.append(str(error)))
    page.goto("/admin/")
    assert faults(page) == []
    page.locator("[name=username]").fill("admin")
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("#user-tools")
    yield page
    context.close()
    # What a policy forbids, and what a script stumbles over, is an error of the browser's console.
    assert refused == []


def faults(page: Any, within: str | None = None) -> list[str]:
    found = axe.Axe().run(page, context=within, options=RULES).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_on(page, site, name):
    page.goto(PAGES[name].format(**site[1]))
    page.wait_for_load_state("networkidle")
    assert faults(page) == []


def test_the_reader_of_the_api_works(page):
    page.goto("/docs")
    page.wait_for_selector(".opblock")


def test_axe_finds_nothing_in_an_open_menu(page):
    page.goto("/admin/sessions_app/session/")
    for summary in (page.locator(".sidebar-foot summary"), page.locator(".filter summary").first):
        summary.click()
        assert faults(page, within=".menu[open]") == []
        page.keyboard.press("Escape")


def test_a_menu_is_opened_and_closed_by_the_keyboard(page):
    page.goto("/admin/")
    page.locator(".sidebar-foot summary").focus()
    page.keyboard.press("Enter")
    assert page.locator(".sidebar-foot .menu-panel").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator(".sidebar-foot .menu-panel").is_visible()


def test_the_theme_is_chosen_and_stays(page):
    page.goto("/admin/")
    was_dark = "dark" in page.locator("html").get_attribute("class")
    page.locator(".sidebar-foot summary").click()
    page.get_by_role("button", name="Light" if was_dark else "Dark").click()
    page.reload()
    assert ("dark" in page.locator("html").get_attribute("class")) != was_dark
    page.locator(".sidebar-foot summary").click()
    page.get_by_role("button", name="Like the system").click()


def test_the_language_is_switched_in_the_page(page):
    page.goto("/admin/sessions_app/session/?status=ACTIVE")
    page.locator(".sidebar-foot summary").click()
    page.get_by_role("button", name="简体中文").click()
    page.wait_for_selector("html[lang=zh-hans]")
    assert page.url.endswith("?status=ACTIVE")
    assert page.locator("h1").inner_text() == "会话"
    assert re.search("分钟前|小时前", page.locator("#result_list").inner_text())
    page.locator(".sidebar-foot summary").click()
    page.get_by_role("button", name="English").click()
    page.wait_for_selector("html[lang=en]")


def test_times_are_the_viewers_with_utc_behind(chromium, site):
    server, ids = site
    context = chromium.new_context(base_url=server.url, timezone_id="Asia/Shanghai")
    page = context.new_page()
    page.goto("/admin/")
    page.locator("[name=username]").fill("admin")
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("#user-tools")
    page.goto(f"/admin/sessions_app/session/{ids['session']}/change/")
    time = page.locator(".session-facts time").first
    shown, utc = time.inner_text(), time.get_attribute("title")
    assert utc.endswith(" UTC")
    hours = int(shown[11:13]) - int(utc[11:13])
    assert hours % 24 == 8
    context.close()


def test_an_id_is_copied(page, site):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/admin/sessions_app/session/{site[1]['session']}/change/")
    page.get_by_role("button", name="Copy").click()
    assert page.locator("#copy-status").inner_text() == "Copied"
    assert page.evaluate("navigator.clipboard.readText()") == site[1]["session"]


def test_the_sidebar_opens_on_a_phone(chromium, site):
    server, _ids = site
    context = chromium.new_context(base_url=server.url, viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto("/admin/")
    page.locator("[name=username]").fill("admin")
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("#user-tools", state="attached")
    link = page.locator(".sidebar").get_by_role("link", name="Runs", exact=True)
    assert not link.is_visible()
    page.get_by_role("button", name="Menu").click()
    link.click()
    page.wait_for_url("**/runs_app/run/")
    context.close()
