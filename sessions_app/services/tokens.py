"""Accounts that use the API, and the tokens they use it with."""

from datetime import datetime

from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from ..errors import InvalidRequest
from ..jsontext import clean_text
from ..models import AccessToken

AGENTS = "agents"
_USE_API = "use_api"
_MAX_NAME = 255


def issue_token(*, account: User, name: str, expires_at: datetime | None = None) -> str:
    """Make a token and return it: only its hash is stored, so that nobody can read it again.

    An account that may not use the API joins the group of agents, which may.

    Raises:
        InvalidRequest: an empty or too long name, an account that is switched off, or an end
            that has passed.
    """
    name = clean_text(name).strip()
    if not 1 <= len(name) <= _MAX_NAME:
        raise InvalidRequest.at("/name", f"a name has 1 to {_MAX_NAME} characters")
    if not account.is_active:
        raise InvalidRequest.at("/account", f"{account.get_username()} is not active")
    lifetime = None if expires_at is None else expires_at - timezone.now()
    if lifetime is not None and lifetime.total_seconds() <= 0:
        raise InvalidRequest.at("/expires_at", "has passed")
    with transaction.atomic():
        if not account.has_perm(f"sessions_app.{_USE_API}"):
            account.groups.add(_agents())
        _, token = AccessToken.objects.create(user=account, name=name, expiry=lifetime)
    return str(token)


def get_or_create_account(*, username: str) -> tuple[User, bool]:
    """The account of that name; a new one is a service account, which cannot log in.

    Raises:
        InvalidRequest: not a name that an account can have.
    """
    username = User.normalize_username(clean_text(username))
    if found := User.objects.filter(username=username).first():
        return found, False
    new = User(username=username)
    new.set_unusable_password()
    try:
        new.clean_fields()
    except ValidationError as error:
        raise InvalidRequest.at("/username", " ".join(error.messages)) from error
    return User.objects.get_or_create(username=username, defaults={"password": new.password})


def _agents() -> Group:
    """The group that a migration made, or a new one where somebody has deleted it."""
    group, created = Group.objects.get_or_create(name=AGENTS)
    if created:
        group.permissions.add(
            Permission.objects.get(content_type__app_label="sessions_app", codename=_USE_API)
        )
    return group
