"""What happened, and who read it: the chains followed row by row, written to a file, and held
against one that was written before.

A chain that somebody has made anew from its beginning holds together again. What tells of that is
a file that was kept elsewhere.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import orjson
from django.db.models import QuerySet

from ..chain import link
from ..models import ContentRead, ReadChain, Session, SessionEvent
from .snapshot import read_snapshot

CHAINS_AT_ONCE = 1_000
_ROWS_AT_ONCE = 2_000

Row = SessionEvent | ContentRead


@dataclass(frozen=True, slots=True)
class Chained:
    """A table of chains, and what says where each of them ends."""

    name: str
    rows: type[Row]
    ends: type[Session | ReadChain]
    count: str
    digest: str


CHAINED = (
    Chained("event", SessionEvent, Session, "event_count", "event_digest"),
    Chained("content_read", ContentRead, ReadChain, "count", "digest"),
)
_BY_NAME = {chained.name: chained for chained in CHAINED}


class Fault(NamedTuple):
    """Where a chain does not hold; what comes after it in the same chain is not looked at."""

    name: str
    session_id: str
    sequence: int
    reason: str


class End(NamedTuple):
    number: int = 0
    digest: str | None = None


@dataclass(slots=True)
class Verified:
    rows: int = 0
    chains: int = 0


def verify(done: Verified) -> Iterator[Fault]:
    """Follow every chain to its end, and count in ``done``.

    Portion by portion, each at one moment, so that what is written meanwhile is no fault.
    """
    for chained in CHAINED:
        last: str | None = ""
        while last is not None:
            with read_snapshot():
                ends, upto = _ends(chained, after=last)
                rows = _rows(chained).filter(session_id__gt=last)
                rows = rows if upto is None else rows.filter(session_id__lte=upto)
                yield from _follow_all(chained.name, rows, ends, done)
            last = upto


def _ends(chained: Chained, *, after: str) -> tuple[dict[str, End], str | None]:
    """Those of the next chains, and the last of them; None: there are no more."""
    found = chained.ends._default_manager.filter(pk__gt=after).order_by("pk")
    values = list(found.values_list("pk", chained.count, chained.digest)[:CHAINS_AT_ONCE])
    ends = {pk: End(number, digest) for pk, number, digest in values}
    return ends, values[-1][0] if len(values) == CHAINS_AT_ONCE else None


def _rows(chained: Chained) -> QuerySet[Any]:
    return chained.rows._default_manager.order_by("session_id", "sequence")


def _follow_all(
    name: str, rows: QuerySet[Any], ends: dict[str, End], done: Verified
) -> Iterator[Fault]:
    found = rows.iterator(chunk_size=_ROWS_AT_ONCE)
    for session_id, chain in groupby(found, key=attrgetter("session_id")):
        done.chains += 1
        for sequence, reason in _follow(chain, ends.pop(session_id, End()), done):
            yield Fault(name, session_id, sequence, reason)
    for session_id, end in ends.items():
        if end.number:
            yield Fault(name, session_id, 1, "is missing")


def _follow(chain: Iterable[Row], end: End, done: Verified) -> Iterator[tuple[int, str]]:
    last = End()
    for row in chain:
        done.rows += 1
        number = last.number + 1
        if row.sequence != number:
            yield number, "is missing"
            return
        last = End(number, link(last.digest, row))
        if row.digest != last.digest:
            yield number, "was changed, or one before it was"
            return
    if last.number < end.number:
        yield last.number + 1, "is missing"
    elif last != end:
        yield last.number, "is not where the chain ends"


def export(*, session_id: str | None = None) -> Iterator[bytes]:
    """Every row as a line of JSON, chain by chain: what its digest holds, and the digest."""
    for chained in CHAINED:
        rows = _rows(chained)
        if session_id is not None:
            rows = rows.filter(session_id=session_id)
        for row in rows.iterator(chunk_size=_ROWS_AT_ONCE):
            fields = {"object": chained.name}
            fields |= {name: getattr(row, name) for name in (*row.chained, "digest")}
            yield orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


def compare(lines: Iterable[bytes], done: Verified) -> Iterator[Fault]:
    """Hold what is stored against the lines of an earlier `export`, and count them in ``done``.

    Raises:
        ValueError: a line is none of an export.
    """
    read = (_read(line) for line in lines)
    for (name, session_id), group in groupby(read, key=itemgetter(0, 1)):
        rows = _rows(_BY_NAME[name]).filter(session_id=session_id)
        stored = dict(rows.values_list("sequence", "digest"))
        done.chains += 1
        for _, _, sequence, digest in group:
            done.rows += 1
            if stored.get(sequence) != digest:
                reason = "is not what was exported" if sequence in stored else "is missing"
                yield Fault(name, session_id, sequence, reason)


def _read(line: bytes) -> tuple[str, str, int, str]:
    with suppress(orjson.JSONDecodeError, KeyError, TypeError):
        found = orjson.loads(line)
        _BY_NAME[found["object"]]
        return found["object"], found["session_id"], found["sequence"], found["digest"]
    raise ValueError("it is no line of an export")
