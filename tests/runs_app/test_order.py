"""Report ORD-01: messages of one instant came back in another order at each reading."""

import json
import re

from tests.admin import make_person
from tests.domain import assistant, calling, later, result, user
from tests.exports import exported
from tests.factories import add_messages, make_session

_TWICE = range(2)


def _mixed() -> list[dict]:
    """Fifty messages of all kinds."""
    rounds = [
        [user(f"q{n}"), calling(f"c{n}"), result(f"c{n}"), assistant(f"a{n}"), user(f"b{n}")]
        for n in range(10)
    ]
    return [message for each in rounds for message in each]


def test_messages_of_one_instant_have_one_order_everywhere(api, agent, client):
    session = make_session(account=agent, now=later(0))
    # The number that each was given, in the order in which they were sent.
    given = [each.sequence for each in add_messages(*_mixed(), session=session, now=later(0))]
    path = f"/sessions/{session.pk}"
    client.force_login(make_person("operators"))
    for _ in _TWICE:
        listed = api.get(f"{path}/messages", {"limit": 100}).json()["data"]
        assert [each["sequence"] for each in listed] == given == list(range(1, 51))
        assert len({each["created_at"] for each in listed}) == 1
        window = api.get(f"{path}/context", {"last_n": 10}).json()["messages"]
        assert [each["sequence"] for each in window] == given[-10:]
        backwards = api.get(f"{path}/messages", {"limit": 10, "order": "desc"}).json()["data"]
        assert [each["sequence"] for each in backwards] == given[:-11:-1]
        assert _exported(session.pk) == given
        page = client.get(f"/admin/sessions/{session.pk}/").content.decode()
        shown = [int(number) for number in re.findall(r'id="m(\d+)"', page)]
        assert shown == sorted(shown)


def _exported(session_id: str) -> list[int]:
    lines = [json.loads(line) for line in exported(session_id).splitlines()]
    return [line["sequence"] for line in lines if line.get("object") == "message"]
