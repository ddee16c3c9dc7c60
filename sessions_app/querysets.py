"""Reads. Each rule about what is seen, and as what, stands here once."""

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import Q, QuerySet

from .actors import Actor
from .states import OPEN_TOOL_CALLS, SessionStatus

if TYPE_CHECKING:
    from .models import Message, Session, ToolCall  # noqa: F401  named in the bases below


def scope(actor: Actor, *, path: str = "") -> Q:
    """What the actor may write: the one place where a row is tied to its account.

    ``path`` leads from the row to its session (``"session__"``).
    Source: report SEC-01 (sub-resources that forgot to check the owner).
    """
    return Q() if actor.owns_all else Q(**{f"{path}account": actor.user})


def readable(actor: Actor, *, path: str = "") -> Q:
    """What the actor may read: the same, or everything with ``view_all_sessions``."""
    return Q() if actor.may_read_all() else scope(actor, path=path)


class SessionQuerySet(QuerySet["Session"]):
    def writable_by(self, actor: Actor) -> "SessionQuerySet":
        return self.filter(scope(actor))

    def readable_by(self, actor: Actor) -> "SessionQuerySet":
        return self.filter(readable(actor))

    def with_status(self, statuses: Collection[str], *, now: datetime) -> "SessionQuerySet":
        """Sessions whose *effective* status is one of these (expiry is evaluated here)."""
        lapsed = Q(status=SessionStatus.ACTIVE, expires_at__lte=now)
        wanted = Q(status__in=[s for s in statuses if s != SessionStatus.ACTIVE])
        if SessionStatus.ACTIVE in statuses:
            alive = Q(expires_at__isnull=True) | Q(expires_at__gt=now)
            wanted |= Q(status=SessionStatus.ACTIVE) & alive
        if SessionStatus.EXPIRED in statuses:
            wanted |= lapsed
        return self.filter(wanted)

    def due(self, *, now: datetime) -> "SessionQuerySet":
        """Sessions in which a deadline has passed that nobody has settled yet."""
        return self.filter(
            Q(expires_at__lte=now)
            | Q(active_run_deadline__lte=now)
            | Q(other_run_deadline__lte=now),
            status=SessionStatus.ACTIVE,
        )

    def awaiting_purge(self) -> "SessionQuerySet":
        """Tombstones some of whose rows are still there."""
        return self.filter(status=SessionStatus.DELETED, purged_at__isnull=True)


class MessageQuerySet(QuerySet["Message"]):
    def live(self) -> "MessageQuerySet":
        """What lists and context show: neither removed nor superseded."""
        return self.filter(removed_at__isnull=True, superseded_at__isnull=True)


class ToolCallQuerySet(QuerySet["ToolCall"]):
    def readable_by(self, actor: Actor) -> "ToolCallQuerySet":
        """Calls of sessions that the actor may read; a deleted session has none."""
        living = self.exclude(session__status=SessionStatus.DELETED)
        return living.filter(readable(actor, path="session__"))

    def open(self) -> "ToolCallQuerySet":
        """Calls that somebody still waits for."""
        return self.filter(status__in=OPEN_TOOL_CALLS)

    def unanswered_in_chat(self, tool_call_ids: Collection[str]) -> "ToolCallQuerySet":
        """Calls that a message made and no message answered, in the order results answer them.

        Source: lifecycle page, "Tool call": the first unanswered call with that id in the newest
        message that has one. Ids are not unique (report PAIR-06).
        """
        return self.filter(
            tool_call_id__in=tool_call_ids,
            message_sequence__isnull=False,
            result_sequence__isnull=True,
        ).order_by("-message_sequence", "id")
