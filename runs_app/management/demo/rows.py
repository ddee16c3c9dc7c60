"""Rows that wait to be written together, and the ids that they get."""

import random
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar, cast

from django.db import transaction
from django.db.models import Model

from sessions_app.ids import id_at
from sessions_app.models import Message, Session, WorkingMemoryRevision
from sessions_app.services.search import index_new
from sessions_app.writes import insert

Row = TypeVar("Row", bound=Model)


@dataclass(slots=True)
class Ids:
    """Ids like the product's, of the moments that are told, and the same for the same seed."""

    rng: random.Random
    made: int = 0

    def new(self, prefix: str, at: datetime) -> str:
        """In order also within a millisecond (RFC 9562, section 6.2)."""
        self.made += 1
        tail = 7 << 76 | (self.made & 0xFFF) << 64 | 2 << 62 | self.rng.getrandbits(62)
        return id_at(prefix, at, tail)


@dataclass(slots=True)
class Rows:
    """By their tables; keys between these are checked at the transaction's end."""

    of: dict[type[Model], list[Model]] = field(default_factory=dict)

    def add(self, row: Model) -> None:
        self.of.setdefault(type(row), []).append(row)

    def store(self) -> None:
        with transaction.atomic():
            for rows in self.of.values():
                insert(rows)
            index_new(self._of(Session), self._of(Message), self._of(WorkingMemoryRevision))
        self.of.clear()

    def _of(self, model: type[Row]) -> list[Row]:
        return cast(list[Row], self.of.get(model, []))
