"""Bearer tokens: who asks, and whether the account may use the API at all."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, connection
from django.db.models import Q
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication as KnoxAuthentication
from knox.crypto import hash_token
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from sessions_app.models import AccessToken
from sessions_app.prepared import Prepared

logger = logging.getLogger(__name__)

USE_API = "sessions_app.use_api"
LAST_USE_PRECISION = timedelta(minutes=1)
_LONGEST_WAIT_MS = 100

_PERMISSIONS = Prepared(
    lambda given: (
        Permission.objects.filter(Q(user=given("user_id")) | Q(group__user=given("user_id")))
        .order_by()
        .values_list("content_type__app_label", "codename")
    )
)


class TokenAuthentication(KnoxAuthentication):
    """knox's tokens, found by their digest in one query and without knox's clean-up writes."""

    def authenticate(self, request: Request) -> tuple[User, AccessToken] | None:
        scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
        if scheme.lower() != self.authenticate_header(request).lower():
            return None
        try:
            return self.authenticate_credentials(token.strip().encode("ascii"))
        except UnicodeError as error:
            raise AuthenticationFailed("The token is not valid.") from error

    def authenticate_credentials(self, token: bytes) -> tuple[User, AccessToken]:
        found = look_up(hash_token(token.decode("ascii")))
        now = timezone.now()
        if found is None or (found.expiry is not None and found.expiry <= now):
            raise AuthenticationFailed("The token is not valid.")
        if not found.user.is_active:
            raise AuthenticationFailed("The account is not active.")
        if found.last_used_at is None or found.last_used_at <= now - LAST_USE_PRECISION:
            _note_use(found, now)
        return found.user, found


def look_up(digest: str) -> AccessToken | None:
    """The token with its account and the account's permissions: all that a request asks about it.

    What was found is kept for up to TOKEN_CACHE_SECONDS, so that is how long a revoked token, a
    switched-off account or a permission taken away may still work. What was not found is not kept.
    """
    if not settings.TOKEN_CACHE_SECONDS:
        return _read(digest)
    with suppress(AccessToken.DoesNotExist):
        return _read_in_period(digest, int(time.monotonic() // settings.TOKEN_CACHE_SECONDS))
    return None


@lru_cache(maxsize=1000)
def _read_in_period(digest: str, period: int) -> AccessToken:
    """`_read`, once in a period and process; the older ones are pushed out by the newer."""
    if (token := _read(digest)) is None:
        raise AccessToken.DoesNotExist
    return token


def _read(digest: str) -> AccessToken | None:
    token = AccessToken.objects.select_related("user").filter(pk=digest).first()
    if token is not None:
        if token.user.is_active and not token.user.is_superuser:
            _load_permissions(token.user)
        token.may_use_api = token.user.has_perm(USE_API)
    return token


def _load_permissions(user: User) -> None:
    """One query where Django's backend makes two, kept where that backend keeps its own."""
    names = _PERMISSIONS.all(user_id=user.pk)
    user._perm_cache = {f"{app}.{codename}" for app, codename in names}  # type: ignore[attr-defined]


def _note_use(token: AccessToken, now: Any) -> None:
    try:
        with _hardly_waiting():
            AccessToken.objects.filter(pk=token.pk).update(last_used_at=now)
        token.last_used_at = now
    except DatabaseError:
        # Nice to know, never worth a refused request. Not which token it is: what the console calls
        # it by is how its secret begins.
        logger.warning("the last use of a token of %s was not noted", token.user.username)


@contextmanager
def _hardly_waiting() -> Iterator[None]:
    """On SQLite one writer holds up all others, and no reader may wait for one for this."""
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()  # a thread's first request, of a token that another one found
    _set_busy_timeout(_LONGEST_WAIT_MS)
    try:
        yield
    finally:
        _set_busy_timeout(settings.DB_LOCK_TIMEOUT * 1000)


def _set_busy_timeout(milliseconds: int) -> None:
    # On the driver's own connection: it is no query of the application.
    connection.connection.execute(f"PRAGMA busy_timeout = {milliseconds}")


class MayUseAPI(BasePermission):
    """Accounts of people who only work in the admin do not get in here by a token of theirs."""

    message = f"The account lacks the permission {USE_API}."

    def has_permission(self, request: Request, view: Any) -> bool:
        return isinstance(request.auth, AccessToken) and request.auth.may_use_api


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = "config.authentication.TokenAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
