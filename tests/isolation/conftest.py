"""Two accounts: one that owns something of each kind, and one that must not learn of it.

They and their things are made once for a class; what a test changes is taken back after it.
"""

from typing import NamedTuple

import pytest
from django.contrib.auth.models import User

from tests.api_client import APIClient
from tests.factories import make_account, make_token
from tests.isolation.things import Things, furnish, furnish_in_every_state

MARKER = "sesame"


class Accounts(NamedTuple):
    """The owner and the stranger, each with its things."""

    owner: APIClient
    stranger: APIClient
    theirs: Things
    own: Things


class Seeded(NamedTuple):
    """What each test of a class begins with."""

    agent: User
    stranger: User
    agent_token: str
    stranger_token: str
    theirs: Things
    own: Things


@pytest.fixture(scope="class")
def seeded(class_db: None) -> Seeded:
    agent, stranger = make_account("agent"), make_account("stranger")
    return Seeded(
        agent,
        stranger,
        make_token(account=agent),
        make_token(account=stranger),
        furnish(agent, marker=MARKER, idle_timeout_seconds=86_400),
        furnish(stranger, marker="mine"),
    )


@pytest.fixture(scope="class")
def theirs_in_every_state(seeded: Seeded) -> dict[str, Things]:
    """More of what `api` owns: the same in each state that a session can be in."""
    return furnish_in_every_state(seeded.agent, marker=MARKER)


@pytest.fixture
def agent(db: None, seeded: Seeded) -> User:
    return seeded.agent


@pytest.fixture
def api(db: None, remembered_tokens: None, seeded: Seeded) -> APIClient:
    return APIClient(seeded.agent_token)


@pytest.fixture
def stranger(db: None, remembered_tokens: None, seeded: Seeded) -> APIClient:
    return APIClient(seeded.stranger_token)


@pytest.fixture
def theirs(db: None, seeded: Seeded) -> Things:
    """What `api` owns."""
    return seeded.theirs


@pytest.fixture
def own(db: None, seeded: Seeded) -> Things:
    """What `stranger` owns."""
    return seeded.own


@pytest.fixture
def accounts(api: APIClient, stranger: APIClient, theirs: Things, own: Things) -> Accounts:
    return Accounts(api, stranger, theirs, own)
