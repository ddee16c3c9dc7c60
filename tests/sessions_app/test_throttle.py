from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
import time_machine
from pytest_django import Settings

from sessions_app.throttle import client_address, refund, spend
from tests.caches import REDIS, cache_of, counting, redis_url

__all__ = ["counting", "redis_url"]

NOON = datetime.fromisoformat("2026-03-01T12:00:00Z")


@pytest.fixture
def clock():
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.mark.usefixtures("counting", "clock")
class TestACount:
    def test_lets_so_many_pass_and_says_when_to_come_again(self):
        assert [spend("x", most=3, seconds=60) for _ in range(5)] == [0, 0, 0, 60, 60]

    def test_is_of_one_name(self):
        assert spend("x", most=1, seconds=60) == 0
        assert spend("y", most=1, seconds=60) == 0
        assert spend("x", most=1, seconds=60) == 60

    def test_begins_anew_with_each_window(self, clock):
        spend("x", most=1, seconds=60)
        clock.shift(timedelta(seconds=59.5))
        assert spend("x", most=1, seconds=60) == 1
        clock.shift(timedelta(seconds=0.5))
        assert spend("x", most=1, seconds=60) == 0

    def test_can_be_taken_back(self):
        refund("x", seconds=60)
        spend("x", most=1, seconds=60)
        refund("x", seconds=60)
        assert [spend("x", most=1, seconds=60) for _ in range(2)] == [0, 60]

    def test_loses_nothing_among_many_at_once(self):
        with ThreadPoolExecutor(8) as pool:
            waits = list(pool.map(lambda _: spend("x", most=50, seconds=60), range(200)))
        assert waits.count(0) == 50


class TestACacheThatIsGone:
    def test_holds_nobody_up(self, settings: Settings, capfd):
        gone = {"BACKEND": REDIS, "LOCATION": "redis://127.0.0.1:1/0"}
        with cache_of(settings, gone):
            assert [spend("x", most=0, seconds=60) for _ in range(2)] == [0, 0]
            refund("x", seconds=60)
        assert capfd.readouterr().err.count("ConnectionError") == 3


class TestTheAddress:
    @pytest.mark.parametrize(
        ("proxies", "passed", "address"),
        [
            (0, None, "10.0.0.1"),
            (0, "1.1.1.1", "10.0.0.1"),
            (1, None, "10.0.0.1"),
            (1, "1.1.1.1", "1.1.1.1"),
            (1, "6.6.6.6, 1.1.1.1", "1.1.1.1"),
            (2, "6.6.6.6, 1.1.1.1,2.2.2.2", "1.1.1.1"),
            (2, "1.1.1.1", "10.0.0.1"),
            (1, "", "10.0.0.1"),
        ],
    )
    def test_is_what_the_outermost_proxy_saw(self, settings, proxies, passed, address):
        settings.PROXIES = proxies
        meta = {"REMOTE_ADDR": "10.0.0.1"}
        if passed is not None:
            meta["HTTP_X_FORWARDED_FOR"] = passed
        assert client_address(meta) == address
