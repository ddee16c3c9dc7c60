"""A file, line by line and field by field: what is refused names its line."""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, Any

from django.conf import settings

from sessions_app.errors import DossierError, InvalidJSON, InvalidRequest, pointer_token
from sessions_app.jsontext import JSONText, loads
from sessions_app.timestamps import parse_rfc3339

# Far above any real number, and as far below what a column holds: counting goes on from it.
MOST = 2**53 - 1
# A run's line has three fields of a client, each as long as a body.
_BODIES_IN_A_LINE = 4
_ID = re.compile(r"([a-z]+)_[0-9a-hjkmnp-tv-z]{26}")
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


def longest_line() -> int:
    """The bytes that one line may have."""
    return _BODIES_IN_A_LINE * settings.MAX_BODY_BYTES


def read_objects(file: IO[bytes]) -> Iterator[tuple[int, "Fields"]]:
    """Each line that is not blank, an object, with its number.

    Raises:
        InvalidJSON, InvalidRequest: with the line's number.
    """
    longest = longest_line()
    number = 0
    while raw := file.readline(longest + 1):
        number += 1
        if raw.isspace():
            continue
        with at_line(number):
            if len(raw) > longest:
                raise InvalidRequest.at("", f"longer than {longest} bytes")
            value = loads(raw)
            if not isinstance(value, dict):
                raise InvalidRequest.at("", "must be an object")
            fields = Fields(value)
        del raw, value
        yield number, fields


@contextmanager
def at_line(number: int) -> Iterator[None]:
    """Let refusals that name none yet name this line: in words, as ``line``, and as the first step
    of each pointer."""
    try:
        yield
    except (InvalidJSON, InvalidRequest) as error:
        if "line" in error.data:
            raise
        raise _at(number, error) from error
    except DossierError as error:  # of a limit, which a request by itself would have passed, too
        raise _at(number, InvalidRequest.at("", error.detail)) from error


def _at(number: int, error: InvalidJSON | InvalidRequest) -> DossierError:
    detail = f"Line {number}: {error.detail.removeprefix('body: ')}"
    if isinstance(error, InvalidJSON):
        return InvalidJSON(detail.replace("The body", "it", 1), line=number)
    places = {f"/{number}{pointer}": reason for pointer, reason in error.pointers.items()}
    return InvalidRequest(detail, pointers=places, line=number)


class Fields:
    """The members of one object, each taken once; what nobody takes is unknown.

    Every method raises InvalidRequest with the member's pointer. A member that is absent is null.
    """

    def __init__(self, raw: Mapping[str, Any], pointer: str = "") -> None:
        self._raw, self._pointer = dict(raw), pointer

    def refusal(self, name: str, reason: str) -> InvalidRequest:
        return InvalidRequest.at(f"{self._pointer}/{pointer_token(name)}", reason)

    def take(self, name: str) -> Any:
        """Any JSON."""
        return self._raw.pop(name, None)

    def json(self, name: str) -> JSONText | None:
        """Any JSON as text; None where it is absent."""
        if name not in self._raw:
            return None
        return JSONText.of(self._raw.pop(name), pointer=f"{self._pointer}/{name}", wrapped=1)

    def object(self, name: str, *, null: bool = False) -> "Fields | None":
        value = self.take(name)
        if value is None and null:
            return None
        if not isinstance(value, dict):
            raise self.refusal(name, "must be an object")
        return Fields(value, f"{self._pointer}/{name}")

    def text(self, name: str, *, longest: int) -> str:
        value = self.maybe_text(name, longest=longest)
        if value is None:
            raise self.refusal(name, "must be a string")
        return value

    def maybe_text(self, name: str, *, longest: int) -> str | None:
        value = self.take(name)
        if value is not None and not isinstance(value, str):
            raise self.refusal(name, "must be a string or null")
        if value is not None and len(value) > longest:
            raise self.refusal(name, f"longer than {longest} characters")
        return value

    def one_of(self, name: str, choices: Collection[str | None]) -> Any:
        value = self.take(name)
        if not isinstance(value, str | None) or value not in choices:
            words = ", ".join("null" if choice is None else str(choice) for choice in choices)
            raise self.refusal(name, f"must be one of {words}")
        return value

    def flag(self, name: str, *, absent: bool) -> bool:
        value = self._raw.pop(name, absent)
        if not isinstance(value, bool):
            raise self.refusal(name, "must be true or false")
        return value

    def number(self, name: str, *, low: int = 0, high: int = MOST) -> int:
        value = self.maybe_number(name, low=low, high=high)
        if value is None:
            raise self.refusal(name, f"must be an integer from {low} to {high}")
        return value

    def maybe_number(self, name: str, *, low: int = 0, high: int = MOST) -> int | None:
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.refusal(name, f"must be an integer from {low} to {high}")
        return value

    def past(self, name: str, *, latest: datetime) -> datetime:
        value = self.maybe_past(name, latest=latest)
        if value is None:
            raise self.refusal(name, "must be a time")
        return value

    def maybe_past(self, name: str, *, latest: datetime) -> datetime | None:
        """A time since 1970 that is not after ``latest``."""
        value = self.maybe_moment(name)
        if value is not None and not _EARLIEST <= value <= latest:
            raise self.refusal(name, "must lie after 1970, and not in the future")
        return value

    def maybe_moment(self, name: str) -> datetime | None:
        value = self.take(name)
        try:
            return None if value is None else parse_rfc3339(value)
        except (TypeError, ValueError) as error:
            reason = "must be an RFC 3339 timestamp with an offset"
            raise self.refusal(name, reason) from error

    def id(self, name: str, *kinds: str) -> str:
        value = self.maybe_id(name, *kinds)
        if value is None:
            raise self.refusal(name, f"must be an id that begins with {kinds[0]}_")
        return value

    def maybe_id(self, name: str, *kinds: str) -> str | None:
        """An id of one of these kinds, by their prefixes."""
        value = self.take(name)
        if value is None:
            return None
        found = _ID.fullmatch(value) if isinstance(value, str) else None
        if found is None or found[1] not in kinds:
            raise self.refusal(name, f"must be an id that begins with {kinds[0]}_")
        return str(value)

    def end(self) -> None:
        """Refuse what nobody has taken: a field that is ignored would be lost without a word."""
        for name in self._raw:
            raise self.refusal(name[:80], "is not known")
