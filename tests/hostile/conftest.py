import pytest

from tests.factories import make_account, make_token
from tests.hostile.attack import Attacker
from tests.isolation.things import furnish


@pytest.fixture(scope="class")
def attacker_of_class(class_db: None) -> Attacker:
    agent = make_account("agent")
    attacker = Attacker(make_token(account=agent), furnish(agent, marker="own"))
    assert attacker.rows
    return attacker


@pytest.fixture
def attacker(db: None, remembered_tokens: None, attacker_of_class: Attacker) -> Attacker:
    """One for all tests of a class, since it has nothing to remember."""
    return attacker_of_class
