import pytest
import time_machine
from django.contrib.auth.models import User
from pytest_django import Settings

from config.throttling import AccountThrottle
from sessions_app.api.base import DomainView
from tests.api_client import APIClient
from tests.caches import counting, redis_url
from tests.factories import make_token

__all__ = ["counting", "redis_url"]


@pytest.fixture(autouse=True)
def throttled(settings: Settings, counting: None, monkeypatch: pytest.MonkeyPatch):
    """As REQUESTS_PER_MINUTE=3 makes it, within one minute."""
    settings.REQUESTS_PER_MINUTE = 3
    monkeypatch.setattr(DomainView, "throttle_classes", [AccountThrottle])
    with time_machine.travel("2026-03-01T12:00:18Z", tick=False):
        yield


def statuses(client: APIClient, count: int) -> list[int]:
    return [client.get("/sessions").status_code for _ in range(count)]


class TestAnAccount:
    def test_is_told_when_to_come_again(self, api: APIClient):
        assert statuses(api, 3) == [200] * 3
        refused = api.get("/sessions")
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert refused.headers["Retry-After"] == "42"
        with time_machine.travel("2026-03-01T12:01:00Z", tick=False):
            assert statuses(api, 1) == [200]

    def test_stores_nothing_that_is_refused(self, api: APIClient):
        statuses(api, 3)
        assert api.post("/sessions", {}, Idempotency_Key="k").status_code == 429
        with time_machine.travel("2026-03-01T12:01:00Z", tick=False):
            again = api.post("/sessions", {}, Idempotency_Key="k")
            assert again.status_code == 201
            assert "Idempotency-Replayed" not in again.headers

    def test_is_counted_with_all_its_tokens(self, api: APIClient, agent: User):
        assert statuses(api, 3) == [200] * 3
        assert statuses(APIClient(make_token(account=agent)), 1) == [429]

    def test_holds_up_no_other(self, api: APIClient, stranger: APIClient):
        statuses(api, 4)
        assert statuses(stranger, 1) == [200]

    @pytest.mark.django_db
    def test_cannot_be_used_up_by_who_has_no_token(self, api: APIClient):
        assert statuses(APIClient("0" * 64), 5) == [401] * 5
        assert statuses(api, 1) == [200]
