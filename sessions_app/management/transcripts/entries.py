"""What every reader gives, and how it reads a file of lines."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from django.conf import settings

from sessions_app.errors import DossierError
from sessions_app.jsontext import loads


class BadFileError(Exception):
    """A file that cannot be taken, and where."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that a file says of one of its sessions, at a ``place`` ("line 7").

    ``session`` is the external id of what it becomes, made of the file's own ids. ``message`` is
    one as the API takes it, or None; its ``client_message_id`` is the file's own, too.
    """

    session: str
    place: str
    message: Mapping[str, Any] | None = None
    title: str | None = None
    agent_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


# Called with the file from its beginning; it may be called again.
Reader = Callable[[IO[bytes]], Iterator[Entry]]


def read_lines(file: IO[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line that is not blank, an object, with its place.

    Raises:
        BadFileError: a line that is too long, or none.
    """
    longest = settings.MAX_BODY_BYTES
    number = 0
    while raw := file.readline(longest + 1):
        number += 1
        place = f"line {number}"
        if len(raw) > longest:
            raise BadFileError(place, f"longer than {longest} bytes")
        if raw.strip():
            yield place, read_object(raw, place)


def read_object(raw: bytes, place: str) -> dict[str, Any]:
    value = read_json(raw, place)
    if not isinstance(value, dict):
        raise BadFileError(place, "no JSON object")
    return value


def read_json(raw: bytes, place: str) -> Any:
    try:
        return loads(raw)
    except DossierError as error:
        raise BadFileError(place, error.detail.replace("The body", "it", 1)) from error


def given(**members: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in members.items() if value is not None}
