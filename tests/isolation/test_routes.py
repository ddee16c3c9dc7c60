"""Whose token opens which route: every one that the router knows (report SEC-01)."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app.models import ContentRead
from tests.api_client import APIClient
from tests.factories import make_account, make_token
from tests.isolation.answers import Told, ask, way_of
from tests.isolation.conftest import MARKER
from tests.isolation.routes import Route, guarded_routes, public_paths
from tests.isolation.samples import SAMPLES, sample_of
from tests.isolation.things import Things, all_rows, owned_by, unknown_like

ROUTES = guarded_routes()
NAMING = [route for route in ROUTES if route.names_something]
WRITES = [route for route in ROUTES if route.writes]

each_route = pytest.mark.parametrize("route", ROUTES, ids=str)
each_naming_route = pytest.mark.parametrize("route", NAMING, ids=str)


class TestEveryRoute:
    @each_route
    def test_has_a_sample_request(self, route: Route) -> None:
        sample_of(route)

    def test_is_one_that_the_router_still_knows(self) -> None:
        known = {(route.name, route.method) for route in ROUTES}
        assert not set(SAMPLES) - known, "remove these samples: their routes are gone"

    @each_route
    def test_answers_its_owner(self, api: APIClient, theirs: Things, route: Route) -> None:
        answer = ask(api, route, theirs)
        assert 200 <= answer.status_code < 300, answer.content

    @each_route
    def test_answers_401_without_a_token(self, theirs: Things, route: Route) -> None:
        before = all_rows()
        answer = ask(APIClient(None), route, theirs)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert all_rows() == before

    @each_route
    def test_answers_401_for_a_token_that_is_none(self, theirs: Things, route: Route) -> None:
        assert ask(APIClient("0" * 64), route, theirs).status_code == 401

    @each_route
    def test_answers_403_to_an_account_that_may_not_use_the_api(
        self, theirs: Things, route: Route
    ) -> None:
        clerk = make_account("clerk", permissions=["view_all_sessions"])
        token = make_token(account=clerk)
        clerk.groups.clear()
        before = all_rows()
        assert ask(APIClient(token), route, theirs).status_code == 403
        assert all_rows() == before


class TestAForeignId:
    @each_naming_route
    def test_answers_exactly_like_an_unknown_one(
        self, stranger: APIClient, theirs_in_every_state: dict[str, Things], route: Route
    ) -> None:
        before = all_rows()
        for state, theirs in theirs_in_every_state.items():
            unknown = unknown_like(theirs)
            foreign_answer = Told.by(ask(stranger, route, theirs), theirs)
            unknown_answer = Told.by(ask(stranger, route, unknown), unknown)
            assert foreign_answer == unknown_answer, state
            assert foreign_answer.status == 404, state
        assert all_rows() == before

    @each_naming_route
    def test_is_looked_for_in_the_same_way_as_an_unknown_one(
        self, stranger: APIClient, theirs_in_every_state: dict[str, Things], route: Route
    ) -> None:
        """So the time that an answer takes tells nothing, either."""
        ask(stranger, route, unknown_like(next(iter(theirs_in_every_state.values()))))
        for state, theirs in theirs_in_every_state.items():
            unknown = unknown_like(theirs)
            foreign_way = way_of(stranger, route, theirs)
            assert foreign_way == way_of(stranger, route, unknown), state
            assert foreign_way, state

    @each_naming_route
    def test_is_unknown_under_any_condition_too(
        self, stranger: APIClient, theirs: Things, route: Route
    ) -> None:
        before = all_rows()
        conditions = {"If_Match": '"1"', "If_None_Match": "*", "Idempotency_Key": "k"}
        assert ask(stranger, route, theirs, **conditions).status_code == 404
        assert all_rows() == before


class TestAnAuditor:
    @pytest.mark.parametrize("route", [route for route in NAMING if not route.writes], ids=str)
    def test_reads_what_the_owner_reads(
        self, api: APIClient, auditor: APIClient, theirs: Things, route: Route
    ) -> None:
        seen = ask(auditor, route, theirs)
        assert seen.status_code == 200
        assert seen.content == ask(api, route, theirs).content
        noted = ContentRead.objects.get()
        assert (noted.session_id, noted.reader, noted.page) == (
            theirs["session_id"],
            "auditor",
            "api",
        )

    @pytest.mark.parametrize("route", [route for route in NAMING if route.writes], ids=str)
    def test_writes_nothing(self, auditor: APIClient, theirs: Things, route: Route) -> None:
        before = all_rows()
        for headers in ({}, {"Idempotency_Key": "k"}):
            answer = ask(auditor, route, theirs, **headers)
            assert answer.status_code == 403
            body = answer.json()
            assert body.get("error", body)["code"] == "permission_denied"
        assert all_rows() == before

    @pytest.mark.parametrize("route", [route for route in ROUTES if route.is_list], ids=str)
    def test_finds_what_the_owner_has(
        self, auditor: APIClient, theirs: Things, route: Route
    ) -> None:
        assert owned_by(theirs, ask(auditor, route, theirs).content.decode())


@pytest.mark.parametrize("path", public_paths())
class TestAPublicPath:
    def test_answers_anybody_and_says_nothing_of_accounts(
        self, agent: User, theirs: Things, client: Client, path: str
    ) -> None:
        answer = client.get(f"/api/v1{path}")
        assert answer.status_code == 200
        told = answer.content.decode()
        assert MARKER not in told
        assert theirs["session_id"] not in told
