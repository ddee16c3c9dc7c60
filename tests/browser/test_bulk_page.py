"""The page of a decision about many sessions, while the server fails it or the login is gone."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.site import Site, enter
from tests.browser.trial import OPERATOR
from tests.live_server import LiveServer

pytestmark = pytest.mark.browser

DECIDE = """
from django.contrib.auth.models import User
from sessions_app.models import Session
from sessions_app.services import Actor, bulk
ids = list(Session.objects.filter(agent_id="spring").values_list("pk", flat=True))
actor = Actor.operator(User.objects.get(username="operator-1"))
move = bulk.draft(actor=actor, to="{to}", session_ids=ids)
bulk.confirm(move, reason="Spring")
print(f"move={{move.pk}}")
"""


@pytest.fixture(scope="module")
def server(trial: Site) -> LiveServer:
    return trial.server


@pytest.fixture
def page(chromium: Any, server: LiveServer) -> Iterator[Any]:
    """Not a visit, in which nothing may fail: here it must."""
    context = chromium.new_context(base_url=server.url, locale="en-US")
    page = context.new_page()
    enter(page, OPERATOR)
    yield page
    context.close()


def decide(server: LiveServer, to: str) -> str:
    said = server.manage("shell", "--no-imports", "-c", DECIDE.format(to=to))
    found = re.search(r"move=(\w+)", said)
    assert found
    return f"/admin/sessions/bulk/{found[1]}/"


def test_goes_on_after_answers_that_failed(page, server):
    failures = iter([lambda route: route.abort(), lambda route: route.fulfill(status=503)])

    def fail(route: Any) -> None:
        is_step = route.request.method == "POST"
        answer = next(failures, None) if is_step else None
        route.continue_() if answer is None else answer(route)

    address = decide(server, "CLOSED")
    page.route("**/sessions/bulk/**", fail)
    page.goto(address)
    region = page.locator("#bulk").element_handle()
    page.get_by_text("The server does not answer").wait_for()
    page.get_by_text("30 sessions were closed.").wait_for()
    page.get_by_role("link", name="Back to the sessions").wait_for()
    assert page.get_by_text("The server does not answer").is_hidden()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    # What reads changes aloud is still the same element.
    assert region.evaluate("each => each.isConnected")


def test_leads_to_the_login_when_that_is_gone(page, server):
    address = decide(server, "EXPIRED")

    lost: list[Any] = []

    def fail_once(route: Any) -> None:
        if route.request.method == "POST" and not lost:
            lost.append(route)
            route.abort()
        else:
            route.continue_()

    page.route("**/sessions/bulk/**", fail_once)
    page.goto(address)
    page.get_by_text("The server does not answer").wait_for()
    page.context.clear_cookies(name="sessionid")
    page.wait_for_url(re.compile("/login/"))
    expect(page.get_by_label("Username")).to_be_visible()
    expect(page.locator("#bulk")).to_have_count(0)
