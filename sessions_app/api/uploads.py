"""A body that is a file: kept on disk, since it may be larger than memory."""

import hashlib
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EDQUOT, ENOSPC
from typing import IO, Any

from django.http import UnreadablePostError
from django.utils.http import parse_header_parameters
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request

from sessions_app.errors import DatabaseBusy, PayloadTooLarge

# Set by `config.middleware` where a body came without its length, whose CONTENT_LENGTH is none.
UNANNOUNCED = "dossier.unannounced"
# A file up to here stays in memory.
SMALL_BYTES = 1 << 20

_PIECE_BYTES = 1 << 18
_UTF8 = {"", "utf-8", "utf8"}


@dataclass(frozen=True, slots=True)
class Upload:
    """A body that came whole; ``digest`` is its SHA-256. Whoever received it closes the file."""

    file: IO[bytes]
    digest: str


def require_plain_utf8(content_type: str, meta: Mapping[str, Any]) -> None:
    """Refuse a body in another encoding.

    Raises:
        UnsupportedMediaType: its charset is not UTF-8, or it is compressed.
    """
    _, parameters = parse_header_parameters(content_type)
    encoding = meta.get("HTTP_CONTENT_ENCODING", "identity").lower()
    if parameters.get("charset", "").lower() not in _UTF8 or encoding not in ("", "identity"):
        raise UnsupportedMediaType(
            content_type, "The body must be UTF-8 and without a content encoding."
        )


def receive(request: Request, *, media_type: str, limit: int) -> Upload:
    """Read the body of a request that nobody has read from.

    Raises:
        UnsupportedMediaType: it is of another type.
        PayloadTooLarge: more than ``limit`` bytes, announced or sent.
        UnreadablePostError: it ended before its end.
    """
    content_type = request.content_type or ""
    if parse_header_parameters(content_type)[0] != media_type:
        raise UnsupportedMediaType(content_type, f"The body must be {media_type}.")
    require_plain_utf8(content_type, request.META)
    announced = _announced(request.META)
    # What announces itself as too large is refused before a byte of it is read.
    if announced is not None and announced > limit:
        raise _too_large(limit)
    file = new_file()
    try:
        digest, size = _copy(request, file, limit)
        if announced is not None and size < announced:
            raise UnreadablePostError("The connection ended before the body did.")
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return Upload(file, digest)


def new_file() -> IO[bytes]:
    """A file without a name, which goes when it is closed."""
    return tempfile.SpooledTemporaryFile(max_size=SMALL_BYTES)


@contextmanager
def room_on_disk() -> Iterator[None]:
    """Let a full disk be what it is to a client: a refusal that will pass.

    Raises:
        DatabaseBusy: there is no room.
    """
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        if isinstance(error, OSError):
            is_full = error.errno in (ENOSPC, EDQUOT)
        else:
            is_full = error.sqlite_errorcode == sqlite3.SQLITE_FULL
        if not is_full:
            raise
        raise DatabaseBusy("The server has no room for the file now.") from error


def _announced(meta: Mapping[str, Any]) -> int | None:
    if meta.get(UNANNOUNCED):
        return None
    try:
        return int(meta.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0  # as Django reads it


def _copy(request: Any, file: IO[bytes], limit: int) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    while piece := request.read(_PIECE_BYTES):
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        digest.update(piece)
        file.write(piece)
    return digest.hexdigest(), size


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"A file has at most {limit} bytes.", limit=limit)
