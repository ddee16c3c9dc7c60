"""Points in time as clients write and read them: RFC 3339, always with an offset. They are written
from a datetime, or from a database's text of one."""

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


def instant(moment: datetime | str | None) -> datetime | None:
    """A time that may be a column's text, or null."""
    return _of_column(moment) if isinstance(moment, str) else moment


def rfc3339(moment: datetime | str) -> str:
    """Write a timestamp: UTC, ``Z``, microseconds. A str is the text of a database's column, which
    is in UTC: to make an object of each would take longer than to read the rest of a page."""
    if isinstance(moment, str):
        if _has_microseconds(moment):
            return f"{moment[:10]}T{moment[11:26]}Z"
        moment = _of_column(moment)
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def _has_microseconds(text: str) -> bool:
    """ "2026-01-31 12:00:00.123456" (SQLite), or with "+00" (PostgreSQL, in a session that is in
    UTC); which leaves out zeros at the end, so that ".123+00" is as long as SQLite's."""
    return len(text) == 29 or (len(text) == 26 and text[23] != "+")  # noqa: PLR2004


def _of_column(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
