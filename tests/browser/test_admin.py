"""An operator's work, in a real browser and against the real server.

The browser speaks to other processes only: Playwright's event loop in this one and Django's ORM do
not go together.
"""

import json
import re
import secrets
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live_server import LiveServer, fresh_database

pytestmark = pytest.mark.browser

PASSWORD = secrets.token_urlsafe(16)
PEOPLE = f"""
from django.contrib.auth.models import Group, User
User.objects.create_superuser("admin", password="{PASSWORD}")
operator = User.objects.create_user("operator-1", password="{PASSWORD}", is_staff=True)
operator.groups.add(Group.objects.get(name="operators"))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder: Path = tmp_path_factory.mktemp("live")
    with fresh_database(folder) as url, LiveServer(database_url=url, WORKERS=1) as server:
        server.manage("shell", "--no-imports", "-c", PEOPLE)
        yield server


class Desk:
    """A page in which somebody has logged in."""

    def __init__(self, chromium: Any, server: LiveServer, **options: Any) -> None:
        context = chromium.new_context(base_url=server.url, **{"locale": "en-US", **options})
        self.page = context.new_page()
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: self.faults.append(dialog.message))

    def enter(self, name: str) -> Any:
        self.page.goto("/admin/")
        self.page.get_by_label(re.compile("Username|用户名")).fill(name)
        self.page.get_by_label(re.compile("Password|密码")).fill(PASSWORD)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("#user-tools", state="attached")
        return self.page


@pytest.fixture
def desk(chromium: Any, server: LiveServer) -> Iterator[Desk]:
    desk = Desk(chromium, server)
    yield desk
    desk.page.context.close()
    assert desk.faults == []


def create_session(server: LiveServer, **fields: Any) -> str:
    request = urllib.request.Request(
        f"{server.url}/api/v1/sessions",
        json.dumps(fields).encode(),
        {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return str(json.load(response)["session_id"])


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


def test_closing_and_resuming_a_session(desk, server):
    session_id = create_session(server, title="Refund for order 4711", user_id="u-1")
    page = desk.enter("operator-1")
    find(page, "order 4711")
    page.get_by_role("link", name="Close session").click()
    page.get_by_label("Reason").fill("The customer is content")
    page.get_by_role("button", name="Close session").click()
    assert "1 session was closed." in tell(page)
    assert page.locator(".session-lead .badge").inner_text() == "Closed"
    page.locator(".tabs").get_by_role("link", name=re.compile("Events")).click()
    page.get_by_text("The customer is content").first.wait_for()
    find(page, session_id)
    page.get_by_role("link", name="Resume session").click()
    page.get_by_label("Reason").fill("She is not")
    page.get_by_role("button", name="Resume session").click()
    assert "1 session was resumed." in tell(page)
    assert page.locator(".session-lead .badge").inner_text() == "Active"


def test_deleting_a_session_by_typing_its_id(desk, server):
    session_id = create_session(server, title="To be forgotten")
    page = desk.enter("operator-1")
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
    assert page.locator(".session-lead .badge").inner_text() == "Deleted"
    page.goto("/admin/sessions_app/session/?q=forgotten")
    assert page.locator("#result_list").count() == 0


def test_closing_many_at_once(desk, server):
    for number in range(3):
        create_session(server, title=f"Batch {number}", agent_id="batch")
    page = desk.enter("operator-1")
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
    assert page.locator("#result_list .badge-closed").count() == 3


def test_creating_a_token_that_is_shown_once(desk, server):
    page = desk.enter("admin")
    page.goto("/admin/sessions_app/accesstoken/")
    page.get_by_role("link", name="Create access token").click()
    page.get_by_label("Account").fill("agent")
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Create access token").click()
    token = page.get_by_label("Access token").input_value()
    assert token not in page.url
    assert answers_to(server, token) == 200
    page.get_by_role("link", name="I have copied it").click()
    assert "laptop" in page.locator("#result_list").inner_text()
    assert token not in page.content()
    page.get_by_role("link", name="Revoke laptop").click()
    page.get_by_role("button", name="Revoke access token").click()
    assert "was revoked" in tell(page)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        answers_to(server, token)


def test_working_in_chinese(chromium, server):
    create_session(server, title="修复无法启动的项目")
    desk = Desk(chromium, server, locale="zh-CN")
    page = desk.enter("operator-1")
    page.goto("/admin/sessions_app/session/?q=无法启动")
    assert page.locator("h1").inner_text() == "会话"
    page.locator("#result_list tbody th a").click()
    page.get_by_role("link", name="关闭会话").click()
    page.get_by_label("原因").fill("已完成")
    page.get_by_role("button", name="关闭会话").click()
    assert "已关闭 1 个会话。" in tell(page)
    page.context.close()
    assert desk.faults == []


def test_hostile_titles_run_nothing_and_break_nothing(desk, server):
    hostile = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "W" * 500,
        "\u202edesrever\u2066",
    ]
    created = [create_session(server, title=title, agent_id="hostile") for title in hostile]
    page = desk.enter("operator-1")
    page.goto("/admin/sessions_app/session/?agent=hostile")
    assert page.locator("#result_list tbody tr").count() == len(hostile)
    for session_id in created:
        page.goto(f"/admin/sessions_app/session/{session_id}/change/")
        assert not wider_than_the_window(page)


@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_the_window(chromium, server, width):
    session_id = create_session(server, title="A title of common length", agent_id="fits")
    desk = Desk(chromium, server, viewport={"width": width, "height": 800})
    page = desk.enter("admin")
    for address in (
        "/admin/",
        "/admin/sessions_app/session/",
        f"/admin/sessions_app/session/{session_id}/change/",
        f"/admin/sessions_app/session/remove/?id={session_id}",
        "/admin/sessions_app/message/",
        "/admin/runs_app/run/",
        "/admin/sessions_app/accesstoken/add/",
    ):
        page.goto(address)
        assert not wider_than_the_window(page), address
        assert not sticking_out(page), address
    page.context.close()


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
