"""Rows for tests, made through the managers, so that only reachable states exist."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.db.models import Model
from django.utils import timezone

from runs_app.models import Run
from runs_app.services import NewRun, RunManager
from sessions_app.models import (
    AccessToken,
    IdempotencyRecord,
    Message,
    Session,
    SessionEvent,
    ToolCall,
)
from sessions_app.services import Actor, NewSession, SessionManager
from sessions_app.services.purge import purged_models
from sessions_app.services.tokens import issue_token
from tests.tampering import owner_of_the_tables

_NEVER_AGAIN = datetime(2999, 1, 1, tzinfo=UTC)


def make_account(name: str = "agent", *, permissions: Sequence[str] = ()) -> User:
    """A service account; ``permissions`` are code names."""
    user, _ = User.objects.get_or_create(username=name)
    user.user_permissions.add(*Permission.objects.filter(codename__in=permissions))
    return user


def make_token(*, account: User) -> str:
    """A token whose use no request notes, however long it is used: that would be a changed row."""
    token = issue_token(account=account, name="test")
    AccessToken.objects.filter(user=account).update(last_used_at=_NEVER_AGAIN)
    return token


def make_session(*, account: User, now: datetime | None = None, **fields: Any) -> Session:
    """A session that has a title: without one, its first user message would give it one."""
    new = NewSession(**{"title": "Titled", **fields})
    session, _ = SessionManager(Actor.account(account)).create(new, now=now)
    return session


def make_lapsed_session(*, account: User, **fields: Any) -> Session:
    """A session whose deadline has passed, and nobody has settled it."""
    hour_ago = timezone.now() - timedelta(hours=1)
    fields = {"idle_timeout_seconds": 60, **fields}
    return make_session(account=account, now=hour_ago, **fields)


def make_messages(*, session: Session, count: int = 1, **more: Any) -> list[Message]:
    """So many user messages, in one batch."""
    texts = [{"role": "user", "content": f"Message {number}"} for number in range(1, count + 1)]
    return add_messages(*texts, session=session, **more)


def add_messages(*messages: dict[str, Any], session: Session, **more: Any) -> list[Message]:
    manager = SessionManager(Actor.account(session.account))
    return manager.append(session_id=session.session_id, messages=messages, **more).messages


def make_tool_call(*, session: Session, name: str = "ls", **more: Any) -> ToolCall:
    """One that the agent records by itself."""
    manager = SessionManager(Actor.account(session.account))
    call, _ = manager.start_tool_call(session_id=session.session_id, name=name, **more)
    return call


def make_run(*, session: Session, now: datetime | None = None, **fields: Any) -> Run:
    manager = RunManager(Actor.account(session.account))
    return manager.create(session_id=session.session_id, new=NewRun(**fields), now=now)


def forget(account: User) -> None:
    """Remove an account and all that is its own: for tests whose writes are committed."""
    sessions = Session.objects.filter(account=account)
    models: list[type[Model]] = [*purged_models(), SessionEvent]
    with transaction.atomic(), owner_of_the_tables():
        for model in models:
            rows = model._base_manager.filter(session__in=sessions)
            rows._raw_delete(rows.db)
    IdempotencyRecord.objects.filter(account=account).delete()
    sessions._raw_delete(sessions.db)
    account.delete()
