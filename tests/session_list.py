"""What tests of the list of sessions share."""

from urllib.parse import parse_qs, urlsplit

from runs_app.services import RunManager
from sessions_app.models import Session
from sessions_app.services import Actor
from tests.admin import read
from tests.factories import make_run

LIST = "/admin/sessions_app/session/"


def titles(client, **data):
    """Of the rows, in their order."""
    return titles_on(read(client, LIST, **data))


def titles_on(page):
    names = dict(Session.objects.values_list("pk", "title"))
    shown = [tag["title"] for tag in page.of("span") if tag.get("class") == "id"]
    return [names[pk] for pk in shown]


def fail(agent, session):
    run = make_run(session=session)
    RunManager(Actor.account(agent)).fail(run_id=run.pk, error={"type": "boom"})


def query_of(link):
    return {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}
