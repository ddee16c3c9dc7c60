"""A session in which a run goes on, in a real browser: what is new comes by itself, and once."""

import pytest
from playwright.sync_api import expect

from tests.browser.agent import Agent
from tests.browser.site import Site
from tests.browser.watching import asked_in, look_away, look_back

pytestmark = pytest.mark.browser

CALLS = [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]


@pytest.fixture
def agent(site: Site) -> Agent:
    return Agent(site)


def test_new_messages_come_by_themselves_and_once(page, agent):
    page.goto(f"/admin/sessions/{agent.session}/")
    for number, text in enumerate(("The first word", "The second word"), 1):
        agent.say(text)
        page.wait_for_selector(f"#m{number}")
    assert [page.locator(f"text=The {each} word").count() for each in ("first", "second")] == [1, 1]
    expect(page.locator(".mark-day:visible, .mark-run")).to_have_count(2)
    expect(page.locator("#tabs .count").first).to_have_text("2")


def test_a_result_joins_its_call_and_nothing_moves(page, agent):
    agent.say("x\n\n" * 60)
    agent.say(None, tool_calls=CALLS)
    page.goto(f"/admin/sessions/{agent.session}/")
    summary = page.locator("#m2 summary")
    summary.click()
    before = page.evaluate("scrollY")
    agent.say("all is well", role="tool", tool_call_id="c")
    page.wait_for_selector("#m2 .badge-succeeded")
    assert page.locator("#m2 details").get_attribute("id") == "m3"
    assert "all is well" in page.locator("#m2 .call[open]").inner_text()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert page.evaluate("scrollY") == before
    all_ids = page.evaluate("[...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(all_ids) == len(set(all_ids))


def test_a_turn_that_is_being_read_changes_later(page, agent):
    agent.say("Words", tool_calls=CALLS)
    page.goto(f"/admin/sessions/{agent.session}/")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#m1 .prose'))")
    agent.say("all is well", role="tool", tool_call_id="c")
    agent.say("The answer")
    page.wait_for_selector("#m3")
    assert page.evaluate("String(getSelection())").strip() == "Words"
    expect(page.locator("#m1 .badge-succeeded")).to_have_count(0)
    page.evaluate("getSelection().removeAllRanges()")
    page.wait_for_selector("#m1 .badge-succeeded")


def test_following_ends_with_the_run_and_waits_in_the_background(page, agent):
    page.clock.install()
    page.goto(f"/admin/sessions/{agent.session}/")
    agent.say("A word")
    page.wait_for_selector("#m1")
    assert asked_in(page)
    look_away(page)
    assert asked_in(page) == []
    agent.complete()
    look_back(page)
    page.wait_for_selector(".mark-run .badge-completed")
    expect(page.get_by_text("The run has ended")).to_be_visible()
    assert asked_in(page) == []


def test_the_other_tabs_follow_too(page, agent):
    page.goto(f"/admin/sessions/{agent.session}/tools/")
    agent.say(None, tool_calls=CALLS)
    page.wait_for_selector("#session-part .badge-pending")
    agent.say("fine", role="tool", tool_call_id="c")
    page.wait_for_selector("#session-part .badge-succeeded")
    expect(page.locator("#session-part tbody tr")).to_have_count(1)
    agent.complete()
    page.wait_for_selector("#session-live [role=status]")
