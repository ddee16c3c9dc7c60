"""Close, expire, resume and delete a session; `runs_app.admin` adds what this does to its runs."""

from collections.abc import Sequence
from datetime import datetime

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from ..actors import Actor
from ..models import Session
from ..querysets import SessionQuerySet
from ..services.decisions import DECISIONS, bring
from ..states import SessionStatus, effective_status
from .operations import Fate, Operation, Promise

_ALREADY: dict[SessionStatus, Promise] = {
    SessionStatus.ACTIVE: _("active already"),
    SessionStatus.CLOSED: _("closed already"),
    SessionStatus.EXPIRED: _("expired already"),
    SessionStatus.DELETED: _("deleted already"),
}
_CANNOT: dict[SessionStatus, Promise] = {
    SessionStatus.CLOSED: _("closed; it can only be resumed or deleted"),
    SessionStatus.EXPIRED: _("expired; it can only be resumed or deleted"),
    SessionStatus.DELETED: _("deleted already"),
}
# What a deletion takes away, by the counters of the session's row.
_LOST = {
    "message_count": ngettext_lazy(
        "%(count)d message will be removed.", "%(count)d messages will be removed.", "count"
    ),
    "tool_call_count": ngettext_lazy(
        "%(count)d tool call will be removed.", "%(count)d tool calls will be removed.", "count"
    ),
    "run_count": ngettext_lazy(
        "%(count)d run will be removed.", "%(count)d runs will be removed.", "count"
    ),
    "working_memory_version": ngettext_lazy(
        "%(count)d working memory revision will be removed.",
        "%(count)d working memory revisions will be removed.",
        "count",
    ),
}


def status_of(session: Session, *, now: datetime) -> SessionStatus:
    return effective_status(session.status, expires_at=session.expires_at, now=now)


class SessionOperation(Operation):
    """``leaves`` are the statuses from which it changes anything; ``to`` is where it leads."""

    leaves: frozenset[SessionStatus]
    to: SessionStatus
    of_all: Promise
    """For all that match: on the button, and above what has become of them."""
    to_calls = ngettext_lazy(
        "%(count)d open tool call will be cancelled.",
        "%(count)d open tool calls will be cancelled.",
        "count",
    )

    def fate(self, obj: Session, *, now: datetime) -> Fate:
        return self.fate_of(status_of(obj, now=now))

    def fate_of(self, status: SessionStatus) -> Fate:
        if status in self.leaves:
            return Fate(True)
        return Fate(False, _ALREADY[status] if status == self.to else _CANNOT[status])

    def consequences(self, objects: Sequence[Session], *, now: datetime) -> list[str]:
        return self.effects(Session.objects.filter(pk__in=[obj.pk for obj in objects]), now=now)

    def perform(self, actor: Actor, obj: Session, *, reason: str) -> bool:
        return bring(actor, obj.pk, to=self.to, reason=reason)

    def effects(self, sessions: SessionQuerySet, *, now: datetime) -> list[str]:
        """What changes beside these sessions, all of which change."""
        active = sessions.with_status([SessionStatus.ACTIVE], now=now)
        return say((self.to_calls, active.total("open_tool_call_count")["open_tool_call_count"]))


class Close(SessionOperation):
    name, permission = "close", DECISIONS[SessionStatus.CLOSED].permission
    becomes = _("Will be closed")
    label, action = _("Close session"), _("Close the selected sessions")
    note = _("Everything is kept. A closed session takes no more messages until it is resumed.")
    leaves, to = frozenset({SessionStatus.ACTIVE}), SessionStatus.CLOSED
    of_all = _("Close sessions")
    will = ngettext_lazy(
        "%(count)d session will be closed.", "%(count)d sessions will be closed.", "count"
    )
    did = ngettext_lazy("%(count)d session was closed.", "%(count)d sessions were closed.", "count")


class Expire(SessionOperation):
    name, permission = "expire", DECISIONS[SessionStatus.EXPIRED].permission
    becomes = _("Will expire")
    label, action = _("Expire session"), _("Expire the selected sessions")
    note = _("Everything is kept. An expired session takes no more messages until it is resumed.")
    leaves, to = frozenset({SessionStatus.ACTIVE}), SessionStatus.EXPIRED
    of_all = _("Expire sessions")
    will = ngettext_lazy(
        "%(count)d session will expire.", "%(count)d sessions will expire.", "count"
    )
    did = ngettext_lazy(
        "%(count)d session has expired.", "%(count)d sessions have expired.", "count"
    )
    to_calls = ngettext_lazy(
        "%(count)d open tool call stays open.", "%(count)d open tool calls stay open.", "count"
    )


class Resume(SessionOperation):
    name, permission = "resume", DECISIONS[SessionStatus.ACTIVE].permission
    becomes = _("Will be resumed")
    label, action = _("Resume session"), _("Resume the selected sessions")
    note = _("A resumed session takes messages again. Runs that have ended stay as they are.")
    leaves = frozenset({SessionStatus.CLOSED, SessionStatus.EXPIRED})
    to = SessionStatus.ACTIVE
    of_all = _("Resume sessions")
    will = ngettext_lazy(
        "%(count)d session will be resumed.", "%(count)d sessions will be resumed.", "count"
    )
    did = ngettext_lazy(
        "%(count)d session was resumed.", "%(count)d sessions were resumed.", "count"
    )


class Delete(SessionOperation):
    # "delete" is the name of Django's own page, which nobody may open.
    name, permission = "remove", DECISIONS[SessionStatus.DELETED].permission
    becomes = _("Will be deleted for good")
    label, action = _("Delete session"), _("Delete the selected sessions")
    note = _(
        "This cannot be undone: nobody can bring a deleted session back. Closing ends a session "
        "too, keeps everything, and can be undone."
    )
    irreversible = True
    leaves = frozenset({SessionStatus.ACTIVE, SessionStatus.CLOSED, SessionStatus.EXPIRED})
    to = SessionStatus.DELETED
    of_all = _("Delete sessions")
    will = ngettext_lazy(
        "%(count)d session will be deleted for good.",
        "%(count)d sessions will be deleted for good.",
        "count",
    )
    did = ngettext_lazy(
        "%(count)d session was deleted.", "%(count)d sessions were deleted.", "count"
    )

    def effects(self, sessions: SessionQuerySet, *, now: datetime) -> list[str]:
        lost = sessions.total(*_LOST)
        return [
            *super().effects(sessions, now=now),
            *say(*((text, lost[name]) for name, text in _LOST.items())),
        ]


OPERATIONS: dict[SessionStatus, type[SessionOperation]] = {
    each.to: each for each in (Close, Expire, Resume, Delete)
}


def say(*counted: tuple[Promise, int]) -> list[str]:
    """Plurals with their numbers; what is none is not worth a word."""
    return [str(text % {"count": count}) for text, count in counted if count]
