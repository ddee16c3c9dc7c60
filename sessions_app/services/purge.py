"""Deleting for good: the tombstone at once, the rows in batches that may be interrupted.

What is purged is found by introspection, so that a table added later is purged too (report
DEL-02: deletes that left parts behind).
"""

from datetime import datetime
from typing import Any

from django.db import models

from ..models import (
    ContentRead,
    IdempotencyRecord,
    MetadataTerm,
    ReadChain,
    Session,
    SessionEvent,
)
from ..models.session import empty_object
from ..usage import Usage
from .locking import lock_awaiting_purge

# They stay with the tombstone: events and reads hold no content, the records lose their answers.
_KEPT = (SessionEvent, ContentRead, ReadChain, IdempotencyRecord, Session)

_BLANKED = (
    "external_id",
    "user_id",
    "title",
    "idle_timeout_seconds",
    "parent_session_id",
    "forked_at_sequence",
    "compaction_sequence",
    "compacted_through",
    "imported_from",
    "newest_run_id",
    "newest_run_status",
    "newest_run_deadline",
)


def blank(session: Session) -> None:
    """Take everything that the client gave out of the row; owner, agent, times and counts stay."""
    for name in _BLANKED:
        setattr(session, name, None)
    session.metadata, session.search_text, session.title_is_said = empty_object(), "", False
    session.working_memory_version = 0
    Usage().store(session)
    MetadataTerm.objects.filter(session=session).delete()
    IdempotencyRecord.objects.filter(session=session).update(answer=None, headers=None)


def purge_batch(session: Session, *, batch: int, now: datetime) -> int:
    """Remove up to ``batch`` rows of a deleted session; 0 means that it is finished.

    The tombstone is locked first: two purgers take turns, rather than wait for rows of each other
    in a circle, and the first to find nothing left says when that was.
    """
    if lock_awaiting_purge(session.pk):
        if removed := _remove(session, batch):
            return removed
        Session.objects.filter(pk=session.pk, purged_at=None).update(purged_at=now)
    session.refresh_from_db(fields=["purged_at"])
    return 0


def _remove(session: Session, batch: int) -> int:
    for model in purged_models():
        doomed = model._base_manager.filter(session=session).order_by("-pk").values("pk")[:batch]
        keys = [row["pk"] for row in doomed]
        if keys:
            _let_go(model, keys)
            rows = model._base_manager.filter(pk__in=keys)
            rows._raw_delete(rows.db)
            return len(keys)
    return 0


def _let_go(model: type[models.Model], keys: list[Any]) -> None:
    """Make no row of the table point at these any more: a later batch may hold it."""
    for field in model._meta.fields:
        if field.related_model is model:
            model._base_manager.filter(**{f"{field.name}__in": keys}).update(**{field.name: None})


def purged_models() -> list[type[models.Model]]:
    """Every table with rows of a session, those that point at others of them first."""
    found = {
        relation.related_model
        for relation in Session._meta.related_objects
        if relation.related_model not in _KEPT
    }
    return sorted(found, key=lambda model: -_links(model, found))


def _links(model: type[models.Model], others: set[type[models.Model]]) -> int:
    targets = {field.related_model for field in model._meta.fields if field.is_relation}
    return len((targets & others) - {model})
