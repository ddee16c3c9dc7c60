"""The column types in which client JSON, and the terms of a search, are stored."""

from typing import Any

from django.db import models

from .jsontext import JSONText
from .sqlite_search import INDEX, MOST_MATCHES


class JSONTextField(models.TextField):
    """JSON stored as its text, read as `JSONText`.

    Not ``jsonb``: that reorders keys and rewrites numbers, and what a client sent must come back
    as it was (contract, "Values survive").
    """

    # For the type checker's Django plugin: what the attribute takes and gives.
    _pyi_private_set_type: JSONText  # type: ignore[assignment]
    _pyi_private_get_type: JSONText  # type: ignore[assignment]

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> JSONText | None:
        return None if value is None else JSONText(value)

    def to_python(self, value: Any) -> JSONText | None:
        return None if value is None else JSONText.of(value)

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else JSONText.of(value).text

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""


class TermsField(models.TextField):
    """What a row is found by: terms with a space between them (`sessions_app.terms`), in PostgreSQL
    as a tsvector. Lookups take what a `Query` makes for the database.

    On SQLite the terms are looked up in a table of their own, whose rows have the same keys.
    """

    def db_type(self, connection: Any) -> str | None:
        return "tsvector" if connection.vendor == "postgresql" else super().db_type(connection)

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        return "%s::tsvector" if connection.vendor == "postgresql" else "%s"


@TermsField.register_lookup
class MatchLookup(models.Lookup):
    """Of few rows that match: the index is asked for all, on SQLite for the newest so many."""

    lookup_name, prepare_rhs = "match", False
    on_sqlite = (
        "{table}.id IN (SELECT rowid FROM {index} WHERE {index} MATCH {query} "
        "ORDER BY rowid DESC LIMIT {most})"
    )

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        query, values = self.process_rhs(compiler, connection)
        column, others = self.process_lhs(compiler, connection)
        if connection.vendor == "postgresql":
            return f"{column} @@ {query}::tsquery", [*others, *values]
        table = compiler.quote_name_unless_alias(self.lhs.alias)
        return self.on_sqlite.format(index=INDEX, table=table, query=query, most=MOST_MATCHES), [
            *values
        ]


@TermsField.register_lookup
class MatchEachLookup(MatchLookup):
    """Of rows that are known by something else: the index is asked for each by itself."""

    lookup_name = "match_each"
    on_sqlite = "EXISTS (SELECT 1 FROM {index} WHERE {index} MATCH {query} AND rowid = {table}.id)"
