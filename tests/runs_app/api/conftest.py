from collections.abc import Iterator

import pytest
import time_machine
from django.contrib.auth.models import User
from time_machine import Traveller

from sessions_app.models import Session
from tests.api_client import APIClient
from tests.domain import NOON
from tests.factories import make_account, make_session, make_token


@pytest.fixture
def clock(db: None) -> Iterator[Traveller]:
    """The clock, which stands at `NOON` until a test moves it."""
    with time_machine.travel(NOON, tick=False) as coordinates:
        yield coordinates


@pytest.fixture
def api(clock: Traveller, agent: User) -> APIClient:
    """As everywhere, at `NOON`."""
    return APIClient(make_token(account=agent))


@pytest.fixture
def session(clock: Traveller) -> Session:
    """An ACTIVE session of the account that `api` belongs to."""
    return make_session(account=make_account("agent"))
