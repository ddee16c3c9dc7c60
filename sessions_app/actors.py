"""Who does something: it decides what can be seen, and it stands in every lifecycle event."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .states import ActorType

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, User

VIEW_ALL = "sessions_app.view_all_sessions"


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
    def owns_all(self) -> bool:
        """Whether every account's sessions may be written."""
        return self.type != ActorType.ACCOUNT

    def may_read_all(self) -> bool:
        """Whether every account's sessions may be read."""
        return self.owns_all or (self.user is not None and self.user.has_perm(VIEW_ALL))
