"""Public ids: a prefix that names the kind, and 26 characters of Crockford base32.

The 26 characters are a UUIDv7 (RFC 9562): time-ordered, so that rows made together lie together
in the index, and unguessable in their last 74 bits.
"""

from datetime import datetime
from functools import lru_cache

from uuid_utils import uuid7

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
_LENGTH = 26
_SHIFTS = range(120, -1, -10)

MAX_ID_LENGTH = len("sess_") + _LENGTH


def new_id(prefix: str) -> str:
    """Return ``prefix_`` and 26 base32 characters, greater than every id made earlier."""
    return _write(prefix, uuid7().int)


def id_at(prefix: str, moment: datetime, tail: int = 0) -> str:
    """An id of this moment: without ``tail``, its 80 other bits, no greater than any made then.

    So a range of ids is a range of time, for which the primary key's index serves.
    """
    return _write(prefix, int(moment.timestamp() * 1000) << 80 | tail)


def _write(prefix: str, number: int) -> str:
    # Ten bits, two characters, at a time: half as many look-ups.
    pairs = [_PAIRS[(number >> shift) & 1023] for shift in _SHIFTS[5:]]
    return f"{prefix}_{_time(number >> 80)}{''.join(pairs)}"


@lru_cache(maxsize=16)
def _time(milliseconds: int) -> str:
    """What ids begin with; those of a request are mostly of one millisecond."""
    return "".join([_PAIRS[(milliseconds >> shift) & 1023] for shift in _SHIFTS[8:]])
