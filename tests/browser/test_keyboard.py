"""Keys, in a real browser: on lists, on a session's page and on a run's, and never while typing."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.test_session_page import top_of

pytestmark = pytest.mark.browser


@pytest.fixture
def talk(page: Any, ids: dict[str, str]) -> Any:
    page.goto(f"/admin/sessions/{ids['talk']}/")
    return page


def focused(page: Any, path: str) -> Any:
    return page.evaluate(f"document.activeElement.{path}")


def test_walk_through_the_messages(talk):
    for key, turn in (("j", "m1"), ("j", "m2"), ("j", "m3"), ("k", "m2")):
        talk.keyboard.press(key)
        assert focused(talk, "id") == turn
    assert 0 <= top_of(talk, "#m2") < 200


def test_open_and_close_the_tool_calls(talk):
    closed = talk.locator("details.call:not([open])")
    assert closed.count() > 0
    talk.keyboard.press("t")
    expect(closed).to_have_count(0)
    talk.keyboard.press("t")
    expect(talk.locator("details.call[open]")).to_have_count(0)


@pytest.mark.parametrize(
    ("address", "selector"),
    [
        ("/admin/runs_app/run/", "#result_list tbody tr"),
        ("/admin/sessions_app/session/", "#result_list tbody tr"),
        ("/admin/sessions/{talk}/tools/", "#session-part tbody tr"),
        ("/admin/sessions/{talk}/search/?q=export", ".excerpts li"),
    ],
)
def test_walk_through_rows_and_open_one(page, ids, address, selector):
    page.goto(address.format(**ids))
    for key in ("j", "j", "k", "j"):
        page.keyboard.press(key)
    rows = page.locator(selector)
    assert rows.nth(1).evaluate("row => row.contains(document.activeElement)")
    before, found = page.url, focused(page, "href").replace("_5F", "_").split("/")[-3:-1]
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != before)
    assert any(name in page.url for name in found)


def test_lead_to_the_steps_of_a_run(page, ids):
    page.goto(f"/admin/runs_app/run/{ids['failed_run']}/change/")
    page.keyboard.press("t")
    assert "waterfall-wrap" in focused(page, "className")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert "step" in focused(page, "className")


@pytest.mark.parametrize("address", ["/admin/runs_app/run/", "/admin/sessions/{talk}/"])
def test_are_text_in_a_field(page, ids, address):
    page.goto(address.format(**ids))
    page.keyboard.press("/")
    assert focused(page, "type") == "search"
    page.keyboard.type("jkt?/")
    assert focused(page, "value") == "jkt?/"
    expect(page.locator("#keys-help")).not_to_be_visible()


def test_leave_the_browsers_own_alone(talk):
    talk.keyboard.press("Control+j")
    talk.keyboard.press("Alt+t")
    assert focused(talk, "tagName") == "BODY"


def test_are_explained_and_can_be_turned_off(talk):
    talk.keyboard.press("?")
    assert "Next message or row" in talk.locator("#keys-help").inner_text()
    talk.keyboard.press("j")
    talk.get_by_label("Use keyboard shortcuts").uncheck()
    talk.keyboard.press("Escape")
    talk.reload()
    talk.keyboard.press("j")
    talk.keyboard.press("?")
    assert focused(talk, "tagName") == "BODY"
    expect(talk.locator("#keys-help")).not_to_be_visible()
    talk.locator(".sidebar-foot summary").click()
    talk.get_by_role("button", name="Keyboard shortcuts").click()
    talk.get_by_label("Use keyboard shortcuts").check()
    talk.get_by_role("button", name="Close").click()
    talk.keyboard.press("?")
    expect(talk.locator("#keys-help")).to_be_visible()
