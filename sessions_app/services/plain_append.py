"""An append that needs no decision, as most appends are: on PostgreSQL it is one statement, on
SQLite few, in a transaction that other threads may share (`sessions_app.group_commit`).

Its messages stand alone (`Draft.stands_alone`), for no run, and its session is alive, without a
deadline that has passed or a title still to be given, and in nobody's hands. The first statement
finds all that, or nothing at all is done: to wait, to settle, to decide and to refuse is up to
`messages.append`, under the lock. So nothing is stored here that would not be stored there, and the
same (`tests/races/test_plain_append.py` compares the rows).
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from itertools import chain, takewhile
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.utils import CursorWrapper
from django.db.models import Model

from ..group_commit import commit
from ..ids import new_id
from ..jsontext import JSONText
from ..models import IdempotencyRecord, Message, SearchEntry, Session
from ..models.search import SearchKind
from ..statements import insertions, stored_moment
from ..terms import index_terms
from ..usage import NO_USAGE
from ..writes import new_row
from .drafts import Draft
from .idempotency import Answer, TakenError, Write, judged, record_of, wrap_kept
from .messages import Appended
from .titles import may_name

# The first and the last of the new sequences, and the version, as text.
Kept = Callable[[Any, Any, Any], str]


def is_plain(drafts: Sequence[Draft]) -> bool:
    return all(draft.stands_alone and draft.usage is NO_USAGE for draft in drafts)


def append_plainly(
    session_id: str,
    drafts: Sequence[Draft],
    *,
    account_id: int,
    now: datetime,
    write: Write | None,
    kept: Kept,
) -> Appended | None:
    """Store plain drafts (`is_plain`), with the record of ``write``; None: nothing was done.

    ``kept`` tells what the record keeps.

    Raises:
        IdempotencyInProgress: see `once`.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.in_atomic_block:
        return None
    messages = [_message(draft, session_id, now) for draft in drafts]
    values = {
        "session_id": session_id,
        "account_id": account_id,
        "now": now,
        "count": len(drafts),
        "names": any(map(may_name, drafts)),
        "heads": len([*takewhile(lambda draft: draft.opens_session, drafts)]),
    }
    store = _at_once if connection.vendor == "postgresql" else _in_turn
    with suppress(TakenError), judged():
        taken = store(values, messages, write, kept)
        if taken is not None:
            last, version = taken
            return Appended(messages, len(messages), last_sequence=last, version=version)
    return None


def _message(draft: Draft, session_id: str, now: datetime) -> Message:
    """But for its place (`_number`)."""
    return new_row(
        Message,
        message_id=new_id("msg"),
        session_id=session_id,
        role=draft.role,
        type=draft.type,
        body=draft.body,
        size=len(draft.body),
        text=draft.text,
        created_at=now,
    )


def _number(messages: Sequence[Message], last: int, version: int) -> None:
    for sequence, message in enumerate(messages, last - len(messages) + 1):
        message.sequence, message.session_version = sequence, version


# The session may be written as it is; otherwise there is something to decide.
_IS_FREE = (
    "session_id = %(session_id)s AND account_id = %(account_id)s AND status = 'ACTIVE'"
    " AND (title IS NOT NULL OR NOT %(names)s)"
) + "".join(
    f" AND ({deadline} IS NULL OR {deadline} > %(now)s)"
    for deadline in ("expires_at", "active_run_deadline", "other_run_deadline")
)
_CHANGES = """version = version + 1, updated_at = %(now)s, last_activity_at = %(now)s,
    head_sequence =
      head_sequence + CASE WHEN head_sequence = last_sequence THEN %(heads)s ELSE 0 END,
    last_sequence = last_sequence + %(count)s, message_count = message_count + %(count)s"""


# --- PostgreSQL: one statement ---

# Stands between the values of a column: to split them takes the database a tenth of the time that
# JSON would, and an array is escaped item by item in Python. No JSON holds it, and hardly a text.
_SEPARATOR = "\x1f"


def _at_once(
    values: dict[str, Any],
    messages: Sequence[Message],
    write: Write | None,
    kept: Kept,
) -> tuple[int, int] | None:
    """Returns the session's last sequence and version."""
    columns = _columns(messages)
    if any(column.count(_SEPARATOR) >= len(messages) for column in columns.values()):
        return None
    values |= columns
    if write is not None:
        values |= {"digest": write.digest, "fingerprint": write.fingerprint}
        values["status"] = write.status
        values["kept"] = wrap_kept(kept("%1$s", "%2$s", "%3$s"))
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_statement(is_keyed=write is not None), values)
        for last, version in cursor.fetchall():
            _number(messages, last, version)
            return last, version
    return None


