"""Public ids: a prefix that names the kind, and 26 characters of Crockford base32.

The 26 characters are a UUIDv7 (RFC 9562): time-ordered, so that rows made together lie together
in the index, and unguessable in their last 74 bits.
"""

from uuid_utils import uuid7

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
_LENGTH = 26

MAX_ID_LENGTH = len("sess_") + _LENGTH


def new_id(prefix: str) -> str:
    """Return ``prefix_`` and 26 base32 characters, greater than every id made earlier."""
    number = uuid7().int
    # Ten bits, two characters, at a time: 13 look-ups instead of 26.
    pairs = [_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)]
    return f"{prefix}_{''.join(pairs)}"
