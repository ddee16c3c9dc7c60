"""Accounts, clients and bare rows for tests of what stands below the managers."""

from typing import Any

from django.contrib.auth.models import Permission, User
from django.utils import timezone
from rest_framework.test import APIClient

from sessions_app.ids import new_id
from sessions_app.models import AccessToken, Session


def account(name: str = "agent", *, may_use_api: bool = True) -> User:
    user, _ = User.objects.get_or_create(username=name)
    if may_use_api:
        user.user_permissions.add(Permission.objects.get(codename="use_api"))
    return user


def token_for(user: User) -> str:
    """A token that was used just now, so that a request does not note its use."""
    _, token = AccessToken.objects.create(user=user, name="test", last_used_at=timezone.now())
    return str(token)


def client_with(token: str, **options: Any) -> APIClient:
    client = APIClient(**options)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


def api_client(user: User | None = None, **options: Any) -> APIClient:
    return client_with(token_for(user or account()), **options)


def bare_session(user: User, **fields: Any) -> Session:
    """A row, written past the manager: these tests are about the plumbing."""
    now = timezone.now()
    times = {"created_at": now, "updated_at": now, "last_activity_at": now}
    return Session.objects.create(session_id=new_id("sess"), account=user, **{**times, **fields})
