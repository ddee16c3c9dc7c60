"""Client JSON, kept as the text it was sent as: the one choke point through which it comes in.

What is accepted is RFC 8259 without its loose ends: no NaN or Infinity, no number that overflows a
double, no duplicate key, no lone surrogate, no nesting that would exhaust a reader's stack.
U+0000, which PostgreSQL cannot store, becomes U+FFFD on every database (reports DATA-01..04,
SEC-06). Integers keep every digit; other numbers are IEEE doubles and come back in the shortest
form that reads as the same double (``1e2`` as ``100.0``), the same on every database.
"""

import json
import re
from datetime import date
from enum import Enum
from math import isfinite
from typing import Any, NoReturn
from uuid import UUID

from django.conf import settings

from .errors import InvalidJSON, InvalidRequest, pointer_token

# A body wraps a field in at most this many levels: {"messages": [{"content": …}]}.
_ENVELOPE_LEVELS = 3
_CIRCULAR = "Circular reference detected"
_MAY_NEED_SCRUBBING = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class JSONText:
    """A JSON value as text; parsed only where somebody looks inside."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def of(cls, value: Any, *, pointer: str = "", wrapped: int = 0) -> "JSONText":
        """Encode a Python value; datetimes, UUIDs and enums become their usual strings.

        ``pointer`` names the value in errors; ``wrapped`` is how many levels of ours stand around
        the client's field.

        Raises:
            InvalidRequest: a value that JSON has no form for (a set, bytes, NaN, …), by its path;
                or more than ``MAX_JSON_DEPTH`` levels.
            InvalidJSON: a lone surrogate.
        """
        if isinstance(value, JSONText):
            return value
        try:
            text = _encoder.encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            if str(error) == _CIRCULAR:  # what follows would never come to its end
                raise InvalidRequest.at(pointer, "it contains itself") from error
            _check_depth(value, limit=settings.MAX_JSON_DEPTH + wrapped, pointer=pointer)
            bad, reason = _find_unencodable(value, pointer) or (pointer, str(error))
            raise InvalidRequest.at(bad, reason) from error
        if text.count("[") + text.count("{") > settings.MAX_JSON_DEPTH:
            _check_depth(value, limit=settings.MAX_JSON_DEPTH + wrapped, pointer=pointer)
        if not _is_utf8(text) or _MAY_NEED_SCRUBBING.search(text):
            # By way of the text, in which an enum or a key is a string like any other.
            text = _encoder.encode(scrub(json.loads(text)))
        return cls(text)

    @property
    def value(self) -> Any:
        """The parsed value; a fresh one at each call."""
        return json.loads(self.text)

    def __len__(self) -> int:
        return len(self.text.encode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JSONText) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"JSONText({self.text[:80]!r})"


def loads(body: bytes) -> Any:
    """Parse a request body.

    Raises:
        InvalidJSON: not UTF-8, not JSON, or JSON that could not be given back as it came.
    """
    try:
        text = body.decode()
        if text.startswith("\ufeff"):
            raise InvalidJSON("The body is not JSON: it begins with a byte order mark.")
        value = _decoder.decode(text)
    except UnicodeDecodeError as error:
        raise InvalidJSON(f"The body is not UTF-8 (byte {error.start}).") from error
    except RecursionError as error:
        raise InvalidJSON("The body is nested too deeply.") from error
    except json.JSONDecodeError as error:
        raise InvalidJSON(f"The body is not JSON: {error}.") from error
    except ValueError as error:  # of `int`, whose own words advise the server's operator
        raise InvalidJSON("The body holds an integer of more than 4,300 digits.") from error
    if text.count("[") + text.count("{") > settings.MAX_JSON_DEPTH:
        _check_depth(value, limit=settings.MAX_JSON_DEPTH + _ENVELOPE_LEVELS, pointer="")
    return scrub(value) if _MAY_NEED_SCRUBBING.search(text) else value


def scrub(value: Any) -> Any:
    """Replace U+0000 by U+FFFD in every string and key.

    Raises:
        InvalidJSON: a lone surrogate (report DATA-02: stored once, it broke every later read).
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list | tuple):
        return [scrub(item) for item in value]
    if isinstance(value, dict):
        return _unique_keys([(scrub(key), scrub(item)) for key, item in value.items()])
    return value


def clean_text(text: str) -> str:
    """A string that every database can store: no U+0000.

    Raises:
        InvalidJSON: a lone surrogate.
    """
    if not _is_utf8(text):
        raise InvalidJSON("A string holds a lone surrogate, which is not a character.")
    return text.replace("\x00", "\ufffd")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidJSON(f"The key {twice[:80]!r} stands twice in one object.")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJSON(f"{name} is not JSON.")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise InvalidJSON(f"{digits[:40]} is outside the range of a double.")
    return number


def _check_depth(value: Any, *, limit: int, pointer: str) -> None:
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, dict | list | tuple)]:
        depth += 1
        if depth > limit:
            raise InvalidRequest.at(
                pointer, f"more than {settings.MAX_JSON_DEPTH} levels of nesting in one field"
            )
        level = [
            child for item in level for child in (item.values() if isinstance(item, dict) else item)
        ]


def _plain(value: Any) -> str:
    if isinstance(value, date):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return str(value.value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


def _find_unencodable(value: Any, pointer: str) -> tuple[str, str] | None:
    """The path of the first value that cannot be encoded, and why."""
    if isinstance(value, dict):
        children = [(f"{pointer}/{pointer_token(str(key))}", item) for key, item in value.items()]
    elif isinstance(value, list | tuple):
        children = [(f"{pointer}/{index}", item) for index, item in enumerate(value)]
    else:
        try:
            _encoder.encode(value)
        except (TypeError, ValueError) as error:
            return pointer, str(error)
        return None
    return next(
        (found for path, item in children if (found := _find_unencodable(item, path))), None
    )


_encoder = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
)
_decoder = json.JSONDecoder(
    object_pairs_hook=_unique_keys, parse_constant=_refuse_constant, parse_float=_finite_float
)
