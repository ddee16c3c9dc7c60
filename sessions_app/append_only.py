"""Triggers by which the database refuses to change or to delete what happened, whoever asks: this
program, a superuser in the admin, a shell.

Who owns the tables can take the triggers away; that shows in the chain (`chain`).
"""

from typing import Any

TABLES = ("sessions_app_sessionevent", "sessions_app_contentread")

_FUNCTION = """
CREATE OR REPLACE FUNCTION dossier_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$"""


def installing(vendor: str) -> list[str]:
    """The statements that make what is missing."""
    if vendor == "postgresql":
        return [_FUNCTION, *map(_on_postgresql, TABLES)]
    return [
        f"CREATE TRIGGER IF NOT EXISTS {_name(table, verb)} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        for table in TABLES
        for verb in ("UPDATE", "DELETE")
    ]


def removing(vendor: str) -> list[str]:
    """The statements of a migration that must change these rows, and installs the triggers
    again."""
    if vendor == "postgresql":
        return [f"DROP TRIGGER IF EXISTS append_only ON {table}" for table in TABLES]
    names = (_name(table, verb) for table in TABLES for verb in ("UPDATE", "DELETE"))
    return [f"DROP TRIGGER IF EXISTS {name}" for name in names]


def install(connection: Any) -> None:
    """On SQLite a migration that makes a table anew drops its triggers, so this is called after
    every `migrate`."""
    with connection.cursor() as cursor:
        for statement in installing(connection.vendor):
            cursor.execute(statement)


def _on_postgresql(table: str) -> str:
    return (
        f"CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION dossier_append_only()"
    )


def _name(table: str, verb: str) -> str:
    return f"{table}_no_{verb.lower()}"
