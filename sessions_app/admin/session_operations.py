"""Close, expire, resume and delete a session; `runs_app.admin` adds what this does to its runs."""

from collections.abc import Sequence
from datetime import datetime

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from ..actors import Actor
from ..models import Session
from ..services import SessionManager
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
    to_calls = ngettext_lazy(
        "%(count)d open tool call will be cancelled.",
        "%(count)d open tool calls will be cancelled.",
        "count",
    )

    def fate(self, obj: Session, *, now: datetime) -> Fate:
        status = status_of(obj, now=now)
        if status in self.leaves:
            return Fate(True)
        return Fate(False, _ALREADY[status] if status == self.to else _CANNOT[status])

    def consequences(self, objects: Sequence[Session], *, now: datetime) -> list[str]:
        active = [each for each in objects if status_of(each, now=now) == SessionStatus.ACTIVE]
        return say((self.to_calls, sum(each.open_tool_call_count for each in active)))


class Close(SessionOperation):
    name, permission = "close", "sessions_app.close_session"
    becomes = _("Will be closed")
    label, action = _("Close session"), _("Close the selected sessions")
    note = _("Everything is kept. A closed session takes no more messages until it is resumed.")
    leaves, to = frozenset({SessionStatus.ACTIVE}), SessionStatus.CLOSED
    will = ngettext_lazy(
        "%(count)d session will be closed.", "%(count)d sessions will be closed.", "count"
    )
    did = ngettext_lazy("%(count)d session was closed.", "%(count)d sessions were closed.", "count")

    def perform(self, actor: Actor, obj: Session, *, reason: str) -> bool:
        return SessionManager(actor).close(session_id=obj.pk, reason=reason)[1]


class Expire(SessionOperation):
    name, permission = "expire", "sessions_app.expire_session"
    becomes = _("Will expire")
    label, action = _("Expire session"), _("Expire the selected sessions")
    note = _("Everything is kept. An expired session takes no more messages until it is resumed.")
    leaves, to = frozenset({SessionStatus.ACTIVE}), SessionStatus.EXPIRED
    will = ngettext_lazy(
        "%(count)d session will expire.", "%(count)d sessions will expire.", "count"
    )
    did = ngettext_lazy(
        "%(count)d session has expired.", "%(count)d sessions have expired.", "count"
    )
    to_calls = ngettext_lazy(
        "%(count)d open tool call stays open.", "%(count)d open tool calls stay open.", "count"
    )

    def perform(self, actor: Actor, obj: Session, *, reason: str) -> bool:
        return SessionManager(actor).expire(session_id=obj.pk, reason=reason)[1]


class Resume(SessionOperation):
    name, permission = "resume", "sessions_app.resume_session"
    becomes = _("Will be resumed")
    label, action = _("Resume session"), _("Resume the selected sessions")
    note = _("A resumed session takes messages again. Runs that have ended stay as they are.")
    leaves = frozenset({SessionStatus.CLOSED, SessionStatus.EXPIRED})
    to = SessionStatus.ACTIVE
    will = ngettext_lazy(
        "%(count)d session will be resumed.", "%(count)d sessions will be resumed.", "count"
    )
    did = ngettext_lazy(
        "%(count)d session was resumed.", "%(count)d sessions were resumed.", "count"
    )

    def perform(self, actor: Actor, obj: Session, *, reason: str) -> bool:
        return SessionManager(actor).resume(session_id=obj.pk, reason=reason)[1] is not None


class Delete(SessionOperation):
    # "delete" is the name of Django's own page, which nobody may open.
    name, permission = "remove", "sessions_app.delete_session"
    becomes = _("Will be deleted for good")
    label, action = _("Delete session"), _("Delete the selected sessions")
    note = _(
        "This cannot be undone: nobody can bring a deleted session back. Closing ends a session "
        "too, keeps everything, and can be undone."
    )
    irreversible = True
    leaves = frozenset({SessionStatus.ACTIVE, SessionStatus.CLOSED, SessionStatus.EXPIRED})
    to = SessionStatus.DELETED
    will = ngettext_lazy(
        "%(count)d session will be deleted for good.",
        "%(count)d sessions will be deleted for good.",
        "count",
    )
    did = ngettext_lazy(
        "%(count)d session was deleted.", "%(count)d sessions were deleted.", "count"
    )

    def consequences(self, objects: Sequence[Session], *, now: datetime) -> list[str]:
        lost = [
            (text, sum(getattr(each, name) for each in objects)) for name, text in _LOST.items()
        ]
        return [*super().consequences(objects, now=now), *say(*lost)]

    def perform(self, actor: Actor, obj: Session, *, reason: str) -> bool:
        SessionManager(actor).delete(session_id=obj.pk, reason=reason)
        return True


def say(*counted: tuple[Promise, int]) -> list[str]:
    """Plurals with their numbers; what is none is not worth a word."""
    return [str(text % {"count": count}) for text, count in counted if count]
