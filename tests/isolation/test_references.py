"""Ids of another account in bodies, queries, cursors and keys: as if they named nothing."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from tests.api_client import APIClient
from tests.isolation.answers import Told, ask
from tests.isolation.conftest import MARKER, Accounts
from tests.isolation.references import (
    BESIDE,
    NAMES,
    Reference,
    put,
    query_parameters,
    references,
)
from tests.isolation.routes import Route, guarded_routes
from tests.isolation.samples import path_of, sample_of
from tests.isolation.things import Things, owned_by, rows_of, unknown_like

ROUTES = guarded_routes()
LISTS = [route for route in ROUTES if route.is_list]
WRITES = [route for route in ROUTES if route.writes]
READS = [route for route in ROUTES if not route.writes]

# What finds the owner's session or run in a list, by each filter there is; "" does not narrow.
FINDING = {
    "cursor": "",
    "limit": "200",
    "order": "",
    "stuck": "",
    "status": "PENDING,RUNNING,ACTIVE,CLOSED",
    "run_status": "RUNNING",
    "has_open_tool_calls": "true",
    "q": MARKER,
    "agent_id": f"agent {MARKER}",
    "user_id": f"user {MARKER}",
    "external_id": f"external {MARKER}",
    "metadata.{key}": f"project {MARKER}",
    "parent_session_id": "",
    "expires_before": "2999-01-01T00:00:00Z",
}
_ALL_SESSIONS = "ACTIVE,CLOSED"
_ALL_STATUSES = {
    "/sessions": _ALL_SESSIONS,
    "/search": _ALL_SESSIONS,
    "/runs": "PENDING,RUNNING",
}


def send(client: APIClient, reference: Reference, own: Things, value: str) -> Any:
    """The route's sample with the value put where the reference stands."""
    asked = (reference.method, reference.template)
    route = next(found for found in ROUTES if (found.method, found.template) == asked)
    # Names can be given once only: to a session that has none.
    names = route.name == "session" and {"session_id": own["unnamed_session_id"]}
    path = path_of(route, {**own, **(names or {})})
    if reference.in_query:
        query = {**sample_of(route).query, reference.name: value}
        return client.send(route.method, path, sample_of(route).body, query=query)
    return client.send(route.method, path, _body(route, reference, value))


def _body(route: Route, reference: Reference, value: str) -> Any:
    body, place = sample_of(route).body or {}, reference.place
    if route.name != "messages":
        return put(body, place, value)
    message: Any = {"role": "user", "content": "Hello"}
    inside = place[:0]
    if place[0] == "messages":
        message, inside = {"messages": [message]}, place[:2]
    if "tool_calls" in place:
        message = put(message, (*inside, "role"), "assistant")
    return put(message, place, value, BESIDE.get(reference.name))


@pytest.mark.parametrize("reference", references(), ids=str)
class TestAReference:
    def test_to_a_foreign_thing_does_what_one_to_nothing_does(
        self, agent: User, accounts: Accounts, reference: Reference
    ) -> None:
        assert reference.name in NAMES, (
            f"{reference} may name something of another account's: say what, in NAMES of "
            "tests/isolation/references.py"
        )
        source, theirs = NAMES[reference.name], accounts.theirs
        before = rows_of(agent)
        answers = []
        for value in (theirs[source], unknown_like(theirs)[source]):
            with transaction.atomic():
                answer = send(accounts.stranger, reference, accounts.own, value)
                transaction.set_rollback(True)
            told = Told.by(answer, {"it": value})
            answers.append((told.status, told.body if told.status >= 400 else None))
            assert MARKER not in told.body
            assert rows_of(agent) == before
        assert answers[0] == answers[1]
        assert answers[0][0] != 400, answers[0]


