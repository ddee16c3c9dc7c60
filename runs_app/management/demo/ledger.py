"""What each change of a session adds: a version, a time, and where it is one, an event."""

from datetime import datetime, timedelta

from django.contrib.auth.models import User

from sessions_app.chain import link
from sessions_app.models import Session, SessionEvent
from sessions_app.states import ActorType, Subject

from .rows import Ids


class Ledger:
    """A session and its events; ``now`` is how far its story has been told."""

    session: Session

    def __init__(self, *, account: User, at: datetime, ids: Ids) -> None:
        self.account, self.now, self.ids = account, at, ids
        self.events: list[SessionEvent] = []

    def wait(self, length: timedelta) -> None:
        self.now += length

    def touch(self, *, activity: bool = True, at: datetime | None = None) -> None:
        self.session.version += 1
        self.session.updated_at = at or self.now
        if activity:
            self.session.last_activity_at = self.now
        self.now = at or self.now

    def event(
        self,
        subject: Subject,
        subject_id: str,
        origin: str | None,
        to: str,
        *,
        reason: str = "",
        system: bool = False,
    ) -> None:
        self.session.event_count += 1
        event = SessionEvent(
            event_id=self.ids.new("evt", self.now),
            session_id=self.session.pk,
            sequence=self.session.event_count,
            subject=subject,
            subject_id=subject_id,
            from_status=origin,
            to_status=to,
            actor_type=ActorType.SYSTEM if system else ActorType.ACCOUNT,
            actor_id="" if system else self.account.username,
            reason=reason,
            session_version=self.session.version,
            created_at=self.now,
        )
        event.digest = self.session.event_digest = link(self.session.event_digest, event)
        self.events.append(event)
