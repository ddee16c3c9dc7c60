"""Two accounts: one that owns something of each kind, and one that must not learn of it."""

from typing import NamedTuple

import pytest
from django.contrib.auth.models import User

from tests.api_client import APIClient
from tests.isolation.things import Things, furnish, furnish_in_every_state

MARKER = "sesame"


class Accounts(NamedTuple):
    """The owner and the stranger, each with its things."""

    owner: APIClient
    stranger: APIClient
    theirs: Things
    own: Things


@pytest.fixture
def theirs(agent: User) -> Things:
    """What `api` owns."""
    return furnish(agent, marker=MARKER, idle_timeout_seconds=3600)


@pytest.fixture
def theirs_in_every_state(agent: User) -> dict[str, Things]:
    return furnish_in_every_state(agent, marker=MARKER)


@pytest.fixture
def accounts(api: APIClient, stranger: APIClient, theirs: Things, own: Things) -> Accounts:
    return Accounts(api, stranger, theirs, own)


@pytest.fixture
def own(stranger: APIClient) -> Things:
    """What `stranger` owns."""
    return furnish(User.objects.get(username="stranger"), marker="mine")
