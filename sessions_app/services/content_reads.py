"""Who read what: written down before content is shown."""

from datetime import datetime, timedelta

from django.utils import timezone

from ..actors import EVERY_ACCOUNT, Actor
from ..chain import link
from ..models import ContentRead, Session
from ..states import ContentPage
from .locking import lock_read_chain, write_transaction

ONE_VISIT = timedelta(minutes=5)


def record_read(
    *, actor: Actor, session_id: str, page: ContentPage, now: datetime | None = None
) -> bool:
    """Write down that the actor reads this page of the session; tell whether that was news.

    A page that is loaded again, or refreshes itself, is one visit for a few minutes. Two loads at
    the same moment may both be written: nothing is lost by that. Who reads waits for nobody but who
    reads the same session at this moment.
    """
    now = now or timezone.now()
    known = ContentRead.objects.filter(
        session_id=session_id, reader=actor.id, page=page, read_at__gt=now - ONE_VISIT
    )
    if known.exists():
        return False
    with write_transaction():
        _append(ContentRead(session_id=session_id, reader=actor.id, page=page.value, read_at=now))
    return True


def record_read_of_others(*, actor: Actor, session_id: str) -> None:
    """Write down that the actor reads the session over the API, if it is another account's."""
    if actor.read_scope is not EVERY_ACCOUNT:
        return
    if Session.objects.filter(pk=session_id).exclude(account=actor.write_scope).exists():
        record_read(actor=actor, session_id=session_id, page=ContentPage.API)


def _append(read: ContentRead) -> None:
    chain = lock_read_chain(read.session_id)
    chain.count += 1
    read.sequence = chain.count
    read.digest = chain.digest = link(chain.digest, read)
    read.save(force_insert=True)
    chain.save(force_update=True)
