"""Rows that wait on disk: a session that is imported may be larger than memory."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from django.db.models import DateTimeField, Model

from sessions_app.errors import InvalidRequest
from sessions_app.fields import JSONTextField
from sessions_app.ids import new_id
from sessions_app.jsontext import JSONText
from sessions_app.writes import new_row

Row = TypeVar("Row", bound=Model)


class Scratch:
    """A database of SQLite's own temporary kind, which goes with its connection: rows of models,
    each with the line that it came from, and the new ids of the old ones."""

    def __init__(self, *models: type[Model]) -> None:
        # "" is a file without a name, which is filled where the cache does not hold it all.
        self._database = sqlite3.connect("", isolation_level=None)
        self.execute("PRAGMA journal_mode = OFF")
        self.execute("PRAGMA synchronous = OFF")
        self.execute("CREATE TABLE ids (old TEXT PRIMARY KEY, new TEXT) WITHOUT ROWID")
        for model in models:
            columns = ", ".join(f'"{name}"' for name in _names(model))
            self.execute(f"CREATE TABLE {_table(model)} (line INTEGER PRIMARY KEY, {columns})")
        self.execute("BEGIN")

    def close(self) -> None:
        self._database.close()

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._database.execute(sql, values)

    def first(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first row, or None."""
        with closing(self.execute(sql, values)) as cursor:
            return cursor.fetchone()

    # --- ids ---

    def rename(self, old: str, pointer: str) -> str:
        """The new id of something; ids are given in the order in which they are asked for.

        Raises:
            InvalidRequest: it stands in the file twice.
        """
        new = new_id(old.partition("_")[0])
        try:
            self.execute("INSERT INTO ids VALUES (?, ?)", (old, new))
        except sqlite3.IntegrityError as error:
            raise InvalidRequest.at(pointer, f"{old} stands in the file twice") from error
        return new

    def renamed(self, old: str | None) -> str | None:
        """The new id of something that was renamed before; None for None, and for nothing."""
        found = old and self.first("SELECT new FROM ids WHERE old = ?", (old,))
        return found[0] if found else None

    # --- rows ---

    def add(self, line: int, row: Model) -> None:
        names = _names(type(row))
        places = ", ".join("?" * (len(names) + 1))
        values = [_stored(getattr(row, name)) for name in names]
        into = f"INSERT INTO {_table(type(row))} VALUES ({places})"  # noqa: S608 (names of ours)
        self.execute(into, (line, *values))

    def rows(self, model: type[Row]) -> Iterator[Row]:
        """In the order of their lines."""
        names, times, texts = _names(model), _of(model, DateTimeField), _of(model, JSONTextField)
        rows = f"SELECT * FROM {_table(model)} ORDER BY line"  # noqa: S608 (a name of ours)
        with closing(self.execute(rows)) as cursor:
            for _, *values in cursor:
                given = dict(zip(names, values, strict=True))
                for name in times:
                    given[name] = given[name] and datetime.fromisoformat(given[name])
                for name in texts:
                    given[name] = None if given[name] is None else JSONText(given[name])
                yield new_row(model, **given)


def _table(model: type[Model]) -> str:
    return f'"{model._meta.model_name}"'


@cache
def _names(model: type[Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in model._meta.concrete_fields)


@cache
def _of(model: type[Model], kind: type) -> tuple[str, ...]:
    fields = model._meta.concrete_fields
    return tuple(field.attname for field in fields if isinstance(field, kind))


def _stored(value: Any) -> Any:
    if isinstance(value, JSONText):
        return value.text
    return value.isoformat(timespec="microseconds") if isinstance(value, datetime) else value
