"""The index of a search, kept right by whoever writes: in the same transaction, and on PostgreSQL
in the same statement.

Whatever stores, changes, copies or takes away a text of a session calls this.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from ..folding import call_text, folded_text, values_in
from ..jsontext import JSONText
from ..models import Message, SearchEntry, Session, ToolCall, WorkingMemoryRevision
from ..models.search import SearchKind
from ..terms import index_terms
from ..writes import insert, new_row, vendor


def index_messages(session: Session, messages: Iterable[Message]) -> None:
    """Make the entries of messages that are inserted in this transaction, by their ``text``; of
    copies of messages as of new ones. Those that were removed or superseded have none.

    On SQLite the insertion has done it (`sqlite_search`).
    """
    if vendor() == "postgresql":
        insert(_entries_of(session, messages))


def index_title(session: Session) -> None:
    """Make the entry of a session that is inserted in this transaction. On SQLite: as above."""
    if session.search_text and vendor() == "postgresql":
        insert([_entry(session, SearchKind.SESSION, session.pk, session.search_text)])


def reindex_title(session: Session) -> None:
    """Its title has changed, or its external id."""
    _remove(session, SearchKind.SESSION)
    if session.search_text:
        insert([_entry(session, SearchKind.SESSION, session.pk, session.search_text)])


def reindex_memory(session: Session, memory: JSONText) -> None:
    """The session's working memory is this document now; earlier ones are found no more."""
    if session.working_memory_version > 1:
        _remove(session, SearchKind.MEMORY)
    insert([_memory_entry(session, memory)])


def index_call(session: Session, call: ToolCall) -> None:
    """A call that is recorded by itself: those that messages make are found by these."""
    text = folded_text(call_text(call.name, call.arguments.value if call.arguments else None))
    insert([_entry(session, SearchKind.TOOL_CALL, call.id, text)])


def forget(session: Session, subject_ids: Collection[str] | QuerySet[Any, str]) -> None:
    """These messages and tool calls are found no more: they were removed, or superseded."""
    rows = SearchEntry.objects.filter(session=session, subject_id__in=subject_ids)
    rows._raw_delete(rows.db)


def index_new(
    sessions: Iterable[Session],
    messages: Iterable[Message],
    memories: Iterable[WorkingMemoryRevision],
) -> None:
    """Make the entries of many sessions that are new, and of what they begin with."""
    of = {session.pk: session for session in sessions}
    current = {each.session_id: each for each in memories}  # the last of each is the newest
    insert([_memory_entry(of[pk], each.memory) for pk, each in current.items()])
    if vendor() == "postgresql":
        titles = [
            _entry(session, SearchKind.SESSION, pk, session.search_text)
            for pk, session in of.items()
            if session.search_text
        ]
        insert([*titles, *(each for m in messages for each in _entries_of(of[m.session_id], [m]))])


def index_restored(session: Session) -> None:
    """Make the entries of what an import wrote past the functions above, by its rows."""
    for revision in session.memory_revisions.filter(version=session.working_memory_version):
        reindex_memory(session, revision.memory)
    for call in ToolCall.objects.filter(session=session, message_sequence=None).order_by("id"):
        index_call(session, call)


def copy_messages(original: Session, made: Session) -> None:
    """Make the entries of a fork's messages, which the database has copied, by their originals'.

    On SQLite the copying has done it.
    """
    if vendor() == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_COPY, {"original": original.pk, "made": made.pk})


_COPY = f"""
INSERT INTO {SearchEntry._meta.db_table} (account_id, session_id, kind, subject_id, terms)
SELECT entry.account_id, made.session_id, entry.kind, made.message_id, entry.terms
FROM {Message._meta.db_table} AS made
JOIN {Message._meta.db_table} AS original
  ON original.session_id = %(original)s AND original.sequence = made.sequence
JOIN {SearchEntry._meta.db_table} AS entry
  ON entry.session_id = %(original)s AND entry.kind = '{SearchKind.MESSAGE}'
    AND entry.subject_id = original.message_id
WHERE made.session_id = %(made)s ORDER BY made.sequence
"""  # noqa: S608 (names of ours)


def _remove(session: Session, kind: SearchKind) -> None:
    """What takes its place is a new entry: what was changed last is found first."""
    rows = SearchEntry.objects.filter(session=session, kind=kind, subject_id=session.pk)
    rows._raw_delete(rows.db)


def _memory_entry(session: Session, memory: JSONText) -> SearchEntry:
    text = folded_text("\n".join(values_in(memory.value)))
    return _entry(session, SearchKind.MEMORY, session.pk, text)


def _entries_of(session: Session, messages: Iterable[Message]) -> Sequence[SearchEntry]:
    entries = [
        _entry(session, SearchKind.MESSAGE, message.message_id, message.text)
        for message in messages
        if message.text and message.removed_at is None and message.superseded_at is None
    ]
    return [entry for entry in entries if entry.terms]  # of spaces alone nothing can be found


def _entry(session: Session, kind: SearchKind, subject_id: str, folded: str) -> SearchEntry:
    return new_row(
        SearchEntry,
        account_id=session.account_id,
        session_id=session.session_id,
        kind=kind.value,
        subject_id=subject_id,
        terms=index_terms(folded),
    )
