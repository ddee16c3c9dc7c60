"""Versions as entity tags (RFC 9110): ``If-Match`` guards writes, ``If-None-Match`` saves reads."""

import re

from sessions_app.errors import InvalidRequest

# A version that no row has: the service then answers 412 with the current one.
NO_VERSION = -1

_ETAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_VERSION = re.compile(r"0|[1-9][0-9]{0,18}")


def etag(version: int) -> str:
    return f'"{version}"'


def if_match(header: str | None) -> int | None:
    """The version that the write expects; None where any will do.

    Raises:
        InvalidRequest: not an entity tag, or several: a write expects one version.
    """
    if header is None or header.strip() == "*":
        return None
    found = _ETAG.fullmatch(header.strip())
    if found is None:
        raise InvalidRequest.at("/If-Match", 'one entity tag such as "7" (with its quotes), or *')
    weak, opaque = found.groups()
    # If-Match compares strongly: a weak tag never matches.
    return int(opaque) if not weak and _VERSION.fullmatch(opaque) else NO_VERSION


def none_match(header: str | None, version: int) -> bool:
    """Whether the reader holds this version already; a malformed header says nothing."""
    if header is None:
        return False
    held = [opaque for _, opaque in _ETAG.findall(header)]
    return header.strip() == "*" or str(version) in held
