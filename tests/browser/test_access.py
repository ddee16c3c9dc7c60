"""What axe finds on each page, in both themes, and what works without a mouse."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.screenshots import PAGES, show
from tests.browser.site import Site

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

pytestmark = pytest.mark.browser

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "resultTypes": ["violations"],
}
LAPTOP, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}
ON_PHONES = re.compile("home|session|run|close|delete|tool-call")

# Of rows and turns that are made alike, two stay: axe takes its time for each, and says the same.
SHORTEN = """() => {
    const seen = new Map();
    const shape = (each) => `${each.tagName}.${each.className}`;
    for (const row of document.querySelectorAll("tbody tr, .turn, .excerpts li")) {
        const shapes = new Set([row, ...row.querySelectorAll("*")].map(shape));
        const kind = [...shapes].sort().join(" ");
        seen.set(kind, (seen.get(kind) ?? 0) + 1);
        if (seen.get(kind) > 2) row.remove();
    }
}"""


@pytest.fixture(scope="module")
def page(chromium: Any, site: Site) -> Iterator[Any]:
    with site.visit(chromium, reduced_motion="reduce") as page:
        yield page


def faults(page: Any, within: str | None = None) -> list[str]:
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(axe.Axe().axe_script)
    found = page.evaluate("given => axe.run(given[0] ?? document, given[1])", [within, RULES])
    violations = found["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in violations for node in each["nodes"]]


def faults_in_both_themes(page: Any, within: str | None = None) -> dict[str, list[str]]:
    found = {}
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_selector(f"html.{theme}")
        found[theme] = faults(page, within)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_on(page, ids, name):
    show(page, name, PAGES[name].format(**ids))
    page.evaluate(SHORTEN)
    for size in (PHONE, LAPTOP) if ON_PHONES.match(name) else (LAPTOP,):
        page.set_viewport_size(size)
        assert faults_in_both_themes(page) == {"light": [], "dark": []}, size


def test_axe_finds_nothing_at_the_door(chromium, site):
    with site.visit(chromium, None, reduced_motion="reduce") as page:
        page.goto("/admin/")
        assert faults_in_both_themes(page) == {"light": [], "dark": []}


def test_axe_finds_nothing_in_the_help(page, ids):
    page.goto(PAGES["session"].format(**ids))
    page.keyboard.press("?")
    expect(page.locator("#keys-help")).to_be_visible()
    assert faults_in_both_themes(page, "#keys-help") == {"light": [], "dark": []}


def test_axe_finds_nothing_in_an_open_menu(page):
    page.goto("/admin/sessions_app/session/")
    for summary in (page.locator(".sidebar-foot summary"), page.locator(".filter summary").first):
        summary.click()
        assert faults_in_both_themes(page, ".menu[open]") == {"light": [], "dark": []}
        page.keyboard.press("Escape")


def test_the_reader_of_the_api_works(page):
    page.goto("/docs")
    page.wait_for_selector(".opblock")


def test_a_menu_is_opened_and_closed_by_the_keyboard(page):
    page.goto("/admin/")
    page.locator(".sidebar-foot summary").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".sidebar-foot .menu-panel")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".sidebar-foot .menu-panel")).not_to_be_visible()


@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_theme_is_chosen_and_stays(page, system):
    page.emulate_media(color_scheme=system)
    page.goto("/admin/")
    was_dark = "dark" in page.locator("html").get_attribute("class")
    assert was_dark == (system == "dark")
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
    expect(page.locator("h1")).to_have_text("会话")
    assert re.search("分钟前|小时前", page.locator("#result_list").inner_text())
    page.locator(".sidebar-foot summary").click()
    page.get_by_role("button", name="English").click()
    page.wait_for_selector("html[lang=en]")


def test_times_are_the_viewers_with_utc_behind(chromium, site, ids):
    with site.visit(chromium, timezone_id="Asia/Shanghai") as page:
        page.goto(f"/admin/sessions_app/session/{ids['session']}/change/")
        time = page.locator(".session-facts time").first
        shown, utc = time.inner_text(), time.get_attribute("title")
        assert utc.endswith(" UTC")
        hours = int(shown[11:13]) - int(utc[11:13])
        assert hours % 24 == 8


def test_an_id_is_copied(page, ids):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/admin/sessions_app/session/{ids['session']}/change/")
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#copy-status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == ids["session"]


def test_the_sidebar_opens_on_a_phone(chromium, site):
    with site.visit(chromium, viewport=PHONE) as page:
        page.goto("/admin/")
        link = page.locator(".sidebar").get_by_role("link", name="Runs", exact=True)
        expect(link).not_to_be_visible()
        page.get_by_role("button", name="Menu").click()
        link.click()
        page.wait_for_url("**/runs_app/run/")
