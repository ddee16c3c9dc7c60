"""Creations of several threads, stored together."""

import time
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from sessions_app.models import IdempotencyRecord, MetadataTerm, SearchEntry, Session, SessionEvent
from sessions_app.turns import in_line
from tests.api_client import APIClient
from tests.factories import make_token
from tests.handing_over import threads

pytestmark = [
    pytest.mark.usefixtures("consistent"),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="creations of PostgreSQL do not wait"),
]

# In what is given, what is equal and what is absent all differ.
BODIES: list[dict[str, Any]] = [
    {"agent_id": "one", "user_id": "u", "title": "The first", "metadata": {"a": 1, "b": "x"}},
    {"agent_id": "one", "idle_timeout_seconds": 60},
    {"title": 'Quoted "\\" 中文 🙂 %s', "metadata": {"a": 1}},
    {},
]


@pytest.fixture
def token(account: User) -> str:
    token = make_token(account=account)
    APIClient(token).get("/sessions")  # makes the document, which no two threads can make at once
    return token


def create(token: str, body: dict[str, Any], key: str) -> Any:
    return APIClient(token).post("/sessions", body, Idempotency_Key=key)


def create_together(token: str, *requests: tuple[dict[str, Any], str]) -> list[Any]:
    """The answers to requests that wait for each other, in their order."""
    with threads() as hand_over:
        with in_line(time.monotonic() + 5):
            begun = hand_over(*(partial(create, token, body, key) for body, key in requests))
        return [each.result() for each in begun]


_OF_EVENT = ("subject", "from_status", "to_status", "actor_type", "actor_id", "session_version")


def stored(session_id: str) -> list[Any]:
    """All of a session but what names it and says when."""
    session = Session.objects.values().get(pk=session_id)
    names = {"session_id", "event_digest", "expires_at"}
    rest = {
        name: value
        for name, value in session.items()
        if name not in names and not name.endswith("_at")
    }
    return [
        rest,
        session["expires_at"] and session["expires_at"] - session["created_at"],
        sorted(MetadataTerm.objects.filter(session=session_id).values_list("digest", flat=True)),
        [*SearchEntry.objects.filter(session=session_id).values_list("kind", "account_id")],
        [*SessionEvent.objects.filter(session=session_id).values_list("sequence", *_OF_EVENT)],
        IdempotencyRecord.objects.filter(session=session_id).count(),
    ]


def test_a_group_stores_what_each_would_store_alone(token: str) -> None:
    alone = [create(token, body, f"alone {n}") for n, body in enumerate(BODIES)]
    together = create_together(token, *((body, f"group {n}") for n, body in enumerate(BODIES)))
    for one, other in zip(alone, together, strict=True):
        assert other.status_code == 201
        ids = [answer.json()["session_id"] for answer in (one, other)]
        assert stored(ids[1]) == stored(ids[0])


def test_of_one_key_one_is_done_and_the_others_get_its_answer(token: str) -> None:
    requests = [({"title": "a"}, "same"), ({"title": "b"}, "other"), ({"title": "a"}, "same")]
    first, other, second = create_together(token, *requests)
    assert [each.status_code for each in (first, other, second)] == [201] * 3
    assert first.json() == second.json()
    assert other.json()["session_id"] != first.json()["session_id"]
    replayed = [each.headers.get("Idempotency-Replayed") for each in (first, other, second)]
    assert replayed == [None, None, "true"]
    assert Session.objects.count() == 2
