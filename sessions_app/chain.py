"""Rows of which none can be changed or taken away without a trace, for each one's digest holds the
digest of the one before it.

A chain is the rows of one table that belong to one session, numbered from 1; where it ends (how
many, and the last digest) is kept in another table. The database itself refuses to change or to
delete them (`append_only`); the chain tells of whoever got past that.
"""

from functools import cache
from hashlib import sha256
from operator import itemgetter
from typing import Any, ClassVar, Protocol

import orjson

DIGEST_LENGTH = 64


class Linked(Protocol):
    """A row of a chain; ``chained`` names the columns that its digest holds, in their order."""

    chained: ClassVar[tuple[str, ...]]
    session_id: str
    sequence: int
    digest: str


def link(previous: str | None, row: Linked) -> str:
    """The row's digest: SHA-256, in hexadecimal, of the JSON array of the digest before it (null
    for the first) and of the row's values. Times are in UTC, as both databases keep them."""
    values = _taker(type(row))(vars(row))
    return sha256(orjson.dumps((previous, *values))).hexdigest()


@cache
def _taker(model: type[Linked]) -> Any:
    return itemgetter(*model.chained)
