from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User

from sessions_app.models import AccessToken
from tests.factories import make_token
from tests.hostile.attack import Attacker
from tests.isolation.things import furnish


@pytest.fixture
def attacker(agent: User) -> Attacker:
    token = make_token(account=agent)
    # However long a test takes, no request notes the token's use: that would be a changed row.
    AccessToken.objects.update(last_used_at=datetime(2999, 1, 1, tzinfo=UTC))
    attacker = Attacker(token, furnish(agent, marker="own"))
    assert attacker.rows
    return attacker