def _columns(messages: Sequence[Message]) -> dict[str, str]:
    columns = {
        "message_ids": [message.message_id for message in messages],
        "roles": [message.role or "" for message in messages],
        "types": [message.type for message in messages],
        "bodies": [message.body.text for message in messages],
        "sizes": [str(message.size) for message in messages],
        "texts": [message.text for message in messages],
        "terms": [index_terms(message.text) for message in messages],
    }
    return {name: _SEPARATOR.join(column) for name, column in columns.items()}


@cache
def _statement(*, is_keyed: bool) -> str:
    session, message = Session._meta.db_table, Message._meta.db_table
    entry = SearchEntry._meta.db_table
    record = f", recorded AS ({_RECORD})" if is_keyed else ""
    # Of one empty value this makes no item, hence `coalesce`; a body is never empty.
    columns = ", ".join(f"string_to_array(%({name})s, '{_SEPARATOR}')" for name in _columns([]))
    return f"""
WITH item AS (
  SELECT message_id, nullif(role, '') AS role, coalesce(type, '') AS type, body, size::bigint,
    coalesce(text, '') AS text, coalesce(terms, '')::tsvector AS terms, number
  FROM unnest({columns}) WITH ORDINALITY
    AS item(message_id, role, type, body, size, text, terms, number)
), free AS (
  SELECT 1 FROM {session} WHERE {_IS_FREE} FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
  UPDATE {session} SET {_CHANGES},
    expires_at = CASE WHEN idle_timeout_seconds IS NOT NULL THEN greatest(
      %(now)s + make_interval(secs => idle_timeout_seconds), active_run_deadline) END
  WHERE session_id = %(session_id)s AND EXISTS (SELECT 1 FROM free)
  RETURNING last_sequence, version
), stored AS (
  INSERT INTO {message} (message_id, session_id, sequence, role, type, body, size, text,
    session_version, created_at)
  SELECT message_id, %(session_id)s, taken.last_sequence - %(count)s + number, role, type, body,
    size, text, taken.version, %(now)s
  FROM taken, item
), indexed AS (
  INSERT INTO {entry} (account_id, session_id, kind, subject_id, terms)
  SELECT %(account_id)s, %(session_id)s, '{SearchKind.MESSAGE}', message_id, terms
  FROM taken, item WHERE terms <> ''
){record}
SELECT last_sequence, version FROM taken"""  # noqa: S608 (names of ours)


_RECORD = f"""
  INSERT INTO {IdempotencyRecord._meta.db_table} (digest, fingerprint, account_id, session_id,
    status_code, headers, answer, created_at)
  SELECT %(digest)s, %(fingerprint)s, %(account_id)s, %(session_id)s, %(status)s, '{{}}',
    format(%(kept)s, last_sequence - %(count)s + 1, last_sequence, version), %(now)s
  FROM taken
"""  # noqa: S608 (a name of ours)


# --- SQLite: few statements, in its turn ---


def _in_turn(
    values: dict[str, Any],
    messages: Sequence[Message],
    write: Write | None,
    kept: Kept,
) -> tuple[int, int] | None:
    """Returns the session's last sequence and version. Triggers make the entries of the search."""
    now = values["now"]
    values["now"] = stored_moment(now)
    if write is not None:
        _ = write.digest, write.fingerprint  # of a large body: computed before any lock is held

    def store(cursor: CursorWrapper) -> tuple[int, int] | None:
        cursor.execute(_FREE, values)
        if (found := cursor.fetchone()) is None:
            return None
        last, version, idle = found[0] + len(messages), found[1] + 1, found[2]
        expires_at = None if idle is None else now + timedelta(seconds=idle)
        values["idle_until"] = stored_moment(expires_at)
        cursor.execute(_TAKE, values)
        _number(messages, last, version)
        tables: list[Sequence[Model]] = [messages]
        if write is not None:
            text = kept(last - len(messages) + 1, last, version)
            tables.append([record_of(write, _answer(write, values["session_id"], text))])
        for statement in chain.from_iterable(insertions(cursor.db, rows) for rows in tables):
            cursor.execute(statement.sql, statement.values)
        return last, version

    return commit(store)


def _answer(write: Write, session_id: str, kept: str) -> Answer:
    return Answer(status=write.status, kept=JSONText(kept), session_id=session_id)


_SESSION = Session._meta.db_table
_FREE = f"""
SELECT last_sequence, version, idle_timeout_seconds FROM {_SESSION}
WHERE {_IS_FREE}"""  # noqa: S608 (names of ours)
_TAKE = f"""
UPDATE {_SESSION} SET {_CHANGES},
  expires_at = max(%(idle_until)s, coalesce(active_run_deadline, ''))
WHERE session_id = %(session_id)s"""  # noqa: S608 (a name of ours)
