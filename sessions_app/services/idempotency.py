"""Do a write once per ``Idempotency-Key``, and answer its repetitions with the first result.

The record is the write's last statement, and its unique key the judge: of two duplicates
one commits, and the other, at its record or before it, finds that one's and takes everything back
(report DUP-01). Nearly every key is new, so nothing is looked up before the work.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import orjson
from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, OperationalError
from django.utils import timezone
from django.utils.functional import cached_property

from ..errors import (
    DatabaseBusy,
    DossierError,
    IdempotencyInProgress,
    IdempotencyKeyReused,
)
from ..jsontext import JSONText
from ..models import IdempotencyRecord
from ..states import SessionStatus
from ..writes import insert, new_row
from .locking import deleted, write_transaction

# Each further attempt needs yet another writer that failed, or a record that lapsed, meanwhile.
_ATTEMPTS = 5
_BODY, _KEPT = '{"body":', '{"kept":'


@dataclass(frozen=True, kw_only=True)
class Write:
    """A keyed request: what makes it the same one, and what makes it the same *request*."""

    account: User
    method: str
    path: str
    key: str
    query: Sequence[tuple[str, Sequence[str]]] = ()
    body: Any = None
    # Of the answer, where it is recorded before it is made (`plain_append`).
    status: int = 201
    # The DELETE of a session is still answered when the session is gone.
    outlives_session: bool = False

    # Django's `cached_property`: that of Python 3.11 takes a lock.
    @cached_property
    def digest(self) -> str:
        # No key holds a NUL, so that what stands behind the last one is the key.
        parts = (str(self.account.pk), self.method, self.path.rstrip("/"), self.key)
        return sha256("\0".join(parts).encode()).hexdigest()

    @cached_property
    def fingerprint(self) -> str:
        return sha256(_canonical([sorted(self.query), self.body])).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A 2xx result: its body, or the little (``kept``) from which it can be made again."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: JSONText | None = None
    kept: JSONText | None = None
    session_id: str | None = None


class TakenError(Exception):
    """Another transaction's record stands under this digest."""


def once(
    write: Write, work: Callable[[], Answer | None], *, reads_nothing: bool = False
) -> Answer | None:
    """Call ``work`` in one transaction with its record, or return what an earlier call answered.

    None means that ``work`` ran now. ``work`` returns None for a result that is not to be
    recorded. ``reads_nothing``: see `write_transaction`.

    Raises:
        IdempotencyKeyReused: the key stands for another request.
        IdempotencyInProgress: the first request holds the key longer than a lock may be waited for.
        SessionDeleted: the answer went with its session.
    """
    _ = write.digest, write.fingerprint  # of a large body: computed before any lock is held
    for _ in range(_ATTEMPTS):
        try:
            with judged(), write_transaction(reads_nothing=reads_nothing):
                if (answer := work()) is not None:
                    insert([record_of(write, answer)])
        except (DossierError, TakenError) as error:
            # Of a refusal, too: what the first one did may be the reason.
            if (found := _recorded(write)) is not None:
                return found
            if isinstance(error, DossierError):
                raise
        else:
            return None
    raise DatabaseBusy("Too many requests with this key fail at the same time.")


@contextmanager
def judged() -> Iterator[None]:
    """Tell what it means that a record could not be inserted.

    Raises:
        TakenError, IdempotencyInProgress: another transaction's stands there, or may soon.
    """
    try:
        yield
    except (IntegrityError, OperationalError) as error:
        if IdempotencyRecord._meta.db_table not in str(error):
            raise
        if isinstance(error, IntegrityError):
            raise TakenError from error
        # Not committed yet, and longer than a lock is waited for.
        raise IdempotencyInProgress("A request with this key is being worked on.") from error


def record_of(write: Write, answer: Answer) -> IdempotencyRecord:
    return new_row(
        IdempotencyRecord,
        digest=write.digest,
        fingerprint=write.fingerprint,
        account_id=write.account.pk,
        session_id=answer.session_id,
        status_code=answer.status,
        headers=JSONText(orjson.dumps(answer.headers).decode()),
        answer=_wrapped(answer),
        created_at=timezone.now(),
    )


def _wrapped(answer: Answer) -> JSONText | None:
    """The body as it was rendered, not parsed and written anew, under a name that tells which."""
    if answer.kept is not None:
        return JSONText(wrap_kept(answer.kept.text))
    return None if answer.body is None else JSONText(f"{_BODY}{answer.body.text}}}")


def wrap_kept(text: str) -> str:
    return f"{_KEPT}{text}}}"


def _recorded(write: Write) -> Answer | None:
    """The recorded answer; None when there is none (any more), so that the write may be done."""
    record = IdempotencyRecord.objects.select_related("session").filter(pk=write.digest).first()
    if record is None or _forgot_lapsed(record):
        return None
    if record.fingerprint != write.fingerprint:
        raise IdempotencyKeyReused("This key came with another query or body.")
    session = record.session
    if session and session.status == SessionStatus.DELETED and not write.outlives_session:
        raise deleted(session)
    return _unwrapped(record)


def _forgot_lapsed(record: IdempotencyRecord) -> bool:
    if record.created_at > _horizon():
        return False
    # By its time too: a duplicate may have replaced it meanwhile.
    IdempotencyRecord.objects.filter(pk=record.pk, created_at=record.created_at).delete()
    return True


def _horizon() -> datetime:
    return timezone.now() - timedelta(hours=settings.IDEMPOTENCY_TTL_HOURS)


def _unwrapped(record: IdempotencyRecord) -> Answer:
    text = record.answer.text if record.answer else ""
    inner = JSONText(text[len(_BODY) : -1]) if text else None
    kept = text.startswith(_KEPT)
    return Answer(
        status=record.status_code or 0,
        headers=record.headers.value if record.headers else {},
        body=None if kept else inner,
        kept=inner if kept else None,
        session_id=record.session_id,
    )


def _canonical(value: Any) -> bytes:
    """JSON in which the order of keys makes no difference, but each digit of a number does."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # integers of more than 64 bits, deep nesting
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
