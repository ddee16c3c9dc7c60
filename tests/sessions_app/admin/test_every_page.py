"""What holds at every address of the console, however new it is: who may open it and send
something there, that looking changes nothing, and what a browser may run."""

from dataclasses import replace
from urllib.parse import parse_qs

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from runs_app.models import Run
from runs_app.services import RunManager
from sessions_app.folding import fold
from sessions_app.models import BulkMove, BulkTarget, ContentRead, ReadChain, Session, ToolCall
from sessions_app.services import Actor, SessionManager
from sessions_app.services.forking import NewFork
from sessions_app.services.recording import Outcome
from sessions_app.services.tokens import issue_token
from sessions_app.states import ToolCallStatus
from tests.admin import Page, make_whole
from tests.admin_pages import (
    OPEN_TO,
    OUTSIDE,
    STAFF,
    TAKES_FROM,
    allowed,
    every_address,
    make_managers,
)
from tests.domain import calling, dump
from tests.factories import add_messages, make_run, make_session, make_tool_call
from tests.session_list import LIST

# Django's own pages in the skin, whose scripts evaluate their attributes.
SKINNED = ("auth_", "password_change", "app_list", "_history")


SAID = "open sesame"

# A file is read in batches, and says all.
GROW = {"session_raw_file"}


@pytest.fixture
def addresses(agent):
    make_managers()
    return every_address(make_whole(agent), agent)


def is_closed(response):
    return response.status_code in {403, 404}


class TestWhoMay:
    @pytest.mark.parametrize("role", sorted(STAFF))
    def test_open_it(self, entered, addresses, role):
        client = entered(role)
        wrong = []
        for name, address in addresses.items():
            response = client.get(address)
            opened = not is_closed(response)
            if opened != (role in allowed(OPEN_TO, name)) or response.status_code >= 500:
                wrong.append((name, response.status_code))
        assert wrong == []

    @pytest.mark.parametrize("role", OUTSIDE)
    def test_not_even_come_in(self, entered, addresses, role):
        client = entered(role)
        for address in addresses.values():
            for response in (client.get(address), client.post(address)):
                assert response.status_code == 302, address
                assert response["Location"].startswith("/admin/login/?next=/admin/"), address

    @pytest.mark.parametrize("role", sorted(STAFF))
    def test_send_something_there(self, entered, addresses, role):
        client = entered(role)
        before = dump()
        wrong = []
        for name, address in addresses.items():
            roles = allowed(TAKES_FROM, name)
            if roles is None or (role in roles and _decides(name)):
                continue
            # A page of Django's that deletes wants to hear it twice.
            data = {} if name.startswith("auth_") else {"post": "yes", "title": "x"}
            response = client.post(address, data)
            taken = response.status_code not in {403, 404, 405}
            if taken != (role in roles) or response.status_code >= 500:
                wrong.append((name, response.status_code))
        assert wrong == []
        assert dump() == before


def _decides(name):
    """Goes without a word more: tests of its own say what it does."""
    return name in {"bulk_move", "sessions_app_accesstoken_revoke"}


def test_nothing_is_sent_from_elsewhere(entered, addresses):
    client = Client(enforce_csrf_checks=True)
    client.cookies = entered("superuser").cookies
    for address in addresses.values():
        assert client.post(address).status_code == 403, address


def test_looking_changes_nothing(entered, addresses):
    client = entered("superuser")
    before = _dump_but_reads()
    for address in addresses.values():
        client.get(address)
        client.get(address, headers={"HX-Request": "true"})
        client.get(f"{address}{'&' if '?' in address else '?'}reason=r&typed=1&stop=1")
    assert _dump_but_reads() == before
    assert Session.objects.get().status == "ACTIVE"


def test_whoever_reads_what_was_said_is_written_down(agent):
    addresses = every_address(_telling(agent), agent)
    seen = set()
    for number, (name, address) in enumerate(addresses.items()):
        client = Client()
        client.force_login(User.objects.create_superuser(f"reader-{number}"))
        if SAID in b"".join(client.get(address)).decode():
            seen.add(name)
            assert ContentRead.objects.filter(reader=f"reader-{number}").exists(), name
    assert {"session", "session_memory", "session_raw_file", "session_news", "run"} <= seen
    assert {f"sessions_app_{name}_change" for name in ("message", "toolcall")} <= seen


