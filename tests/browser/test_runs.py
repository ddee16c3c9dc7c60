"""Looking into runs, in a real browser: from the list to the run, its calls, and back; and live."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.agent import begin, say
from tests.browser.watching import asked_in, look_away, look_back

pytestmark = pytest.mark.browser


def open_run(page: Any, run: str) -> None:
    page.goto(f"/admin/runs_app/run/{run}/change/")


def wider_than_the_window(page: Any) -> bool:
    root = "document.documentElement"
    return bool(page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"))


def test_finding_out_why_a_run_failed(page, site):
    page.goto("/admin/")
    page.locator(".sidebar").get_by_role("link", name="Runs", exact=True).click()
    page.locator(".tabs").get_by_role("link", name="Failed").click()
    expect(page.locator("#result_list .badge:not(.badge-failed)")).to_have_count(0)
    row = page.locator("#result_list tbody tr", has_text="PermissionError")
    assert "git push was refused" in row.inner_text()
    row.locator("th a").click()
    assert "the branch main is protected" in page.locator("#run-fault").inner_text()
    page.locator("#run-timeline a.step", has_text="git_push").click()
    page.wait_for_url("**/toolcall/**")
    page.locator(".field-run_page a").click()
    expect(page.locator("#run-lead .badge")).to_have_text("Failed")
    page.get_by_role("link", name="Open session").click()
    page.wait_for_url("**/sessions/**")


def test_a_bar_leads_to_its_call(page, ids):
    open_run(page, ids["failed_run"])
    page.locator("#run-timeline rect.bar-failed[rx]").click()
    page.wait_for_url("**/toolcall/**")


def test_a_message_leads_to_its_place_in_the_session(page, ids):
    open_run(page, ids["failed_run"])
    page.locator("#run-m4 a").click()
    page.wait_for_url(re.compile(r"/sessions/.*#m4$"))


def test_what_the_run_changed_in_the_memory_is_marked(page, ids):
    open_run(page, ids["failed_run"])
    memory = page.locator("#run-memory")
    expect(memory.locator("ins", has_text="Found the cache that never ends")).to_be_visible()
    expect(memory.locator("del", has_text="Run the tests")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_scrolls_sideways(page, ids, width):
    page.set_viewport_size({"width": width, "height": 900})
    for address in (
        "/admin/runs_app/run/",
        f"/admin/runs_app/run/{ids['failed_run']}/change/",
    ):
        page.goto(address)
        assert not wider_than_the_window(page), address
        for box in page.locator(".table-wrap, .waterfall-wrap").all():
            assert box.evaluate("each => each.scrollWidth <= each.clientWidth"), address


def test_what_is_new_comes_by_itself_and_once(page, site):
    session, run = begin(site)
    open_run(page, run)
    page.get_by_role("link", name="Cancel run").focus()
    page.evaluate("scrollTo(0, 100)")
    for text in ("The first word", "The second word"):
        say(site, session, run, text)
        page.wait_for_selector(f"#run-messages >> text={text}")
    shown = page.locator("#run-messages").inner_text()
    assert (shown.count("The first word"), shown.count("The second word")) == (1, 1)
    assert page.evaluate("document.activeElement.textContent") == "Cancel run"
    assert page.evaluate("scrollY") == 100
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(ids) == len(set(ids))


def test_focus_stays_on_what_is_brought_anew(page, site):
    session, run = begin(site)
    say(site, session, run, "The first word")
    open_run(page, run)
    page.locator("#run-m1 a").focus()
    say(site, session, run, "The second word")
    page.wait_for_selector("#run-m2")
    assert page.evaluate("document.activeElement.closest('li').id") == "run-m1"


def test_what_is_selected_is_not_taken_away(page, site):
    session, run = begin(site)
    say(site, session, run, "Words to copy")
    page.clock.install()
    open_run(page, run)
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#run-m1 .line'))")
    say(site, session, run, "More words")
    assert asked_in(page)
    assert page.evaluate("String(getSelection())") == "Words to copy"
    page.evaluate("getSelection().removeAllRanges()")
    page.wait_for_selector("#run-m2")


def test_it_ends_with_the_run(page, site):
    _session, run = begin(site)
    page.clock.install()
    open_run(page, run)
    expect(page.locator("#run-live")).to_be_visible()
    site.call(f"runs/{run}/complete", output="All is well")
    page.wait_for_selector("#run-lead .badge-completed")
    assert "All is well" in page.locator("#run-content").inner_text()
    expect(page.get_by_role("link", name="Cancel run")).to_have_count(0)
    assert asked_in(page) == []


def test_nothing_is_asked_for_while_nobody_looks(page, site):
    _session, run = begin(site)
    page.clock.install()
    open_run(page, run)
    assert asked_in(page)
    look_away(page)
    assert asked_in(page) == []
    with page.expect_request("**/change/*"):
        look_back(page)


def test_an_unanswered_call_is_settled_and_the_run_cancelled(page, site):
    session, run = begin(site)
    function = {"name": "ask_the_boss", "arguments": "{}"}
    calls = [{"id": "c1", "type": "function", "function": function}]
    say(site, session, run, None, tool_calls=calls)
    open_run(page, run)
    page.get_by_role("link", name="Settle ask_the_boss").click()
    page.get_by_label("Reason").fill("Nobody answers")
    page.get_by_role("button", name="Settle tool call").click()
    assert "1 tool call was settled." in page.locator(".messagelist").inner_text()
    page.locator(".field-run_page a").click()
    page.get_by_role("link", name="Cancel run").click()
    page.get_by_label("Reason").fill("Not needed any more")
    page.get_by_role("button", name="Cancel run").click()
    assert "1 run was cancelled." in page.locator(".messagelist").inner_text()
    expect(page.locator("#run-lead .badge")).to_have_text("Cancelled")
    assert "Not needed any more" in page.locator("#run-fault").inner_text()
    expect(page.locator("#run-timeline tbody .badge-cancelled")).to_have_count(2)


def test_hostile_words_run_nothing_and_break_nothing(page, site):
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.set_viewport_size({"width": 390, "height": 844})
    evil = "<img src=x onerror=alert(1)>\u202e" + "W" * 3000
    session = site.call("sessions", title=evil[:500])["session_id"]
    run = site.call(f"sessions/{session}/runs", agent_id=evil[:255], model=evil[:255], input=evil)[
        "run_id"
    ]
    calls = [{"id": "c", "type": "function", "function": {"name": evil[:255], "arguments": evil}}]
    say(site, session, run, evil, tool_calls=calls)
    site.call(f"runs/{run}/fail", error={"type": evil[:100], "message": evil})
    open_run(page, run)
    expect(page.locator("main img")).to_have_count(0)
    assert not wider_than_the_window(page)
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        page.goto("/admin/runs_app/run/")
        expect(page.locator("main img")).to_have_count(0)
        assert not wider_than_the_window(page)
        fits = "each => each.scrollWidth <= each.clientWidth"
        assert page.locator(".table-wrap").evaluate(fits)
