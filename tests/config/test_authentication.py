from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from config import authentication
from sessions_app.models import AccessToken
from tests.plumbing import account, api_client, client_with, token_for

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.probe")]

URL = "/api/v1/echo"


def status_with(header: str) -> int:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=header)
    return int(client.get(URL).status_code)


def _busy_timeout() -> int:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        return int(cursor.fetchone()[0])


class TestARememberedToken:
    @pytest.fixture(autouse=True)
    def clock(self, settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """A monotonic clock that stands at its one value."""
        settings.TOKEN_CACHE_SECONDS = 5
        now = [1_000.0]
        monkeypatch.setattr("time.monotonic", lambda: now[0])
        authentication._read_in_period.cache_clear()
        return now

    def test_costs_no_query(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        client = api_client()
        assert client.get(URL).status_code == 200
        with django_assert_num_queries(0):
            assert client.get(URL).status_code == 200

    def test_works_until_the_period_ends_after_it_was_revoked(self, clock: list[float]) -> None:
        client = api_client()
        client.get(URL)
        AccessToken.objects.all().delete()
        clock[0] += 4.9
        assert client.get(URL).status_code == 200
        clock[0] += 0.1
        assert client.get(URL).status_code == 401

    def test_still_ends_at_its_expiry(self) -> None:
        client = api_client()
        client.get(URL)
        (token,) = AccessToken.objects.all()
        assert authentication.look_up(token.pk) is authentication.look_up(token.pk)
        remembered = authentication.look_up(token.pk)
        assert remembered is not None
        remembered.expiry = timezone.now()
        assert client.get(URL).status_code == 401

    @pytest.mark.django_db(transaction=True)
    def test_may_be_noted_by_a_thread_that_has_asked_the_database_nothing_yet(self) -> None:
        """It had no connection of which to ask for a short wait, and answered 500."""
        client = api_client()
        client.get(URL)
        (token,) = AccessToken.objects.all()
        remembered = authentication.look_up(token.pk)
        assert remembered is not None
        remembered.last_used_at = None

        def ask() -> int:
            try:
                return int(client.get(URL).status_code)
            finally:
                connection.close()

        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(ask).result() == 200
        assert remembered.last_used_at is not None

    def test_was_found_once(self) -> None:
        user, digest = account(), "0" * 128
        assert authentication.look_up(digest) is None
        AccessToken(digest=digest, token_key="0" * 15, user=user, name="late").save()
        assert authentication.look_up(digest) is not None


class TestAToken:
    def test_lets_its_account_in(self) -> None:
        assert api_client().get(URL).status_code == 200

    def test_may_be_one_of_many(self) -> None:
        user = account()
        tokens = [token_for(user) for _ in range(3)]
        assert [client_with(token).get(URL).status_code for token in tokens] == [200] * 3

    def test_is_stored_as_a_hash_only(self) -> None:
        token = token_for(account())
        stored = AccessToken.objects.values().get()
        assert token not in map(str, stored.values())

    @pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
    def test_comes_as_a_bearer(self, scheme: str) -> None:
        assert status_with(f"{scheme} {token_for(account())}") == 200

    @pytest.mark.parametrize("scheme", ["Token", "Basic", "", "Bearer x"])
    def test_comes_in_no_other_way(self, scheme: str) -> None:
        assert status_with(f"{scheme} {token_for(account())}") == 401

    def test_costs_two_queries_with_its_permissions(
        self, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        client = api_client()
        with django_assert_num_queries(2):
            client.get(URL)

    @pytest.mark.parametrize(
        "header",
        [
            "Bearer",
            "Bearer ",
            "Bearer wrong",
            "Bearer é",
            "Bearer \xff\xfe\x00",
            "Bearer 令牌",
            "Bearer \x00",
            f"Bearer {'a' * 64}",
            f"Bearer {'a' * 100_000}",
            "Bearer ' OR 1=1 --",
            "\xff\xff",
            " ",
        ],
    )
    def test_that_is_wrong_is_401(self, header: str) -> None:
        assert status_with(header) == 401

    def test_that_has_expired_is_401_and_stays(self) -> None:
        token = token_for(account())
        AccessToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
        assert client_with(token).get(URL).status_code == 401
        assert AccessToken.objects.count() == 1

    def test_that_ends_later_lets_in(self) -> None:
        token = token_for(account())
        AccessToken.objects.update(expiry=timezone.now() + timedelta(hours=1))
        assert client_with(token).get(URL).status_code == 200

    def test_of_an_inactive_account_is_401(self) -> None:
        token = token_for(account())
        User.objects.update(is_active=False)
        assert client_with(token).get(URL).status_code == 401

    def test_that_was_revoked_is_401(self) -> None:
        token = token_for(account())
        AccessToken.objects.all().delete()
        assert client_with(token).get(URL).status_code == 401


class TestThePermission:
    def test_is_needed(self) -> None:
        answer = api_client(account(may_use_api=False)).get(URL)
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
        assert "sessions_app.use_api" in answer.json()["detail"]

    def test_may_come_by_a_group(self) -> None:
        user = account(may_use_api=False)
        group = Group.objects.create(name="robots")
        group.permissions.add(Permission.objects.get(codename="use_api"))
        user.groups.add(group)
        assert api_client(user).get(URL).status_code == 200

    def test_is_in_a_superuser(self) -> None:
        user = User.objects.create_superuser("root")
        assert api_client(user).get(URL).status_code == 200

    def test_is_the_same_as_django_finds_it(self, rf: Any) -> None:
        user = account()
        group = Group.objects.create(name="readers")
        group.permissions.add(Permission.objects.get(codename="view_all_sessions"))
        user.groups.add(group)
        from config.authentication import TokenAuthentication

        token = token_for(user)
        request = rf.get("/", headers={"Authorization": f"Bearer {token}"})
        found, _ = TokenAuthentication().authenticate(request) or (None, None)
        assert found is not None
        expected = User.objects.get(pk=user.pk).get_all_permissions()
        assert found.get_all_permissions() == expected
        assert {"sessions_app.use_api", "sessions_app.view_all_sessions"} <= expected


class TestTheLastUse:
    def last_use(self) -> Any:
        return AccessToken.objects.get().last_used_at

    def test_is_noted(self) -> None:
        client = api_client()
        AccessToken.objects.update(last_used_at=None)
        client.get(URL)
        assert timezone.now() - self.last_use() < timedelta(seconds=10)

    def test_is_noted_once_a_minute(self) -> None:
        client = api_client()
        recent = timezone.now() - timedelta(seconds=50)
        AccessToken.objects.update(last_used_at=recent)
        client.get(URL)
        assert self.last_use() == recent
        AccessToken.objects.update(last_used_at=timezone.now() - timedelta(seconds=61))
        client.get(URL)
        assert timezone.now() - self.last_use() < timedelta(seconds=10)

    def test_never_fails_the_request(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def locked(*args: Any, **kwargs: Any) -> None:
            raise OperationalError("database is locked")

        client = api_client()
        AccessToken.objects.update(last_used_at=None)
        monkeypatch.setattr("django.db.models.query.QuerySet.update", locked)
        assert client.get(URL).status_code == 200
        assert "last use" in caplog.text
        assert AccessToken.objects.get().token_key not in caplog.text

    @pytest.mark.skipif(connection.vendor != "sqlite", reason="one writer at a time")
    def test_waits_for_no_writer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A read waited ten seconds for a lock that it did not need."""
        waits: list[int] = []

        def noted(queryset: Any, **given: Any) -> int:
            waits.append(_busy_timeout())
            return 1

        client = api_client()
        AccessToken.objects.update(last_used_at=None)
        usual = _busy_timeout()
        monkeypatch.setattr("django.db.models.query.QuerySet.update", noted)
        assert client.get(URL).status_code == 200
        assert waits == [100]
        assert _busy_timeout() == usual

    def test_is_not_noted_for_a_refused_token(self) -> None:
        client = api_client()
        AccessToken.objects.update(last_used_at=None, expiry=timezone.now())
        with CaptureQueriesContext(connection) as queries:
            client.get(URL)
        assert not [query for query in queries if query["sql"].startswith("UPDATE")]


class TestTheSchema:
    def test_names_the_bearer_scheme(self) -> None:
        schema = SchemaGenerator(urlconf="tests.probe").get_schema(request=None, public=True)
        schemes = schema["components"]["securitySchemes"]
        assert schemes == {"bearer": {"type": "http", "scheme": "bearer"}}
