"""Lists by keyset: a page begins where the last one ended, whatever was written meanwhile."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from django.core import signing
from django.core.exceptions import FieldDoesNotExist
from django.db.models import DateTimeField, Field, Model, Q, QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request

from sessions_app.api.query import Integer
from sessions_app.api.response import Response
from sessions_app.errors import InvalidCursor
from sessions_app.prepared import GIVEN_LIMIT, Given, Listing, Prepared, Reading
from sessions_app.querysets import how_many_fit
from sessions_app.timestamps import rfc3339

LIMIT = Integer(name="limit", low=1, high=200, default=50, description="How many at most.")
CURSOR_DESCRIPTION = "`next_cursor` or `previous_cursor` of a page with the same filters."

# The values of a place in a prepared query.
_KEYS = ("first_key", "second_key")

_signer = signing.Signer(salt="dossier.pagination")


@dataclass(frozen=True)
class Place:
    """A row's ordering keys, and which way the page lies from there."""

    keys: tuple[Any, ...]
    backward: bool = False
    inclusive: bool = False

    @property
    def side(self) -> tuple[bool, bool]:
        return self.backward, self.inclusive


class KeysetPagination(BasePagination):
    """Pages of a queryset, of a `Listing` or a `Reading`, ordered by one unique key, or by a key
    and a unique one.

    Both keys run the same way and are never null. Equal times are told apart by the unique key
    (report PAG-01: rows with equal times were skipped). Rows with a ``size`` column fill a page
    up to MAX_PAGE_BYTES; their sizes are read first, so that no row is loaded in vain.
    """

    def paginate_queryset(
        self,
        queryset: QuerySet[Any] | Sequence[Any] | Listing | Reading,
        request: Request,
        view: Any = None,
    ) -> list[Any]:
        if not isinstance(queryset, QuerySet | Listing | Reading):
            raise TypeError("A keyset needs a queryset.")
        given = request.query_params
        limit = LIMIT.read(given["limit"]) if "limit" in given else LIMIT.default
        self._order = _Order.of(queryset)
        self._fingerprint = _fingerprint(request, self._order.names)
        place = self._place(given["cursor"]) if "cursor" in given else None
        if isinstance(queryset, Listing):
            found = self._fetch_prepared(queryset, place, limit)
        elif isinstance(queryset, Reading):
            found = self._found(self._read(queryset, place, limit + 1), limit)
        elif _has_field(queryset.model, "size"):
            found = self._fetch_by_size(self._order.from_place(queryset, place), limit)
        else:
            found = self._fetch(self._order.from_place(queryset, place), limit)
        self._links(found, place)
        return found.rows

    def _fetch_prepared(self, listing: Listing, place: Place | None, limit: int) -> "_Found":
        keys = {} if place is None else dict(zip(_KEYS, place.keys, strict=False))
        side = None if place is None else place.side
        found = _pages_of(listing.build).all(
            listing.order, side, *listing.shape, limit=limit + 1, **keys, **listing.values
        )
        return self._found(found, limit)

    def _read(self, reading: Reading, place: Place | None, limit: int) -> list[Any]:
        if place is None:
            return reading.read(None, False, False, limit)
        return reading.read(place.keys[0], *place.side, limit)

    def _fetch(self, queryset: QuerySet[Any], limit: int) -> "_Found":
        return self._found(list(queryset[: limit + 1]), limit)

    def _found(self, rows: list[Any], limit: int) -> "_Found":
        page = rows[:limit]
        ends = (page[0], page[-1]) if page else ()
        return _Found(page, [*map(self._order.keys_of, ends)], len(rows) > limit)

    def _fetch_by_size(self, queryset: QuerySet[Any], limit: int) -> "_Found":
        sizes = list(queryset.values_list("pk", "size", *self._order.attnames)[: limit + 1])
        fitting = sizes[: how_many_fit([size for _, size, *_ in sizes[:limit]])]
        loaded = queryset.in_bulk([pk for pk, *_ in fitting])
        # A row that was deleted meanwhile keeps its place, so that the walk goes on after it.
        rows = [loaded[pk] for pk, *_ in fitting if pk in loaded]
        ends = [tuple(fitting[0][2:]), tuple(fitting[-1][2:])] if fitting else []
        return _Found(rows, ends, len(sizes) > len(fitting))

    def _links(self, found: "_Found", place: Place | None) -> None:
        ends = found.ends
        backward = place is not None and place.backward
        if backward:
            found.rows.reverse()
            ends.reverse()
        before = found.more if backward else place is not None
        after = found.more if not backward else True
        first = Place(ends[0], backward=True) if ends else _turned(place, backward=True)
        last = Place(ends[-1]) if ends else _turned(place, backward=False)
        self.previous_cursor = self._cursor(first) if before and first else None
        self.next_cursor = self._cursor(last) if after and last else None

    def _cursor(self, place: Place) -> str:
        keys = [key.isoformat() if isinstance(key, datetime) else key for key in place.keys]
        return _signer.sign_object(
            [self._fingerprint, int(place.backward), int(place.inclusive), keys]
        )

    def _place(self, cursor: str) -> Place:
        try:
            fingerprint, backward, inclusive, keys = _signer.unsign_object(cursor)
        except signing.BadSignature as error:
            raise InvalidCursor("The cursor is not one of this server's.") from error
        if fingerprint != self._fingerprint:
            raise InvalidCursor("The cursor belongs to a list with another path, filter or order.")
        return Place(self._order.parsed(keys), bool(backward), bool(inclusive))

    def get_paginated_response(self, data: Any) -> Response:  # type: ignore[override]
        return Response(
            {
                "data": data,
                "next_cursor": self.next_cursor,
                "previous_cursor": self.previous_cursor,
            }
        )

    def get_paginated_response_schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        cursor = {"type": ["string", "null"]}
        return {
            "type": "object",
            "required": ["data", "next_cursor", "previous_cursor"],
            "properties": {"data": schema, "next_cursor": cursor, "previous_cursor": cursor},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        limit = LIMIT.schema() | {"default": LIMIT.default}
        return [
            _schema_parameter("limit", limit, LIMIT.description),
            _schema_parameter("cursor", {"type": "string"}, CURSOR_DESCRIPTION),
        ]


@dataclass(frozen=True, slots=True)
class _Found:
    """Rows, the keys of the first and the last place, and whether more follow."""

    rows: list[Any]
    ends: list[tuple[Any, ...]]
    more: bool


@cache
def _pages_of(build: Callable[..., QuerySet[Any, Any]]) -> Prepared[Any]:
    """The pages of a listing; which side of which place is part of their shape."""

    def page(
        given: type[Given], order: Sequence[str], side: tuple[bool, bool] | None, *shape: Any
    ) -> QuerySet[Any, Any]:
        found = build(given, order, *shape)
        if side is not None:
            keys = tuple(map(given, _KEYS[: len(order)]))
            found = _Order(found.model, order).from_place(found, Place(keys, *side))
        return found[:GIVEN_LIMIT]

    return Prepared(page)


class _Order:
    """An ordering, as fields and a direction."""

    @classmethod
    def of(cls, listed: QuerySet[Any] | Listing | Reading) -> "_Order":
        names = listed.query.order_by if isinstance(listed, QuerySet) else listed.order
        return cls(listed.model, [str(name) for name in names])

    def __init__(self, model: type[Model], names: Sequence[str]) -> None:
        self.names = names
        directions = {name.startswith("-") for name in self.names}
        if len(self.names) not in (1, 2) or len(directions) != 1:
            raise ValueError(f"A keyset needs one or two keys in one direction: {self.names}")
        self.descending = directions.pop()
        self.fields = [_field(model, name.lstrip("-")) for name in self.names]
        self.attnames = [field.attname for field in self.fields]

    def keys_of(self, row: Any) -> tuple[Any, ...]:
        """As `parsed` takes them: a time in a tuple is its column's text, which says no offset
        on SQLite."""
        keys = [getattr(row, name) for name in self.attnames]
        return tuple(
            rfc3339(key) if isinstance(field, DateTimeField) and isinstance(key, str) else key
            for field, key in zip(self.fields, keys, strict=True)
        )

    def parsed(self, keys: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(field.to_python(key) for field, key in zip(self.fields, keys, strict=True))

    def from_place(self, queryset: QuerySet[Any], place: Place | None) -> QuerySet[Any]:
        """The rows on that side of the place, nearest first."""
        if place is None:
            return queryset
        strictly = "lt" if self.descending != place.backward else "gt"
        at_last = f"{strictly}e" if place.inclusive else strictly
        *first, last = zip(self.attnames, place.keys, strict=True)
        beyond = Q(**{f"{last[0]}__{at_last}": last[1]})
        for name, key in first:
            # The outer condition alone is what an index can begin at.
            beyond = Q(**{f"{name}__{strictly}e": key}) & (
                Q(**{f"{name}__{strictly}": key}) | beyond
            )
        return (queryset.reverse() if place.backward else queryset).filter(beyond)


def _turned(place: Place | None, *, backward: bool) -> Place | None:
    """From an empty page back: to the very row that its cursor named, unless it is gone too."""
    if place is None or place.backward == backward:
        return None
    return Place(place.keys, backward=backward, inclusive=not place.inclusive)


def _fingerprint(request: Request, order: Sequence[str]) -> str:
    filters = sorted(
        (name, texts)
        for name, texts in request.query_params.lists()
        if name not in ("limit", "cursor")
    )
    described = json.dumps([request.path.rstrip("/"), filters, order])
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def _field(model: type[Model], name: str) -> "Field[Any, Any]":
    return model._meta.pk if name == "pk" else model._meta.get_field(name)  # type: ignore[return-value]


def _has_field(model: type[Model], name: str) -> bool:
    try:
        model._meta.get_field(name)
    except FieldDoesNotExist:
        return False
    return True


def _schema_parameter(name: str, schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": description}
