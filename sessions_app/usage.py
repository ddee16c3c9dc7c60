"""What model calls cost: tokens, and money in billionths of a dollar."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from typing import Any

from .errors import InvalidRequest

# Far above any real figure. A sum of such figures stops at what a column holds.
_MAX_TOKENS = 10**12
_MAX_COST_USD = 10**6
_MOST = 2**63 - 1
_NANO = Decimal(10) ** 9
# ASCII digits only: `Decimal` also takes "٣", " 3 " and "1_000".
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

TOKEN_FIELDS = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0
    cost_nanousd: int = 0

    @classmethod
    def from_client(cls, raw: Any, *, pointer: str) -> "Usage":
        """Read a ``usage`` object; names that are not ours do not count.

        ``cost_usd`` is a decimal string or a number, kept to nine places.

        Raises:
            InvalidRequest: not an object, or a figure that is negative, too large or no number.
        """
        if raw is None:
            return NO_USAGE
        if not isinstance(raw, Mapping):
            raise InvalidRequest.at(pointer, "must be an object or null")
        tokens = {name: _tokens(raw.get(name), f"{pointer}/{name}") for name in TOKEN_FIELDS}
        return cls(**tokens, cost_nanousd=_cost(raw.get("cost_usd"), f"{pointer}/cost_usd"))

    @classmethod
    def of_total(cls, raw: Any, *, pointer: str) -> "Usage":
        """Read what `usage_of` wrote: a sum, which may be more than one figure may be.

        Raises:
            InvalidRequest: it is none.
        """
        if not isinstance(raw, Mapping) or not raw.keys() <= {*TOKEN_FIELDS, "cost_usd"}:
            raise InvalidRequest.at(pointer, f"must hold {', '.join(TOKEN_FIELDS)} and cost_usd")
        tokens = {
            name: _tokens(raw.get(name), f"{pointer}/{name}", most=_MOST) for name in TOKEN_FIELDS
        }
        most = _MOST // 10**9 + 1  # `store` stops at what a column holds
        cost = _cost(raw.get("cost_usd"), f"{pointer}/cost_usd", most=most)
        return cls(**tokens, cost_nanousd=cost)

    @classmethod
    def of(cls, row: Any) -> "Usage":
        """The usage that a session's or a run's row has counted."""
        return cls(**{field.name: getattr(row, field.name) for field in fields(cls)})

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))

    def __bool__(self) -> bool:
        return any(self)

    def __iter__(self) -> Any:
        return (getattr(self, field.name) for field in fields(self))

    @classmethod
    def columns(cls) -> list[str]:
        """The names of the columns that hold it."""
        return [field.name for field in fields(cls)]

    def store(self, row: Any) -> None:
        """Set the row's usage columns: no figure may make a write impossible."""
        for field in fields(self):
            setattr(row, field.name, max(0, min(getattr(self, field.name), _MOST)))


NO_USAGE = Usage()


def usage_of(row: Any) -> dict[str, Any]:
    """The contract's ``usage`` object, of whatever has the columns."""
    return {
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "cached_input_tokens": row.cached_input_tokens,
        "reasoning_tokens": row.reasoning_tokens,
        "cost_usd": _decimal_string(row.cost_nanousd),
    }


def _tokens(value: Any, pointer: str, *, most: int = _MAX_TOKENS) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise InvalidRequest.at(pointer, f"must be an integer from 0 to {most}")
    return value


def _cost(value: Any, pointer: str, *, most: int = _MAX_COST_USD) -> int:
    if value is None:
        return 0
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InvalidOperation
        if isinstance(value, str) and not _DECIMAL.fullmatch(value):
            raise InvalidOperation
        amount = Decimal(str(value))
        if not amount.is_finite() or not 0 <= amount <= most:
            raise InvalidOperation
    except InvalidOperation as error:
        raise InvalidRequest.at(
            pointer, f"must be a decimal string or a number from 0 to {most}"
        ) from error
    return int((amount * _NANO).to_integral_value())


def _decimal_string(nanousd: int) -> str:
    if not nanousd:
        return "0"
    text = f"{nanousd // 10**9}.{nanousd % 10**9:09}"
    return text.rstrip("0").rstrip(".")