# Where a title stands.
TITLED = {
    *("index", "session", "run", "sessions_app_session_changelist", "runs_app_run_changelist"),
    *("sessions_app_session_export", "sessions_app_session_expire", "sessions_app_session_close"),
}


class TestATitleThatTheUserSaid:
    @pytest.fixture
    def whole(self, agent):
        """A session that is called by what was said, as its fork is; its run has failed."""
        make_managers()
        whole = _telling(agent)
        Session.objects.update(title=SAID, title_is_said=True, search_text=fold(SAID))
        RunManager(Actor.account(agent)).fail(run_id=whole.run.pk, error={"type": "x"})
        SessionManager(Actor.account(agent)).fork(session_id=whole.session.pk, new=NewFork())
        return whole

    def test_names_it_for_who_may_read(self, entered, agent, whole):
        assert _showing(SAID, entered("operators"), every_address(whole, agent)) >= TITLED

    def test_is_on_no_page_of_who_manages_without_reading(self, entered, agent, whole):
        """Nor is anything else that was said."""
        client = entered("managers")
        addresses = every_address(whole, agent)
        fork = whole.session.children.get()
        addresses["fork"] = reverse("admin:session", args=[fork.pk])
        assert fork.title == SAID
        assert _showing(SAID, client, addresses) == set()

    def test_finds_nothing_for_them(self, entered, whole):
        Session.objects.filter(pk=whole.session.pk).update(external_id="T-5")
        found = {SAID: (0, 2), "T-5": (1, 1), "sesame": (0, 2)}
        for words, counts in found.items():
            for role, count in zip(("managers", "operators"), counts, strict=True):
                response = entered(role).get(LIST, {"q": words})
                assert len(response.context["cl"].result_list) == count, (words, role)

    def test_leaves_a_title_that_was_given(self, entered, agent, whole):
        Session.objects.update(title="Refund", title_is_said=False)
        assert _showing("Refund", entered("managers"), every_address(whole, agent)) >= TITLED


def _showing(text, client, addresses):
    """The names of the addresses whose answers have it."""
    answers = {name: b"".join(client.get(address)).decode() for name, address in addresses.items()}
    return {name for name, answer in answers.items() if text in answer}


def _telling(agent):
    """A session in which something is said that stands in no title and in no name."""
    whole = make_whole(agent)
    session, run = whole.session, whole.run
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": SAID}}
    message, _ = add_messages(
        {"role": "user", "content": SAID},
        {"role": "assistant", "content": SAID, "tool_calls": [call]},
        session=session,
        run_id=run.pk,
    )
    manager = SessionManager(Actor.account(agent))
    manager.patch_memory(session_id=session.pk, patch={"goal": SAID})
    return replace(
        whole,
        message=message,
        call=ToolCall.objects.get(tool_call_id="c"),
        revision=session.memory_revisions.latest("version"),
    )


def _dump_but_reads():
    reads = {ContentRead._meta.label, ReadChain._meta.label}
    return {label: rows for label, rows in dump().items() if label not in reads}


def test_a_browser_runs_nothing_that_is_not_ours(entered, addresses):
    client = entered("superuser")
    for name, address in addresses.items():
        response = client.get(address)
        policy = response["Content-Security-Policy"]
        parts = dict(part.split(" ", 1) for part in policy.split("; ") if " " in part)
        assert parts["default-src"] == "'none'", name
        assert "http" not in policy, name
        assert "unsafe-inline" not in parts.get("script-src", ""), name
        is_page = response.get("Content-Type", "").startswith("text/html")
        if is_page and response.status_code == 200:
            is_skinned = any(each in name for each in SKINNED)
            assert ("unsafe" in policy) <= is_skinned, name
            assert "script-src 'self'" in policy, name


EVIL = (
    "<script>evil()</script>\"'><img src=x onerror=evil()>[e](javascript:evil())=1\u202e\u2066\x1b"
)


