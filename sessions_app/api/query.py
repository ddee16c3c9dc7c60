"""Query parameters: declared once, read strictly, and documented from the same declaration."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.http import QueryDict

from sessions_app.errors import InvalidJSON, InvalidRequest, pointer_token
from sessions_app.jsontext import clean_text
from sessions_app.timestamps import parse_rfc3339

MAX_TEXT = 255
MAX_BIGINT = 2**63 - 1

# ASCII digits only: `int` also takes "٣", " 3", "1_000" and "+3".
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One query parameter: how its text is read, and how the schema describes it."""

    name: str
    description: str = ""
    required: bool = False
    default: Any = None

    def read(self, text: str) -> Any:
        """The value. Raises InvalidRequest."""
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the value."""
        raise NotImplementedError

    def refusal(self, reason: str) -> InvalidRequest:
        return InvalidRequest.at(f"/{self.name}", reason)


@dataclass(frozen=True, kw_only=True)
class Text(Parameter):
    max_length: int = MAX_TEXT
    min_length: int = 0

    def read(self, text: str) -> str:
        cleaned = cleaned_text(text, pointer=f"/{self.name}")
        if not self.min_length <= len(cleaned) <= self.max_length:
            raise self.refusal(f"a text of {self.min_length} to {self.max_length} characters")
        return cleaned

    def schema(self) -> dict[str, Any]:
        least = {"minLength": self.min_length} if self.min_length else {}
        return {"type": "string", "maxLength": self.max_length, **least}


@dataclass(frozen=True, kw_only=True)
class Integer(Parameter):
    low: int = 0
    high: int = MAX_BIGINT

    def read(self, text: str) -> int:
        number = strict_integer(text)
        if number is None or not self.low <= number <= self.high:
            raise self.refusal(f"an integer from {self.low} to {self.high}")
        return number

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True, kw_only=True)
class Clamped(Integer):
    """An integer that is brought into its bounds instead of being refused."""

    def read(self, text: str) -> int:
        number = strict_integer(text)
        if number is None:
            raise self.refusal("an integer")
        return min(max(number, self.low), self.high)

    def schema(self) -> dict[str, Any]:
        return {"type": "integer"}


@dataclass(frozen=True, kw_only=True)
class Flag(Parameter):
    def read(self, text: str) -> bool:
        if text not in ("true", "false"):
            raise self.refusal("true or false")
        return text == "true"

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True, kw_only=True)
class Instant(Parameter):
    def read(self, text: str) -> datetime:
        try:
            return parse_rfc3339(text)
        except ValueError as error:
            raise self.refusal(f"{error}, such as 2026-01-31T12:00:00Z") from error

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "date-time"}


@dataclass(frozen=True, kw_only=True)
class Choice(Parameter):
    choices: Sequence[str] = ()

    def read(self, text: str) -> str:
        if text not in self.choices:
            raise self.refusal(f"one of {', '.join(self.choices)}")
        return text

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.choices)}


@dataclass(frozen=True, kw_only=True)
class Choices(Choice):
    """A comma list of choices, each at most once."""

    def read(self, text: str) -> list[str]:  # type: ignore[override]
        return [super(Choices, self).read(item) for item in dict.fromkeys(text.split(","))]

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": super().schema()}


@dataclass(frozen=True, kw_only=True)
class Repeated(Choice):
    """A choice for each time that the parameter is given."""

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": super().schema()}


@dataclass(frozen=True, kw_only=True)
class Prefixed(Text):
    """Every parameter whose name begins with ``name`` (``metadata.``): a dict by the rest.

    ``most`` of them at once: each may cost a join, of which SQLite takes 64, and PostgreSQL plans
    for seconds far below that.
    """

    default: Any = field(default_factory=dict)
    most: int = 10


def read_query(given: QueryDict, parameters: Iterable[Parameter]) -> dict[str, Any]:
    """All declared parameters by name, absent ones as their default.

    Raises:
        InvalidRequest: one that nobody declared, stands twice, is missing or is not what it
            should be. An ignored filter would answer with rows that were not asked for.
    """
    declared = {parameter.name: parameter for parameter in parameters}
    values = {name: parameter.default for name, parameter in declared.items()}
    prefixed = [found for found in declared.values() if isinstance(found, Prefixed)]
    values.update({found.name: {} for found in prefixed})
    for name, texts in given.lists():
        parameter = _declared(name, declared, prefixed)
        if isinstance(parameter, Repeated):
            values[name] = [parameter.read(text) for text in texts]
            continue
        if len(texts) != 1:
            raise InvalidRequest.at(f"/{_shown(name)}", "given more than once")
        if isinstance(parameter, Prefixed):
            key = cleaned_text(name.removeprefix(parameter.name), pointer=f"/{_shown(name)}")
            values[parameter.name][key] = parameter.read(texts[0])
            if len(values[parameter.name]) > parameter.most:
                raise parameter.refusal(f"at most {parameter.most} of these at once")
        else:
            values[name] = parameter.read(texts[0])
    _require(declared, given)
    return values


def _declared(
    name: str, declared: Mapping[str, Parameter], prefixed: Iterable[Prefixed]
) -> Parameter:
    parameter = declared.get(name)
    if parameter is not None and not isinstance(parameter, Prefixed):
        return parameter
    for candidate in prefixed:
        if name.startswith(candidate.name) and name != candidate.name:
            return candidate
    raise InvalidRequest.at(f"/{_shown(name)}", "there is no such query parameter")


def _require(declared: Mapping[str, Parameter], given: QueryDict) -> None:
    for name, parameter in declared.items():
        if parameter.required and name not in given:
            raise parameter.refusal("this query parameter is required")


def _shown(name: str) -> str:
    return pointer_token(name[:MAX_TEXT])


def cleaned_text(text: str, *, pointer: str) -> str:
    """A text that every database can store (report DATA-01: ``?q=%00``)."""
    try:
        return clean_text(text)
    except InvalidJSON as error:
        raise InvalidRequest.at(pointer, "not a text: it holds a lone surrogate") from error


def strict_integer(text: str) -> int | None:
    """The number, or None for anything but its plain decimal form (report DATA-04)."""
    return int(text) if _INTEGER.fullmatch(text) and text != "-0" else None
