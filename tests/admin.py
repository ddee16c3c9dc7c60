"""What tests of the admin share: people with their roles, one of everything, and parsed pages."""

from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from runs_app.models import Run
from sessions_app.models import Message, Session, SessionEvent, ToolCall, WorkingMemoryRevision
from tests.factories import add_messages, make_account, make_run, make_session

Entered = Callable[[str], Client]

# Everything that is shown and never edited.
STORED = (
    "sessions_app_session",
    "sessions_app_message",
    "sessions_app_toolcall",
    "sessions_app_workingmemoryrevision",
    "sessions_app_sessionevent",
    "runs_app_run",
)


@pytest.fixture
def agent(db: None) -> User:
    """The account whose sessions the others look at."""
    return make_account("agent", permissions=["use_api"])


@pytest.fixture
def entered(db: None) -> Entered:
    """A browser in which somebody of this role has logged in."""

    def enter(role: str) -> Client:
        client = Client()
        if role != "nobody":
            client.force_login(make_person(role))
        return client

    return enter


@pytest.fixture
def operator(entered: Entered) -> Client:
    """A browser in which one of the operators has logged in."""
    return entered("operators")


def make_person(role: str) -> User:
    """A superuser, somebody of a group, or staff without any right ("staff")."""
    person, _ = User.objects.get_or_create(username=f"a-{role}", defaults={"is_staff": True})
    if role == "superuser":
        person.is_superuser = True
        person.save()
    elif role == "agent":
        person.is_staff = False
        person.save()
        person.groups.add(Group.objects.get(name="agents"))
    elif role != "staff":
        person.groups.add(Group.objects.get(name=role))
    return person


@dataclass
class Whole:
    """A session with one of everything."""

    session: Session
    run: Run
    message: Message
    call: ToolCall
    revision: WorkingMemoryRevision
    event: SessionEvent

    def page(self, name: str) -> str:
        obj = {
            "sessions_app_session": self.session,
            "sessions_app_message": self.message,
            "sessions_app_toolcall": self.call,
            "sessions_app_workingmemoryrevision": self.revision,
            "sessions_app_sessionevent": self.event,
            "runs_app_run": self.run,
        }[name]
        return f"{list_of(name)}{obj.pk}/change/"


def list_of(name: str) -> str:
    """The address of a list: ``runs_app_run`` is /admin/runs_app/run/."""
    app, model = name.rsplit("_", 1)
    return f"/admin/{app}/{model}/"


def make_whole(agent: User, *, text: str = "Hello", **fields: Any) -> Whole:
    """``text`` stands wherever a client can write."""
    session = make_session(
        account=agent,
        **{
            "title": text,
            "agent_id": text[:255],
            "user_id": text[:255],
            "metadata": {text: text},
            "working_memory": {"goal": text},
            **fields,
        },
    )
    run = make_run(session=session, input={text: text}, agent_id=text[:255], model=text[:255])
    calling = {
        "id": text[:500],
        "type": "function",
        "function": {"name": text[:255], "arguments": text},
    }
    message, _ = add_messages(
        {"role": "user", "content": text, "name": text[:255]},
        {"role": "assistant", "content": None, "tool_calls": [calling]},
        session=session,
        run_id=run.run_id,
    )
    return Whole(
        session=Session.objects.get(pk=session.pk),
        run=run,
        message=message,
        call=ToolCall.objects.get(session=session),
        revision=WorkingMemoryRevision.objects.get(session=session),
        event=SessionEvent.objects.filter(session=session).order_by("sequence")[0],
    )


@dataclass
class Page(HTMLParser):
    """A page as a browser would take it apart."""

    html: str
    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: str = ""
    scripts: str = ""
    _inside: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self._inside = tag
        self.text += " "

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""
        self.text += " "

    def handle_data(self, data: str) -> None:
        if self._inside in {"script", "style"}:
            self.scripts += data
        else:
            self.text += data

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.tags if name == tag]

    def links(self) -> list[str]:
        return [attrs.get("href", "") for attrs in self.of("a")]

    def words(self) -> str:
        return " ".join(self.text.split())


def read(client: Client, address: str, **data: Any) -> Page:
    response = client.get(address, data, follow=True)
    assert response.status_code == 200, (address, response.status_code)
    return Page(response.content.decode())


def told(response: Any) -> list[str]:
    """The messages on the page after a redirect."""
    return [str(message) for message in response.context["messages"]]
