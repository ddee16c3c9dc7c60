"""Points in time as clients write and read them: RFC 3339, always with an offset."""

import re
from datetime import UTC, datetime

_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def parse_rfc3339(text: str) -> datetime:
    """Read a timestamp, in UTC.

    Raises:
        ValueError: not RFC 3339, or without an offset (report TIME-01: naive times were read as
            local ones and shifted by hours).
    """
    if not _RFC3339.fullmatch(text):
        raise ValueError("not an RFC 3339 timestamp with an offset")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except OverflowError as error:  # year 1 or 9999, shifted out of range by its offset
        raise ValueError("outside the years 1 to 9999 in UTC") from error


def rfc3339(moment: datetime) -> str:
    """Write a timestamp: UTC, ``Z``, microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
