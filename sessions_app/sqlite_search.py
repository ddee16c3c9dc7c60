"""What SQLite needs to find by terms: an FTS5 table, and triggers that keep it right.

The table keeps no text: its rows are those of the entries (`models.search`), by the same keys, and
whatever changes an entry changes it. Two more triggers make the entries of new messages and
sessions out of their folded text: a statement less in every append. They call a function of ours,
so rows are inserted through a connection of this program only.
"""
# ruff: noqa: S608 (the statements are made of names of ours)

from typing import Any

from .terms import index_terms

INDEX = "sessions_app_search"
# Of so many texts at most, the newest, their sessions are put in order.
MOST_MATCHES = 10_000
_ENTRY = "sessions_app_searchentry"
_FUNCTION = "dossier_terms"

# The terms hold letters, digits and characters beyond ASCII only: the tokenizer parts them at
# their spaces, and folds nothing. Where in a text a term stands is not kept.
_TABLE = f"""
CREATE VIRTUAL TABLE IF NOT EXISTS {INDEX} USING fts5(
    terms, content='{_ENTRY}', content_rowid='id', tokenize='ascii', detail=none, columnsize=0
)"""

_FORGET = f"INSERT INTO {INDEX}({INDEX}, rowid, terms) VALUES ('delete', old.id, old.terms);"
_LEARN = f"INSERT INTO {INDEX}(rowid, terms) VALUES (new.id, new.terms);"


def _entry(kind: str, account: str, subject: str, text: str) -> str:
    """It must find the account: an entry that nobody owns would never be found."""
    return (
        f"INSERT INTO {_ENTRY}(account_id, session_id, kind, subject_id, terms) VALUES "
        f"({account}, new.session_id, '{kind}', new.{subject}, {_FUNCTION}(new.{text}));"
    )


_ACCOUNT = "(SELECT account_id FROM sessions_app_session WHERE session_id = new.session_id)"
_OF_MESSAGE = _entry("message", _ACCOUNT, "message_id", "text")
_OF_SESSION = _entry("session", "new.account_id", "session_id", "search_text")
_IS_LIVE = "new.text <> '' AND new.removed_at IS NULL AND new.superseded_at IS NULL"
_TRIGGERS = {
    "search_entry_added": f"INSERT ON {_ENTRY} BEGIN {_LEARN} END",
    "search_entry_removed": f"DELETE ON {_ENTRY} BEGIN {_FORGET} END",
    "search_entry_changed": f"UPDATE OF terms ON {_ENTRY} BEGIN {_FORGET} {_LEARN} END",
    "search_message_added": (
        f"INSERT ON sessions_app_message WHEN {_IS_LIVE} BEGIN {_OF_MESSAGE} END"
    ),
    "search_session_added": (
        f"INSERT ON sessions_app_session WHEN new.search_text <> '' BEGIN {_OF_SESSION} END"
    ),
}


def install(connection: Any) -> None:
    """Make what is missing. A migration that makes one of these tables anew drops its triggers, so
    this is called after every `migrate`."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLE)
        for name, body in _TRIGGERS.items():
            cursor.execute(f"CREATE TRIGGER IF NOT EXISTS {name} AFTER {body}")


def remove_triggers(connection: Any) -> None:
    """Before a migration that makes one of these tables anew: SQLite refuses to put a table in its
    place while a trigger names it."""
    with connection.cursor() as cursor:
        for name in _TRIGGERS:
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}")


def add_function(connection: Any) -> None:
    """Let a new connection make terms."""
    connection.connection.create_function(_FUNCTION, 1, index_terms, deterministic=True)
