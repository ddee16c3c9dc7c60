"""What people wrote, and what they prove themselves by, stays out of the log and out of answers,
whatever fails, and wherever (docs/SECURITY.md)."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from django.contrib.auth.models import User
from django.db import DataError, OperationalError, connection
from django.test import Client

from sessions_app.api.base import DomainView
from sessions_app.pages.base import ConsolePage
from tests.api_client import address
from tests.factories import make_account, make_token
from tests.isolation.routes import Route, guarded_routes
from tests.isolation.samples import path_of, sample_of
from tests.isolation.things import Things, furnish

SECRET = "sesame"
each_route = pytest.mark.parametrize("route", guarded_routes(), ids=str)


@pytest.fixture(scope="class")
def seeded(class_db: None) -> tuple[str, Things]:
    agent = make_account("agent")
    return make_token(account=agent), furnish(agent, marker=SECRET)


@pytest.fixture
def token(db: None, remembered_tokens: None, seeded: tuple[str, Things]) -> str:
    return seeded[0]


@pytest.fixture
def things(db: None, seeded: tuple[str, Things]) -> Things:
    return seeded[1]


@pytest.fixture
def send(token: str, things: Things) -> Callable[[Route], Any]:
    """The route's sample request, with the secret wherever its body has a text."""
    client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {token}"})
    client.get("/api/v1/sessions")  # whose token it is is known by now

    def send(route: Route) -> Any:
        sample = sample_of(route)
        body = sample.body if isinstance(sample.body, bytes) else json.dumps(_telling(sample.body))
        return client.generic(
            route.method,
            address(path_of(route, things)),
            body if sample.body is not None else b"",
            sample.content_type,
            query_params={"q": SECRET} if route.name == "search" else {},
        )

    return send


def _telling(value: Any) -> Any:
    if isinstance(value, dict):
        fixed = {"role", "type", "if_active", "status"}
        return {key: v if key in fixed else _telling(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_telling(each) for each in value]
    return SECRET if isinstance(value, str) else value


@contextmanager
def view_fails() -> Iterator[None]:
    """With all that it knows in the exception's message, and another one behind it."""

    def fail(view: DomainView, request: Any, *_: Any, **more: Any) -> Any:
        told = (SECRET, request.META, more, vars(view))
        raise RuntimeError(told) from KeyError(told)

    with mock.patch.object(DomainView, "_answer", fail):
        yield


@contextmanager
def database_fails(kind: type[Exception]) -> Iterator[None]:
    """As a driver does, which repeats the row that it does not like."""

    def fail(_execute: Any, sql: str, params: Any, *_: Any) -> Any:
        told = f"invalid: {SECRET} {sql} {params}"
        raise kind(told) from ValueError(told)

    with connection.execute_wrapper(fail):
        yield


FAILURES = {
    "view": (view_fails, 500, "builtins.RuntimeError"),
    "statement": (lambda: database_fails(DataError), 500, "django.db.utils.DataError"),
    "database": (lambda: database_fails(OperationalError), 503, "database busy"),
}


class TestAFailure:
    @each_route
    @pytest.mark.parametrize("failure", FAILURES)
    def test_tells_nothing(
        self,
        send: Callable[[Route], Any],
        token: str,
        capfd: pytest.CaptureFixture[str],
        route: Route,
        failure: str,
    ) -> None:
        fails, status, named = FAILURES[failure]
        with fails():
            answer = send(route)
        assert answer.status_code == status
        log = capfd.readouterr().err
        assert named in log
        for told in (log, b"".join(answer).decode(), str(answer.headers)):
            assert SECRET not in told
            assert token not in told

    def test_of_a_page_tells_nothing(self, db: None, capfd: pytest.CaptureFixture[str]) -> None:
        client = Client(raise_request_exception=False)
        client.force_login(User.objects.create_superuser("maria"))
        with mock.patch.object(ConsolePage, "dispatch", side_effect=RuntimeError(SECRET)):
            answer = client.get("/admin/")
        assert answer.status_code == 500
        log = capfd.readouterr().err
        assert "builtins.RuntimeError" in log
        assert SECRET not in log + answer.content.decode()
