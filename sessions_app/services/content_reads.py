"""Who read what: written down before content is shown."""

from datetime import datetime, timedelta

from django.utils import timezone

from ..actors import Actor
from ..models import ContentRead
from ..states import ContentPage

ONE_VISIT = timedelta(minutes=5)


def record_read(
    *, actor: Actor, session_id: str, page: ContentPage, now: datetime | None = None
) -> bool:
    """Write down that the actor reads this page of the session; tell whether that was news.

    A page that is loaded again, or refreshes itself, is one visit for a few minutes. Two loads at
    the same moment may both be written: nothing is lost by that, and no lock is held for it.
    """
    now = now or timezone.now()
    known = ContentRead.objects.filter(
        session_id=session_id, reader=actor.id, page=page, read_at__gt=now - ONE_VISIT
    )
    if known.exists():
        return False
    ContentRead.objects.create(session_id=session_id, reader=actor.id, page=page, read_at=now)
    return True
