import pytest
from django.contrib.auth.models import User

from tests.factories import make_token
from tests.hostile.attack import Attacker
from tests.isolation.things import furnish


@pytest.fixture
def attacker(agent: User) -> Attacker:
    attacker = Attacker(make_token(account=agent), furnish(agent, marker="own"))
    assert attacker.rows
    return attacker
