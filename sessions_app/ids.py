"""Public ids: a prefix that names the kind, and 26 characters of Crockford base32, as of a ULID.

The 26 characters are a UUIDv7 (RFC 9562): time-ordered, so that rows made together lie together
in the index, and unguessable in their last 74 bits.
"""

from datetime import datetime

from ulid_transform import bytes_to_ulid
from uuid_utils import uuid7

_LENGTH = 26

MAX_ID_LENGTH = len("sess_") + _LENGTH


def new_id(prefix: str) -> str:
    """Return ``prefix_`` and 26 base32 characters, greater than every id made earlier."""
    return f"{prefix}_{bytes_to_ulid(uuid7().bytes).lower()}"


def id_at(prefix: str, moment: datetime, tail: int = 0) -> str:
    """An id of this moment: without ``tail``, its 80 other bits, no greater than any made then.

    So a range of ids is a range of time, for which the primary key's index serves.
    """
    milliseconds = max(0, int(moment.timestamp() * 1000))  # there are no ids from before 1970
    number = milliseconds << 80 | tail
    return f"{prefix}_{bytes_to_ulid(number.to_bytes(16)).lower()}"
