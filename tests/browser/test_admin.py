"""An operator's work, in a real browser and against the real server.

The browser speaks to other processes only: Playwright's event loop in this one and Django's ORM do
not go together.
"""

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.site import Site
from tests.live_server import LiveServer

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium: Any, site: Site) -> Iterator[Any]:
    """An operator's."""
    with site.visit(chromium, "maria") as page:
        yield page


def create_session(site: Site, **fields: Any) -> str:
    return str(site.call("sessions", **fields)["session_id"])


def answers_to(server: LiveServer, token: str) -> int:
    request = urllib.request.Request(
        f"{server.url}/api/v1/sessions", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request) as response:
        return int(response.status)


def find(page: Any, words: str) -> None:
    """From home, by the list's search, to the session's page."""
    page.goto("/admin/")
    page.locator(".sidebar").get_by_role("link", name="Sessions", exact=True).click()
    page.locator("#searchbar").fill(words)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("[?&]q="))
    page.locator("#result_list tbody th a").click()
    page.wait_for_selector(".session-page")


def tell(page: Any) -> str:
    return str(page.locator(".messagelist").inner_text())


def test_closing_and_resuming_a_session(page, site):
    session_id = create_session(site, title="Refund for order 4712", user_id="u-1")
    find(page, "order 4712")
    page.get_by_role("link", name="Close session").click()
    page.get_by_label("Reason").fill("The customer is content")
    page.get_by_role("button", name="Close session").click()
    assert "1 session was closed." in tell(page)
    expect(page.locator(".session-lead .badge")).to_have_text("Closed")
    page.locator(".tabs").get_by_role("link", name=re.compile("Events")).click()
    page.get_by_text("The customer is content").first.wait_for()
    find(page, session_id)
    page.get_by_role("link", name="Resume session").click()
    page.get_by_label("Reason").fill("She is not")
    page.get_by_role("button", name="Resume session").click()
    assert "1 session was resumed." in tell(page)
    expect(page.locator(".session-lead .badge")).to_have_text("Active")


def test_deleting_a_session_by_typing_its_id(page, site):
    session_id = create_session(site, title="To be forgotten")
    find(page, "forgotten")
    page.get_by_role("link", name="Delete session").click()
    assert "This cannot be undone" in page.locator(".confirm-note").inner_text()
    page.get_by_label("Reason").fill("Asked for by the user")
    page.get_by_label("Type the id").fill("yes")
    page.get_by_role("button", name="Delete session").click()
    assert "nothing has been changed" in page.locator(".errorlist").inner_text()
    page.get_by_label("Type the id").fill(session_id)
    page.get_by_role("button", name="Delete session").click()
    assert "1 session was deleted." in tell(page)
    expect(page.locator(".session-lead .badge")).to_have_text("Deleted")
    page.goto("/admin/sessions_app/session/?q=forgotten")
    expect(page.locator("#result_list")).to_have_count(0)


def test_closing_many_at_once(page, site):
    for number in range(3):
        create_session(site, title=f"Batch {number}", agent_id="batch")
    page.goto("/admin/sessions_app/session/")
    page.locator("#changelist-filter summary", has_text="Agent").click()
    page.get_by_label("Agent", exact=True).fill("batch")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("agent=batch"))
    page.locator("#action-toggle").check()
    page.locator("select[name=action]").select_option("close")
    page.get_by_role("button", name="Go").click()
    assert "3 sessions will be closed." in page.locator(".confirm-plan").inner_text()
    page.get_by_label("Reason").fill("Done")
    page.get_by_role("button", name="Close the selected sessions").click()
    assert "3 sessions were closed." in tell(page)
    assert page.url.endswith("agent=batch")
    expect(page.locator("#result_list .badge-closed")).to_have_count(3)


def test_creating_a_token_that_is_shown_once(chromium, site):
    with site.visit(chromium) as page:
        create_token(page, site)


def create_token(page: Any, site: Site) -> None:
    page.goto("/admin/sessions_app/accesstoken/")
    page.get_by_role("link", name="Create access token").click()
    page.get_by_label("Account").fill("agent")
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Create access token").click()
    token = page.get_by_label("Access token").input_value()
    assert token not in page.url
    assert answers_to(site.server, token) == 200
    page.get_by_role("link", name="I have copied it").click()
    assert "laptop" in page.locator("#result_list").inner_text()
    assert token not in page.content()
    page.get_by_role("link", name="Revoke laptop").click()
    page.get_by_role("button", name="Revoke access token").click()
    assert "was revoked" in tell(page)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        answers_to(site.server, token)


def test_working_in_chinese(chromium, site):
    create_session(site, title="整理无法归类的文件")
    with site.visit(chromium, "maria", locale="zh-CN") as page:
        page.goto("/admin/sessions_app/session/?q=无法归类")
        expect(page.locator("h1")).to_have_text("会话")
        page.locator("#result_list tbody th a").click()
        page.get_by_role("link", name="关闭会话").click()
        page.get_by_label("原因").fill("已完成")
        page.get_by_role("button", name="关闭会话").click()
        assert "已关闭 1 个会话。" in tell(page)


def test_hostile_titles_run_nothing_and_break_nothing(page, site):
    hostile = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "W" * 500,
        "\u202edesrever\u2066",
    ]
    created = [create_session(site, title=title, agent_id="hostile") for title in hostile]
    page.goto("/admin/sessions_app/session/?agent=hostile")
    expect(page.locator("#result_list tbody tr")).to_have_count(len(hostile))
    for session_id in created:
        page.goto(f"/admin/sessions_app/session/{session_id}/change/")
        assert not wider_than_the_window(page)


@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_the_window(chromium, site, width):
    session_id = create_session(site, title="A title of common length", agent_id="fits")
    with site.visit(chromium, viewport={"width": width, "height": 800}) as page:
        for address in (
            "/admin/",
            "/admin/sessions_app/session/",
            f"/admin/sessions_app/session/{session_id}/change/",
            f"/admin/sessions_app/session/remove/?id={session_id}",
            "/admin/sessions_app/message/",
            "/admin/runs_app/run/",
            "/admin/sessions_app/accesstoken/add/",
            f"/admin/sessions/bulk/{site.ids['bulk']}/",
        ):
            page.goto(address)
            assert not crumbs_that_touch(page), address
            assert not wider_than_the_window(page), address
            assert not sticking_out(page), address


def crumbs_that_touch(page: Any) -> bool:
    return bool(
        page.evaluate(
            """() => [...document.querySelectorAll(".crumbs li > *")]
            .map(each => each.getBoundingClientRect()).filter(box => box.width)
            .some((box, at, all) => at && box.left < all[at - 1].left + all[at - 1].width)"""
        )
    )


def sticking_out(page: Any) -> list[str]:
    """Values on the page of one record that leave their row."""
    return list(
        page.evaluate(
            """() => [...document.querySelectorAll(".record-page .readonly, .record-page pre")]
            .filter(each => each.getBoundingClientRect().right
                > each.closest(".form-row").getBoundingClientRect().right)
            .map(each => each.textContent.trim().slice(0, 40))"""
        )
    )


def wider_than_the_window(page: Any) -> bool:
    root = "document.documentElement"
    return bool(page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"))
