"""Reading a session, in a real browser: the transcript and the tabs beside it."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.site import Site

pytestmark = pytest.mark.browser

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "W" * 3000,
    "\u202edesrever\u2066",
    "| a | b |\n|---|---|\n| " + "x" * 500 + " | y |",
]


@pytest.fixture(scope="module")
def ids(site: Site) -> dict[str, str]:
    """A conversation, one that is long, and one that means harm."""
    long = [
        {"role": ("user", "assistant")[n % 2], "content": f"Message {n + 1}"} for n in range(120)
    ]
    hostile = [{"role": "user", "content": text} for text in HOSTILE]
    made = {
        "long": site.call("sessions", title="Long"),
        "hostile": site.call("sessions", title=HOSTILE[0], metadata={"x": HOSTILE[1]}),
    }
    found = {name: session["session_id"] for name, session in made.items()}
    site.call(f"sessions/{found['long']}/messages", messages=long)
    site.call(f"sessions/{found['hostile']}/messages", messages=hostile)
    return {**site.ids, **found}


@pytest.fixture(scope="module")
def page(chromium: Any, site: Site) -> Iterator[Any]:
    with site.visit(chromium, "lin") as page:
        yield page


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
    expect(page.get_by_role("link", name="Earlier messages")).to_have_count(0)


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
    expect(page.locator(".call[open]")).to_have_count(2)
    failed = page.locator(".call[open]").all_inner_texts()
    assert ["permission denied" in failed[0], "Forbidden" in failed[1]] == [True, True]
    page.get_by_role("button", name="Expand all").click()
    expect(page.locator(".transcript details:not([open])")).to_have_count(0)
    page.get_by_role("button", name="Collapse all").click()
    expect(page.locator(".transcript details[open]")).to_have_count(0)


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
        for tab in ("", "memory/", "runs/", "tools/", "events/", "raw/", "search/?q=e"):
            page.goto(f"/admin/sessions/{ids[name]}/{tab}")
            fits = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert fits, (name, tab)
    page.set_viewport_size({"width": 1280, "height": 720})


def test_words_are_found_in_the_whole_session(page, ids):
    page.goto(f"/admin/sessions/{ids['long']}/")
    page.keyboard.press("/")
    page.keyboard.type("message 12")
    page.keyboard.press("Enter")
    page.wait_for_selector(".excerpts")
    assert page.locator("mark").all_inner_texts() == ["Message 12"] * 2
    assert page.get_by_label("Search this session").input_value() == "message 12"
    page.locator(".excerpt", has_text="#12").last.click()
    page.wait_for_url("**/?at=12#m12")
    assert 0 <= top_of(page, "#m12") < 200


def test_hits_go_on_on_demand(page, ids):
    page.goto(f"/admin/sessions/{ids['long']}/search/?q=message")
    for count in (60, 90, 120):
        page.get_by_role("link", name="Look further back").click()
        page.locator(".excerpt").nth(count - 1).wait_for()
        expect(page.locator(".excerpt")).to_have_count(count)
    expect(page.get_by_role("link", name="Look further back")).to_have_count(0)


def test_a_user_turn_that_is_not_here_yet_is_fetched(page, ids):
    page.goto(f"/admin/sessions/{ids['long']}/")
    page.evaluate("document.querySelector('#m91').scrollIntoView()")
    page.get_by_role("button", name="Previous user turn").click()
    page.wait_for_selector("#m61")
    page.wait_for_timeout(200)
    assert 0 <= top_of(page, "#m89") < 200
