"""Finding sessions and acting on many of them, in a real browser and against the real server."""

import json
import re
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.site import Site
from tests.browser.trial import OPERATOR
from tests.live_server import LiveServer

pytestmark = pytest.mark.browser

LIST = "/admin/sessions_app/session/"


@pytest.fixture(scope="module")
def server(trial: Site) -> LiveServer:
    return trial.server


@pytest.fixture
def page(chromium: Any, trial: Site) -> Iterator[Any]:
    """The list, open before an operator in Shanghai; no script may fail on the way."""
    with trial.visit(chromium, OPERATOR, timezone_id="Asia/Shanghai") as page:
        page.goto(LIST)
        yield page


def titles(page: Any) -> list[str]:
    return [str(text) for text in page.locator("#result_list tbody th .cell").all_inner_texts()]


def set_filter(page: Any, name: str, value: str) -> None:
    page.locator("#changelist-filter summary", has_text=re.compile(f"^{name}")).click()
    page.get_by_label(name, exact=True).fill(value)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"{name.lower()}="))


def count(server: LiveServer, status: str, agent: str) -> int:
    """Of the API's first page, which holds a hundred."""
    request = urllib.request.Request(
        f"{server.url}/api/v1/sessions?limit=100&status={status}&agent_id={agent}",
        headers={"Authorization": f"Bearer {server.token}"},
    )
    with urllib.request.urlopen(request) as response:
        return len(json.load(response)["data"])


def test_walking_through_pages_and_back(page):
    assert titles(page)[0] == "Task 159"
    page.get_by_role("link", name="Older →").click()
    page.wait_for_url(re.compile("older="))
    assert titles(page)[0] == "Task 109"
    page.get_by_role("link", name="Older →").click()
    page.wait_for_load_state()
    assert titles(page)[0] == "Task 59"
    page.get_by_role("link", name="← Newer").click()
    page.wait_for_url(re.compile("newer="))
    assert titles(page)[0] == "Task 109"
    page.get_by_role("link", name="← Newer").click()
    page.wait_for_load_state()
    assert titles(page)[0] == "Task 159"


def test_filters_gather_in_an_address_that_can_be_passed_on(page):
    set_filter(page, "Metadata", "batch=1")
    set_filter(page, "Agent", "keeper")
    page.locator(".tabs").get_by_role("link", name="Active", exact=True).click()
    page.wait_for_url(re.compile("status=ACTIVE"))
    found = titles(page)
    assert found == [f"Task {number}" for number in (157, 153, 149, 145, 141, 137, 133)]
    address = page.url
    page.goto("/admin/")
    page.goto(address)
    assert titles(page) == found
    page.get_by_role("link", name="Clear all filters").click()
    page.wait_for_url(lambda url: "agent=" not in url)
    assert len(titles(page)) == 50


def test_a_range_of_time_is_in_the_viewers_zone(page):
    page.locator("#changelist-filter summary", has_text=re.compile("^Activity")).click()
    assert "Asia/Shanghai" in page.locator("[data-range]").inner_text()
    page.get_by_label(re.compile("^From")).fill("2026-01-02T03:04")
    page.locator("[data-range]").get_by_role("button", name="Filter").click()
    page.wait_for_url(re.compile("active_from=2026-01-01T19%3A04"))
    assert "active_to" not in page.url
    page.locator("#changelist-filter summary", has_text=re.compile("^Activity")).click()
    assert page.get_by_label(re.compile("^From")).input_value() == "2026-01-02T03:04"
    assert len(titles(page)) == 50


def test_deleting_all_that_match(page, server):
    set_filter(page, "Agent", "trial")
    everything = page.get_by_label("All that match, on every page")
    everything.check()
    page.locator("input[name=_selected_action]").first.uncheck()
    assert not everything.is_checked()
    everything.check()
    expect(page.locator("#result_list tr.selected")).to_have_count(50)
    page.locator("select[name=action]").select_option("remove")
    page.get_by_role("button", name="Go").click()
    plan = page.locator(".confirm-plan").inner_text()
    assert "120 sessions will be deleted for good." in plan
    assert "This cannot be undone" in plan
    page.get_by_label("Reason").fill("The trial is over")
    page.get_by_label("Type how many").fill("119")
    page.get_by_role("button", name="Delete sessions").click()
    assert "nothing has been changed" in page.locator(".errorlist").inner_text()
    page.get_by_label("Type how many").fill("120")
    page.get_by_role("button", name="Delete sessions").click()
    page.wait_for_url(re.compile("/sessions/bulk/"))
    # It goes on by itself while the page is open.
    page.get_by_text("120 sessions were deleted.").wait_for(timeout=60_000)
    page.get_by_role("link", name="Back to the sessions").click()
    page.wait_for_url(re.compile(LIST))
    assert titles(page)[0] == "Task 159"
    assert count(server, "ACTIVE", "trial") == 0
    assert count(server, "ACTIVE", "keeper") == 30
