"""A live server whose sessions are there to be acted on, and an operator who does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.browser.site import PASSWORD, Site
from tests.live_server import LiveServer, fresh_database

OPERATOR = "operator-1"
SEED = f"""
from django.contrib.auth.models import Group, User
from sessions_app.services import Actor, NewSession, SessionManager
operator = User.objects.create_user("{OPERATOR}", password="{PASSWORD}", is_staff=True)
operator.groups.add(Group.objects.get(name="operators"))
manager = SessionManager(Actor.account(User.objects.get(username="agent")))
for agent, count in (("spring", 30), ("trial", 120)):
    for _ in range(count):
        manager.create(NewSession(title="On trial", agent_id=agent))
for number in range(160):
    agent = "worker" if number < 130 else "keeper"
    new = NewSession(title=f"Task {{number}}", agent_id=agent, metadata={{"batch": number % 4}})
    manager.create(new)
"""


@contextmanager
def on_trial(folder: Path) -> Iterator[Site]:
    with fresh_database(folder) as url, LiveServer(database_url=url, WORKERS=1) as server:
        server.manage("shell", "--no-imports", "-c", SEED)
        yield Site(server, {})
