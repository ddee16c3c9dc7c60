"""Rows to work on, written past the servers: the same amount for the product and the reference."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from uuid_utils.compat import uuid7

from runs_app.management import demo
from sessions_app.folding import fold
from sessions_app.ids import new_id
from sessions_app.jsontext import JSONText
from sessions_app.models import Message, Session
from sessions_app.services.search import index_messages
from sessions_app.services.tokens import issue_token

from .reference import tables

USERS = 1_000
STORIES = 3_000

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Seeded:
    """A token and an operator's login; sessions with so many messages, by that number; and new ones
    to append to."""

    token: str
    browser: str
    product: dict[int, str]
    reference: dict[int, str]
    targets: dict[str, list[str]]


def seed(*, sessions: int, lengths: list[int], targets: int) -> Seeded:
    """Make an account with so many sessions; those of a length and the targets on each side."""
    account = User.objects.create_user(f"bench-{uuid7().hex}")
    _make_reference_tables()
    _fill_lists(account, sessions)
    # What pages of the console show, and the others lack: runs, calls, metadata, all statuses.
    list(demo.seed(sessions=STORIES, seed=1, now=timezone.now()))
    return Seeded(
        token=issue_token(account=account, name="bench"),
        browser=_log_in(),
        product={length: _product_session(account, length) for length in lengths},
        reference={length: _reference_session(length) for length in lengths},
        targets={
            "product": [_product_session(account, 0) for _ in range(targets)],
            "reference": [_reference_session(0) for _ in range(targets)],
        },
    )


def _log_in() -> str:
    """The cookie of a browser in which an operator has logged in."""
    client = Client()
    client.force_login(User.objects.create_superuser(f"operator-{uuid7().hex}"))
    return client.cookies["sessionid"].value


def text(size: int) -> str:
    """So many bytes of words."""
    words = random.Random(size).choices(
        ["state", "agent", "tool", "résumé", "会话", "plan"], k=size
    )
    return " ".join(words).encode()[:size].decode(errors="ignore")


def rare(number: int) -> str:
    """A word that the message of this number has in each session, and no other."""
    return f"needle{number:06}"


def _make_reference_tables() -> None:
    moment = "timestamptz" if connection.vendor == "postgresql" else "datetime"
    with connection.cursor() as cursor:
        for statement in tables.statements(moment):
            cursor.execute(statement)


def _fill_lists(account: User, count: int) -> None:
    now = timezone.now()
    rows = (_listed_session(account, number, now) for number in range(count))
    for batch in _batches(rows):
        Session.objects.bulk_create(batch)
        _insert_reference_sessions(map(_same, batch))


def _listed_session(account: User, number: int, now: datetime) -> Session:
    moment = now - timedelta(seconds=number)
    return Session(
        session_id=new_id("sess"),
        account=account,
        agent_id="bench",
        user_id=f"user-{number % USERS}",
        title=f"Session {number}",
        metadata=JSONText('{"ticket":17}'),
        created_at=moment,
        updated_at=moment,
        last_activity_at=moment,
    )


def _product_session(account: User, length: int) -> str:
    session = _listed_session(account, 0, timezone.now())
    session.last_sequence = session.message_count = length
    session.idle_timeout_seconds = 86_400
    session.expires_at = session.last_activity_at + timedelta(days=1)
    session.save(force_insert=True)
    roles, words = ("assistant", "user"), fold(text(1000))
    bodies = [JSONText.of({"role": role, "content": text(1000)}) for role in roles]
    rows = (
        Message(
            message_id=new_id("msg"),
            session=session,
            sequence=number,
            role=roles[number % 2],
            body=bodies[number % 2],
            size=len(bodies[number % 2]),
            text=f"{words} {rare(number)}",
            session_version=1,
            created_at=session.created_at,
        )
        for number in range(1, length + 1)
    )
    for batch in _batches(rows):
        Message.objects.bulk_create(batch)
        index_messages(session, batch)
    return session.session_id


def _same(row: Session) -> list[Any]:
    """The row that the reference keeps of such a session."""
    names = ("agent_id", "user_id", "title")
    given = {name: getattr(row, name) for name in names} | {"metadata": row.metadata.value}
    return tables.new_session(given, row.last_activity_at)


def _insert_reference_sessions(rows: Iterable[list[Any]]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO reference_session ({tables.SESSION_COLUMNS}) "
            f"VALUES ({tables.SESSION_PLACES})",
            list(rows),
        )


def _reference_session(length: int) -> str:
    now = timezone.now()
    given = {
        "agent_id": "bench",
        "user_id": "user-0",
        "title": "Session",
        "metadata": {"ticket": 17},
    }
    row = tables.new_session(given, now, length=length)
    _insert_reference_sessions([row])
    session_id = str(row[0])
    body = JSONText.of({"role": "user", "content": text(1000)}).text
    rows = ((uuid7().hex, session_id, number, 1, now, body) for number in range(1, length + 1))
    with connection.cursor() as cursor:
        for batch in _batches(rows):
            cursor.executemany(
                "INSERT INTO reference_message VALUES (%s, %s, %s, %s, %s, %s)", batch
            )
    return session_id


def _batches(rows: Iterator[Row], size: int = 2_000) -> Iterator[list[Row]]:
    while batch := list(islice(rows, size)):
        yield batch
