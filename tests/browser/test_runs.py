"""Looking into runs, in a real browser: from the list to the run, its calls, and back; and live."""

import json
import re
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.screenshots import PASSWORD
from tests.live_server import LiveServer, fresh_database

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[LiveServer, dict[str, str]]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        fresh_database(Path(folder)) as url,
        LiveServer(database_url=url, WORKERS=1) as server,
    ):
        seed = f"from tests.browser.demo_data import seed; seed('{PASSWORD}')"
        printed = server.manage("shell", "--no-imports", "-c", seed)
        yield server, dict(line.split("=") for line in printed.splitlines())


@pytest.fixture(scope="module")
def server(site: Any) -> LiveServer:
    return site[0]


@pytest.fixture(scope="module")
def ids(site: Any) -> dict[str, str]:
    return site[1]


@pytest.fixture
def page(chromium: Any, server: LiveServer) -> Iterator[Any]:
    context = chromium.new_context(
        base_url=server.url, viewport={"width": 1440, "height": 900}, locale="en-US"
    )
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    enter(page)
    yield page
    context.close()
    assert faults == []


def enter(page: Any) -> None:
    page.goto("/admin/")
    page.locator("[name=username]").fill("admin")
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("#user-tools", state="attached")


def call_api(server: LiveServer, path: str, **body: Any) -> Any:
    request = urllib.request.Request(
        f"{server.url}/api/v1/{path}",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def begin(server: LiveServer) -> tuple[str, str]:
    """A session, and a run in it that goes on."""
    session = call_api(server, "sessions", title="Followed")["session_id"]
    run = call_api(server, f"sessions/{session}/runs", agent_id="follower", input="Go")
    return session, run["run_id"]


def say(server: LiveServer, session: str, run: str, content: Any, **more: Any) -> None:
    message = {"role": "assistant", "content": content, **more}
    call_api(server, f"sessions/{session}/messages", messages=[message], run_id=run)


def open_run(page: Any, run: str) -> None:
    page.goto(f"/admin/runs_app/run/{run}/change/")


def wider_than_the_window(page: Any) -> bool:
    root = "document.documentElement"
    return bool(page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"))


def test_finding_out_why_a_run_failed(page, server):
    page.goto("/admin/")
    page.locator(".sidebar").get_by_role("link", name="Runs", exact=True).click()
    page.locator(".tabs").get_by_role("link", name="Failed").click()
    assert page.locator("#result_list .badge:not(.badge-failed)").count() == 0
    row = page.locator("#result_list tbody tr", has_text="PermissionError")
    assert "git push was refused" in row.inner_text()
    row.locator("th a").click()
    assert "the branch main is protected" in page.locator("#run-fault").inner_text()
    page.locator("#run-timeline a.step", has_text="git_push").click()
    page.wait_for_url("**/toolcall/**")
    page.locator(".field-run_page a").click()
    assert page.locator("#run-lead .badge").inner_text() == "Failed"
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
    assert "Found the cache that never ends" in memory.locator("ins").nth(1).inner_text()
    assert "Run the tests" in memory.locator("del").last.inner_text()


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


def test_what_is_new_comes_by_itself_and_once(page, server):
    session, run = begin(server)
    open_run(page, run)
    page.get_by_role("link", name="Cancel run").focus()
    page.evaluate("scrollTo(0, 100)")
    for text in ("The first word", "The second word"):
        say(server, session, run, text)
        page.wait_for_selector(f"#run-messages >> text={text}")
    shown = page.locator("#run-messages").inner_text()
    assert (shown.count("The first word"), shown.count("The second word")) == (1, 1)
    assert page.evaluate("document.activeElement.textContent") == "Cancel run"
    assert page.evaluate("scrollY") == 100
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(ids) == len(set(ids))


def test_focus_stays_on_what_is_brought_anew(page, server):
    session, run = begin(server)
    say(server, session, run, "The first word")
    open_run(page, run)
    page.locator("#run-m1 a").focus()
    say(server, session, run, "The second word")
    page.wait_for_selector("#run-m2")
    assert page.evaluate("document.activeElement.closest('li').id") == "run-m1"


def test_what_is_selected_is_not_taken_away(page, server):
    session, run = begin(server)
    say(server, session, run, "Words to copy")
    open_run(page, run)
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#run-m1 .line'))")
    say(server, session, run, "More words")
    page.wait_for_timeout(3000)
    assert page.evaluate("String(getSelection())") == "Words to copy"
    page.evaluate("getSelection().removeAllRanges()")
    page.wait_for_selector("#run-m2")


def test_it_ends_with_the_run(page, server):
    _session, run = begin(server)
    open_run(page, run)
    assert page.locator("#run-live").is_visible()
    call_api(server, f"runs/{run}/complete", output="All is well")
    page.wait_for_selector("#run-lead .badge-completed")
    assert "All is well" in page.locator("#run-content").inner_text()
    assert page.get_by_role("link", name="Cancel run").count() == 0
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(3000)
    assert asked == []


def test_nothing_is_asked_for_while_nobody_looks(page, server):
    _session, run = begin(server)
    open_run(page, run)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    hide = "Object.defineProperty(document, 'hidden', {configurable: true, get: () => %s})"
    page.evaluate(hide % "true")
    page.wait_for_timeout(500)
    asked.clear()
    page.wait_for_timeout(3000)
    assert asked == []
    page.evaluate(hide % "false")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(500)
    assert asked


def test_an_unanswered_call_is_settled_and_the_run_cancelled(page, server):
    session, run = begin(server)
    function = {"name": "ask_the_boss", "arguments": "{}"}
    calls = [{"id": "c1", "type": "function", "function": function}]
    say(server, session, run, None, tool_calls=calls)
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
    assert page.locator("#run-lead .badge").inner_text() == "Cancelled"
    assert "Not needed any more" in page.locator("#run-fault").inner_text()
    assert page.locator("#run-timeline tbody .badge-cancelled").count() == 2


def test_hostile_words_run_nothing_and_break_nothing(page, server):
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.set_viewport_size({"width": 390, "height": 844})
    evil = "<img src=x onerror=alert(1)>\u202e" + "W" * 3000
    session = call_api(server, "sessions", title=evil[:500])["session_id"]
    run = call_api(
        server, f"sessions/{session}/runs", agent_id=evil[:255], model=evil[:255], input=evil
    )["run_id"]
    calls = [{"id": "c", "type": "function", "function": {"name": evil[:255], "arguments": evil}}]
    say(server, session, run, evil, tool_calls=calls)
    call_api(server, f"runs/{run}/fail", error={"type": evil[:100], "message": evil})
    open_run(page, run)
    assert page.locator("main img").count() == 0
    assert not wider_than_the_window(page)
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        page.goto("/admin/runs_app/run/")
        assert page.locator("main img").count() == 0
        assert not wider_than_the_window(page)
        fits = "each => each.scrollWidth <= each.clientWidth"
        assert page.locator(".table-wrap").evaluate(fits)
