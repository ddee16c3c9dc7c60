"""Who does something: it decides what can be seen, and it stands in every lifecycle event."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .states import ActorType

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, User

VIEW_ALL = "sessions_app.view_all_sessions"

# A scope like an account's id, for whoever is bound to none.
EVERY_ACCOUNT: Final = object()


@dataclass(frozen=True, slots=True)
class Actor:
    """An account over the API, an operator in the admin, or the server itself.

    ``id`` is the account's user name: what a person recognises in an event years later.
    """

    type: ActorType
    id: str
    user: "User | None" = None

    @classmethod
    def account(cls, user: "User | AbstractBaseUser") -> "Actor":
        """An agent's account: it sees its own sessions only."""
        return cls(ActorType.ACCOUNT, user.get_username(), user)  # type: ignore[arg-type]

    @classmethod
    def operator(cls, user: "User | AbstractBaseUser") -> "Actor":
        """A member of staff in the admin, whose permissions the admin has checked."""
        return cls(ActorType.OPERATOR, user.get_username(), user)  # type: ignore[arg-type]

    @classmethod
    def system(cls) -> "Actor":
        """The server, settling what has lapsed."""
        return cls(ActorType.SYSTEM, "")

    @property
    def write_scope(self) -> Any:
        """The id of the account whose sessions may be written, or `EVERY_ACCOUNT`."""
        if self.type != ActorType.ACCOUNT:
            return EVERY_ACCOUNT
        return self.user and self.user.pk

    @property
    def read_scope(self) -> Any:
        """The id of the account whose sessions may be read, or `EVERY_ACCOUNT`."""
        if self.user is not None and self.user.has_perm(VIEW_ALL):
            return EVERY_ACCOUNT
        return self.write_scope
