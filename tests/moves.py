"""Decisions about many sessions, for tests of how they are carried out."""

import pytest

from sessions_app.services import Actor, SessionManager, bulk
from sessions_app.states import SessionStatus
from tests.factories import make_account, make_session

RIGHTS = ("close_session", "expire_session", "resume_session", "delete_session")


def make_operator(name):
    person = make_account(name, permissions=RIGHTS)
    person.is_staff = True
    person.save()
    return person


@pytest.fixture
def account():
    return make_account()


@pytest.fixture
def operator():
    return Actor.operator(make_operator("maria"))


def begin(operator, sessions, to=SessionStatus.CLOSED):
    move = bulk.draft(actor=operator, to=to, session_ids=[session.pk for session in sessions])
    bulk.confirm(move, reason="spring cleaning")
    return move


def go_on(move):
    bulk.step(move, seconds=9)
    move.refresh_from_db()
    return move


def after_one(monkeypatch, then):
    """Do this after the first session, before the next one is looked at."""
    close, seen = SessionManager.close, []

    def closing(self, **given):
        done = close(self, **given)
        seen.append(given)
        if len(seen) == 1:
            then()
        return done

    monkeypatch.setattr(SessionManager, "close", closing)


def outcomes(move):
    return list(move.targets.order_by("id").values_list("outcome", "why"))


def make_sessions(account, count):
    return [make_session(account=account) for _ in range(count)]