def test_what_an_agent_wrote_is_text(entered, agent):
    """In every field that it can write, on every page, in whole answers and in parts."""
    whole = make_whole(agent, text=EVIL, external_id=EVIL)
    addresses = every_address(whole, agent)
    manager = SessionManager(Actor.account(agent))
    call = make_tool_call(session=whole.session, name=EVIL, run_id=whole.run.pk)
    error = {"type": EVIL, "message": EVIL}
    outcome = Outcome(status=ToolCallStatus.FAILED, error=error, result=EVIL, has_result=True)
    manager.finish_tool_call(id=call.pk, outcome=outcome)
    add_messages(
        {"role": "assistant", "content": EVIL, "model": EVIL, "name": EVIL, "reasoning": EVIL},
        {"item": {"type": EVIL[-40:], "x": EVIL}},
        {"role": "user", "content": [{"type": EVIL, "x": EVIL}, {"type": "text", "text": EVIL}]},
        session=whole.session,
        run_id=whole.run.pk,
    )
    RunManager(Actor.account(agent)).wait(run_id=whole.run.pk, reason=EVIL)
    child = make_run(session=whole.session, parent_run_id=whole.run.pk, agent_id=EVIL, model=EVIL)
    RunManager(Actor.account(agent)).fail(run_id=child.pk, error=error)
    client = entered("superuser")
    child_page = addresses["run"].replace(whole.run.pk, child.pk)
    for address in (*addresses.values(), child_page):
        for headers in ({}, {"HX-Request": "true"}):
            response = client.get(address, headers=headers)
            if response.get("Content-Type", "").startswith("text/html"):
                check_text(Page(response.content.decode()), address)


def check_text(page, address):
    assert page.scripts.strip() == "" or "evil" not in page.scripts, address
    # What is copied is copied as it is.
    seen = page.text + "".join(
        value for _tag, given in page.tags for name, value in given.items() if name != "data-copy"
    )
    assert not set(seen) & set("\u202e\u2066\x1b"), address
    for tag, given in page.tags:
        assert not [name for name in given if name.startswith("on") or "evil" in name], address
        assert tag != "img" or given["src"].startswith("/static/"), address
        for name in ("href", "src", "action"):
            assert not given.get(name, "").lower().startswith(("javascript:", "data:")), address


class TestItsCost:
    def test_is_the_same_for_5_rows_and_100(self, entered, agent):
        whole = make_whole(agent)
        addresses = every_address(whole, agent)
        client = entered("superuser")
        fill(agent, whole, 5)
        cost(client, addresses)  # what is asked once per process
        few = cost(client, addresses)
        fill(agent, whole, 95)
        assert cost(client, addresses) == few
        assert max(few.values()) < 30


def cost(client, addresses):
    """By name, how many statements; an operation is asked for as many as there are."""
    ids = {
        "session": list(Session.objects.order_by("-pk").values_list("pk", flat=True)[:100]),
        "toolcall": list(ToolCall.objects.values_list("pk", flat=True)[:100]),
        "run": list(Run.objects.values_list("pk", flat=True)[:100]),
    }
    found = {}
    for name, address in addresses.items():
        path, _, query = address.partition("?")
        many = {"id": ids[name.split("_")[-2]]} if query.startswith("id=") else parse_qs(query)
        with CaptureQueriesContext(connection) as captured:
            response = client.get(path, many)
            if response.streaming:
                b"".join(response)
        if name not in GROW:
            found[name] = len(captured)
    return found


def fill(agent, whole, count):
    """So many rows more of each kind, in lists and in the one session; all in few statements."""
    manager = SessionManager(Actor.account(agent))
    one = whole.session
    more = {"session": one, "run_id": whole.run.pk}
    names = [f"{count}-{number}" for number in range(count)]
    add_messages(*({"role": "user", "content": name} for name in names), **more)
    add_messages(calling(*names), **more)
    for name in names:
        manager.patch_memory(session_id=one.pk, patch={"goal": name}, run_id=whole.run.pk)
        make_run(session=one, parent_run_id=whole.run.pk)
        session = make_session(account=agent, title=name, parent_session_id=one.pk)
        make_run(session=session)
        issue_token(account=agent, name=name)
    User.objects.bulk_create(User(username=name) for name in names)
    Group.objects.bulk_create(Group(name=name) for name in names)
    move = BulkMove.objects.get(total__gt=0)
    others = Session.objects.exclude(pk__in=move.targets.values("session_id"))
    BulkTarget.objects.bulk_create(BulkTarget(bulk=move, session_id=each.pk) for each in others)
    now = timezone.now()
    ContentRead.objects.bulk_create(
        ContentRead(
            session=one, sequence=number, reader=name, page="transcript", read_at=now, digest=""
        )
        for number, name in enumerate(names, start=count * 10)
    )
