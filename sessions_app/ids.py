"""Public ids: a prefix that names the kind, and 26 characters of Crockford base32.

The 26 characters are a UUIDv7 (RFC 9562): time-ordered, so that rows made together lie together
in the index, and unguessable in their last 74 bits.
"""

from datetime import datetime

from uuid_utils import uuid7

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
_LENGTH = 26

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
    # Ten bits, two characters, at a time: 13 look-ups instead of 26.
    pairs = [_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)]
    return f"{prefix}_{''.join(pairs)}"