class TestAList:
    @pytest.mark.parametrize("route", READS, ids=str)
    def test_of_ones_own_holds_nothing_foreign(
        self, stranger: APIClient, theirs: Things, own: Things, route: Route
    ) -> None:
        told = ask(stranger, route, own).content.decode()
        assert owned_by(own, told) or route.method == "HEAD"
        assert MARKER not in told
        assert not [value for value in theirs.values() if len(value) > 1 and value in told]

    @pytest.mark.parametrize(
        ("template", "name"),
        [
            (path, name)
            for path in ("/sessions", "/runs", "/search")
            for name in query_parameters(path)
        ],
    )
    def test_finds_nothing_foreign_by_any_filter(
        self, accounts: Accounts, template: str, name: str
    ) -> None:
        query, theirs = _finding(template, name), accounts.theirs["session_id"]
        query |= {"q": MARKER} if template == "/search" else {}
        assert theirs in accounts.owner.get(template, query).content.decode()
        told = accounts.stranger.get(template, query).content.decode()
        assert MARKER not in told
        assert theirs not in told


def _finding(template: str, name: str) -> dict[str, str]:
    if name.endswith("_after"):
        return {name: "2000-01-01T00:00:00Z"}
    if name.endswith("_before"):
        return {name: "2999-01-01T00:00:00Z"}
    assert name in FINDING, f"GET {template} has a new filter {name}: say in FINDING what it finds"
    value = _ALL_STATUSES[template] if name == "status" else FINDING[name]
    return {name.replace("{key}", "project"): value} if value else {}


class TestACursor:
    @pytest.mark.parametrize("route", LISTS, ids=str)
    def test_of_another_account_shows_ones_own_or_nothing(
        self, accounts: Accounts, route: Route
    ) -> None:
        theirs = accounts.theirs
        asked = {**sample_of(route).query, "limit": 1}
        page = accounts.owner.get(path_of(route, theirs), asked).json()
        cursor = page.get("next_cursor")
        if cursor is None:  # a list by sequences has none; a list of one row has no next page
            return
        query = {**asked, "cursor": cursor}
        answer = accounts.stranger.get(path_of(route, accounts.own), query)
        assert answer.status_code in (200, 400)
        if answer.status_code == 400:
            assert answer.json()["code"] == "invalid_cursor"
        assert MARKER not in answer.content.decode()
        assert theirs["session_id"] not in answer.content.decode()

    def test_of_another_account_goes_on_in_ones_own_list(
        self, api: APIClient, stranger: APIClient, theirs: Things, own: Things
    ) -> None:
        cursor = api.get("/sessions", {"limit": 1, "order": "created_at"}).json()["next_cursor"]
        query = {"limit": 200, "order": "created_at", "cursor": cursor}
        shown = stranger.get("/sessions", query).json()["data"]
        assert own["session_id"] in [session["session_id"] for session in shown]
        assert MARKER not in str(shown)


class TestAnIdempotencyKey:
    @pytest.mark.parametrize("route", WRITES, ids=str)
    def test_of_another_account_is_a_key_like_any_other(
        self, api: APIClient, stranger: APIClient, theirs: Things, route: Route
    ) -> None:
        done = ask(api, route, theirs, Idempotency_Key="k")
        assert done.status_code < 300
        answer = ask(stranger, route, theirs, Idempotency_Key="k")
        assert "Idempotency-Replayed" not in answer.headers
        assert MARKER not in answer.content.decode()
        if route.names_something:
            assert answer.status_code == 404
        else:
            assert answer.status_code == done.status_code
            assert _made(answer) != _made(done)

    def test_of_another_account_does_not_tell_what_it_was_used_for(
        self, api: APIClient, stranger: APIClient
    ) -> None:
        api.post("/sessions", {"title": MARKER}, Idempotency_Key="k")
        answer = stranger.post("/sessions", {"title": "mine"}, Idempotency_Key="k")
        assert answer.status_code == 201
        assert api.post("/sessions", {"title": "mine"}, Idempotency_Key="k").status_code == 422


def _made(answer: Any) -> str:
    body = answer.json()
    return str(body.get("session_id") or body["id"])
