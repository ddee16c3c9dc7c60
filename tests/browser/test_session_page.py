"""Reading a session, in a real browser: the transcript and the tabs beside it."""

import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live_server import LiveServer, fresh_database

pytestmark = pytest.mark.browser

PASSWORD = secrets.token_urlsafe(16)
SEED = f"""
from django.contrib.auth.models import Group, User
from sessions_app.services import Actor, NewSession, SessionManager
from tests.browser.demo_transcript import converse
reader = User.objects.create_user("reader", password="{PASSWORD}", is_staff=True)
reader.groups.add(Group.objects.get(name="support"))
actor = Actor.account(User.objects.get(username="agent"))
print("talk=" + converse(actor))
manager = SessionManager(actor)
long, _events = manager.create(NewSession(title="Long"))
said = [dict(role=("user", "assistant")[n % 2], content=f"Message {{n + 1}}") for n in range(120)]
manager.append(session_id=long.pk, messages=said)
print("long=" + long.pk)
bad = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))",
       "W" * 3000, "\\u202edesrever\\u2066", "| a | b |\\n|---|---|\\n| " + "x" * 500 + " | y |"]
hostile, _events = manager.create(NewSession(title=bad[0], metadata={{"x": bad[1]}}))
manager.append(session_id=hostile.pk, messages=[dict(role="user", content=each) for each in bad])
print("hostile=" + hostile.pk)
"""


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[LiveServer, dict[str, str]]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        fresh_database(Path(folder)) as url,
        LiveServer(database_url=url, WORKERS=1) as server,
    ):
        printed = server.manage("shell", "--no-imports", "-c", SEED)
        yield server, dict(line.split("=") for line in printed.splitlines())


@pytest.fixture(scope="module")
def page(chromium: Any, site: Any) -> Iterator[Any]:
    context = chromium.new_context(base_url=site[0].url, locale="en-US")
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.goto("/admin/")
    page.get_by_label("Username").fill("reader")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("#user-tools", state="attached")
    yield page
    context.close()
    assert faults == []


@pytest.fixture
def ids(site: Any) -> Any:
    return site[1]


def numbers(page: Any) -> list[int]:
    return [
        int(each[1:]) for each in page.locator(".turn").evaluate_all("all => all.map(e => e.id)")
    ]


def top_of(page: Any, selector: str) -> float:
    return float(page.locator(selector).evaluate("each => each.getBoundingClientRect().top"))


def test_earlier_messages_come_on_demand(page, ids):
    page.goto(f"/admin/sessions/{ids['long']}/")
    assert numbers(page) == list(range(91, 121))
    page.get_by_role("link", name="Earlier messages").click()
    page.wait_for_selector("#m61")
    assert numbers(page) == list(range(61, 121))
    for first in ("#m31", "#m1"):
        page.get_by_role("link", name="Earlier messages").click()
        page.wait_for_selector(first)
    assert numbers(page) == list(range(1, 121))
    assert page.get_by_role("link", name="Earlier messages").count() == 0


def test_a_link_leads_to_its_message(page, ids):
    page.goto(f"/admin/sessions/{ids['long']}/?at=12#m12")
    assert 0 <= top_of(page, "#m12") < 200
    page.get_by_role("link", name="Later messages").click()
    page.wait_for_selector("#m50")
    assert numbers(page) == sorted(set(numbers(page)))


def test_a_link_without_its_page_finds_it(page, ids):
    page.goto("/admin/")
    page.goto(f"/admin/sessions/{ids['long']}/#m5")
    page.wait_for_selector("#m5")
    assert "at=5" in page.url


def test_user_turns_are_jumped_between(page, ids):
    page.goto(f"/admin/sessions/{ids['long']}/")
    button = page.get_by_role("button", name="Next user turn")
    button.click()
    first = page.evaluate("scrollY")
    button.click()
    assert page.evaluate("scrollY") > first
    page.get_by_role("button", name="Previous user turn").click()
    assert page.evaluate("scrollY") == first


def test_roles_are_filtered(page, ids):
    page.goto(f"/admin/sessions/{ids['long']}/")
    page.locator(".role-filter").get_by_text("User").click()
    assert set(page.locator(".turn-role").all_inner_texts()) == {"User"}
    page.get_by_role("link", name="Earlier messages").click()
    page.wait_for_selector("#m1")
    assert len(numbers(page)) == 60


def test_failed_calls_are_open_and_all_can_be(page, ids):
    page.goto(f"/admin/sessions/{ids['talk']}/")
    assert page.locator(".call[open]").count() == 1
    assert "permission denied" in page.locator(".call[open]").inner_text()
    page.get_by_role("button", name="Expand all").click()
    assert page.locator(".transcript details:not([open])").count() == 0
    page.get_by_role("button", name="Collapse all").click()
    assert page.locator(".transcript details[open]").count() == 0


def test_a_long_text_is_shown_whole_when_asked(page, ids):
    page.goto(f"/admin/sessions/{ids['talk']}/")
    text = page.locator(".folded", has_text="line of a log")
    before = len(text.inner_text())
    text.get_by_role("link", name="Show all").click()
    page.wait_for_selector(".folded [data-once]", state="detached")
    assert len(text.inner_text()) > 2 * before


def test_the_tabs_lead_back_to_the_messages(page, ids):
    page.goto(f"/admin/sessions/{ids['talk']}/")
    page.locator(".tabs").get_by_text("Tools").click()
    page.get_by_role("link", name="#3").first.click()
    assert 0 <= top_of(page, "#m3") < 200
    page.locator(".tabs").get_by_text("Working memory").click()
    assert page.locator(".is-added").count() > 0
    page.get_by_role("link", name="after message #6").click()
    assert "at=6" in page.url


@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_content_runs_nothing_and_fits(page, ids, width):
    page.set_viewport_size({"width": width, "height": 800})
    for name in ("hostile", "talk"):
        for tab in ("", "memory/", "runs/", "tools/", "events/", "raw/"):
            page.goto(f"/admin/sessions/{ids[name]}/{tab}")
            fits = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert fits, (name, tab)
    page.set_viewport_size({"width": 1280, "height": 720})
