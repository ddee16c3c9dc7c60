"""The console's login: refused after too many attempts; what was typed is not written down."""

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings
from structlog.testing import CapturingLogger

from sessions_app.console import login
from tests.caches import counting, redis_url

__all__ = ["counting", "redis_url"]

HERE, ELSEWHERE = "10.0.0.1", "10.0.0.2"


@pytest.fixture(autouse=True)
def limited(db: None, settings: Settings, counting: None):
    """Three attempts, and a quarter of an hour that has just begun."""
    settings.LOGIN_ATTEMPTS = 3
    for name in ("maria", "lin"):
        User.objects.create_superuser(name, password="right")
    with time_machine.travel("2026-03-01T12:00:30Z", tick=False):
        yield


def attempt(name: str = "maria", password: str = "wrong", address: str = HERE) -> int:
    """200: a wrong password; 302: in; 429: not even looked at."""
    data = {"username": name, "password": password}
    return Client(REMOTE_ADDR=address).post("/admin/login/", data).status_code


def attempts(count: int, **more: str) -> list[int]:
    return [attempt(**more) for _ in range(count)]


class TestTooManyAttempts:
    def test_are_refused_even_with_the_right_password(self):
        assert attempts(3) == [200] * 3
        assert attempt(password="right") == 429

    def test_say_when_to_come_again(self):
        attempts(3)
        data = {"username": "maria", "password": "right"}
        refused = Client(REMOTE_ADDR=HERE).post("/admin/login/", data)
        assert refused.headers["Retry-After"] == "870"
        assert "Try again in 15 minutes." in refused.content.decode()
        assert "sessionid" not in refused.cookies
        with time_machine.travel("2026-03-01T12:15:00Z", tick=False):
            assert attempt(password="right") == 302

    def test_are_the_same_name_however_it_is_written(self):
        assert [attempt(name) for name in ("maria", "MARIA", "\uff4daria", "maria")][-1] == 429

    def test_from_one_address_hold_up_no_other(self):
        attempts(40)  # more than there may be for one name from anywhere
        assert attempt(password="right", address=ELSEWHERE) == 302

    def test_that_are_refused_from_one_address_hold_up_no_other(self):
        assert attempts(40)[3:] == [429] * 37
        assert attempt(password="right", address=ELSEWHERE) == 302

    def test_for_one_name_hold_up_no_other(self):
        attempts(4)
        assert attempt("lin", "right") == 302

    def test_for_many_names_from_one_address_are_too_many(self):
        assert [attempt(f"name-{number}") for number in range(30)] == [200] * 30
        assert attempt("lin", "right") == 429

    def test_for_one_name_from_many_addresses_are_too_many(self):
        assert [attempt(address=f"10.1.0.{number}") for number in range(30)] == [200] * 30
        assert attempt(password="right", address=ELSEWHERE) == 429

    def test_are_not_made_of_those_that_were_right(self):
        assert [attempt(password="right") for _ in range(5)] == [302] * 5
        assert attempts(4) == [200, 200, 200, 429]

    def test_are_never_too_many_where_nobody_counts(self, settings: Settings):
        settings.LOGIN_ATTEMPTS = 0
        assert attempts(9) == [200] * 9


class TestWhatWasTyped:
    def test_is_in_no_line(self, capfd: pytest.CaptureFixture[str]):
        for _ in range(4):
            attempt("my password", "my other password")
        log = capfd.readouterr().err
        assert log.count('"event":"login failed"') == 3
        assert log.count('"event":"login refused"') == 1
        assert HERE in log
        assert "password" not in log

    @pytest.mark.parametrize(
        ("name", "password"), [("", "right"), ("maria", ""), ("ma\0ria", "right"), ("maria", "\0")]
    )
    def test_that_cannot_be_a_login_is_none(
        self, name: str, password: str, monkeypatch: pytest.MonkeyPatch
    ):
        written = CapturingLogger()
        monkeypatch.setattr(login, "log", written)
        assert attempts(9, name=name, password=password) == [200] * 9
        assert attempt(password="right") == 302
        assert [(call.method_name, call.args) for call in written.calls] == [("info", ("login",))]


class TestALogin:
    def test_ends_after_some_hours(self, settings: Settings):
        assert settings.SESSION_COOKIE_AGE == 12 * 3600
        client = Client(REMOTE_ADDR=HERE)
        client.post("/admin/login/", {"username": "maria", "password": "right"})
        assert client.get("/admin/").status_code == 200
        with time_machine.travel("2026-03-02T00:00:31Z", tick=False):
            assert client.get("/admin/").status_code == 302

    def test_does_not_keep_the_id_of_before(self):
        """Whoever had slipped a session id under is not logged in with it."""
        client = Client(REMOTE_ADDR=HERE)
        client.cookies["sessionid"] = "a" * 32
        client.post("/admin/login/", {"username": "maria", "password": "right"})
        assert client.cookies["sessionid"].value != "a" * 32
        assert client.cookies["sessionid"]["httponly"]
        assert client.cookies["sessionid"]["samesite"] == "Lax"
