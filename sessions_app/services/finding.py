"""Finding texts, and sessions, by what stands in them (`sessions_app.terms`): newest first, and
bounded however common a word is.

FTS5 walks through what matches in the order of keys, so on SQLite a page is read and no more. A GIN
index of PostgreSQL has no order: all that matches is read and sorted. So the newest entries are
looked through first, from which a common word soon fills a page; if they do not, the index is
asked, for what is then no common word. Sessions have an order of their own: where few entries
match, their sessions are sorted, and where many do, sessions are asked one after the other.
"""
# ruff: noqa: S608 (the statements are made of names of ours)

from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.lookups import GreaterThan

from ..actors import EVERY_ACCOUNT
from ..models import SearchEntry
from ..prepared import Reading
from ..querysets import SessionQuerySet
from ..sqlite_search import INDEX, MOST_MATCHES
from ..states import SessionStatus
from ..terms import Query

# So many of the newest entries are looked through before the index is asked.
LOOKED_THROUGH = 5_000

_UNDELETED = ~Q(status=SessionStatus.DELETED)
_ENTRY = SearchEntry._meta.db_table


class Found(NamedTuple):
    """One entry that matches."""

    id: int
    kind: str
    session_id: str
    subject_id: str


_COLUMNS = ", ".join(f"entry.{name}" for name in Found._fields)

# ``{scope}`` and ``{side}`` narrow the entries, ``{sessions}`` finds the entry's session if it is
# one of those that were asked for.
_ON_SQLITE = f"""SELECT {_COLUMNS}
FROM {INDEX} AS found CROSS JOIN {_ENTRY} AS entry ON entry.id = found.rowid
WHERE {INDEX} MATCH %s AND {{scope}} AND {{side}} AND EXISTS ({{sessions}})
ORDER BY found.rowid {{order}} LIMIT %s"""
_AMONG_THE_NEWEST = f"""SELECT {_COLUMNS} FROM (
    SELECT * FROM {_ENTRY} AS entry WHERE {{scope}} AND {{side}} ORDER BY id {{order}} LIMIT %s
) AS entry
WHERE terms @@ %s::tsquery AND EXISTS ({{sessions}}) ORDER BY id {{order}} LIMIT %s"""
# By a sum that no index knows, so that the order is no reason to walk through the table.
_BY_THE_INDEX = f"""SELECT {_COLUMNS} FROM {_ENTRY} AS entry
WHERE terms @@ %s::tsquery AND {{scope}} AND {{side}} AND EXISTS ({{sessions}})
ORDER BY entry.id + 0 {{order}} LIMIT %s"""


@dataclass(frozen=True, slots=True)
class Search:
    """Entries that match, of an account's sessions (`EVERY_ACCOUNT`: of all) among these."""

    query: Query
    account: Any
    sessions: SessionQuerySet

    def pages(self) -> Reading:
        return Reading(SearchEntry, ("-id",), self.read)

    def read(self, key: int | None, backward: bool, inclusive: bool, limit: int) -> list[Found]:
        """So many on one side of a key, the nearest first."""
        scope, ours = ("TRUE", []) if self.account is EVERY_ACCOUNT else _equal(self.account)
        side, place = "TRUE", []
        if key is not None:
            side = f"entry.id {'>' if backward else '<'}{'=' if inclusive else ''} %s"
            place = [key]
        sessions, theirs = _of_entry(self.sessions)
        parts = {
            "scope": scope,
            "side": side,
            "sessions": sessions,
            "order": "ASC" if backward else "DESC",
        }
        if connection.vendor == "sqlite":
            wanted = self.query.as_fts5()
            return _rows(_ON_SQLITE, parts, [wanted, *ours, *place, *theirs, limit])
        wanted, walked = self.query.as_tsquery(), [*ours, *place, LOOKED_THROUGH]
        found = _rows(_AMONG_THE_NEWEST, parts, [*walked, wanted, *theirs, limit])
        if len(found) == limit:
            return found
        return _rows(_BY_THE_INDEX, parts, [wanted, *ours, *place, *theirs, limit])


def are_many(query: Query, account: Any) -> bool:
    """Whether more entries match than are worth sorting."""
    if connection.vendor == "sqlite":
        rows, values = f"SELECT 1 FROM {INDEX} WHERE {INDEX} MATCH %s", [query.as_fts5()]
    else:
        scope, ours = ("TRUE", []) if account is EVERY_ACCOUNT else _equal(account)
        rows = f"SELECT 1 FROM {_ENTRY} AS entry WHERE terms @@ %s::tsquery AND {scope}"
        values = [query.as_tsquery(), *ours]
    limited = f"SELECT count(*) FROM ({rows} LIMIT {MOST_MATCHES + 1}) AS matching"
    with connection.cursor() as cursor:
        cursor.execute(limited, values)
        return bool(cursor.fetchone()[0] > MOST_MATCHES)


def for_database(query: Query) -> str:
    """As the lookups of `fields.TermsField` take it."""
    return query.as_tsquery() if connection.vendor == "postgresql" else query.as_fts5()


def mentioned(wanted: Any, *, many: bool) -> Q:
    """Sessions that have a text which matches; what was deleted is found no more, though its
    entries may still be there."""
    if not many:
        return _UNDELETED & Q(pk__in=_matching(wanted).values("session"))
    own = SearchEntry.objects.filter(session=OuterRef("pk"), terms__match_each=wanted)
    # Compared, not asked whether it exists: PostgreSQL would look for all of them at once.
    return _UNDELETED & Q(GreaterThan(Subquery(own.values("id")[:1]), 0))


def mentioned_lately(query: Query) -> Q:
    """Those in the newest `MOST_MATCHES` texts that match, of all accounts."""
    newest = _matching(for_database(query)).order_by("-id")[:MOST_MATCHES]
    return _UNDELETED & Q(pk__in=newest.values("session"))


def _matching(wanted: Any) -> QuerySet[SearchEntry]:
    return SearchEntry.objects.filter(terms__match=wanted)


def _equal(account: Any) -> tuple[str, list[Any]]:
    return "entry.account_id = %s", [account]


def _of_entry(sessions: SessionQuerySet) -> tuple[str, tuple[Any, ...]]:
    own = sessions.filter(pk=RawSQL("entry.session_id", [])).order_by().values("pk")
    return own.query.sql_with_params()


def _rows(statement: str, parts: dict[str, str], values: list[Any]) -> list[Found]:
    with connection.cursor() as cursor:
        cursor.execute(statement.format(**parts), values)
        return [*map(Found._make, cursor.fetchall())]
