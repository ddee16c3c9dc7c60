"""What a variable of the environment must be, where environs does not know."""

from importlib.util import find_spec
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from environs import ValidationError


def long_or_none(secret: str) -> None:
    if 0 < len(secret) < 16:  # noqa: PLR2004
        raise ValidationError("A secret has at least 16 characters.")


def known_time_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise ValidationError(f"There is no time zone {name}.") from error


def usable_tokenizer(name: str) -> None:
    library, _colon, encoding = name.partition(":")
    if name and not (library in ("bpe_openai", "tiktoken") and encoding):
        raise ValidationError("A tokenizer is bpe_openai:ENCODING or tiktoken:ENCODING.")
    if name and find_spec(library) is None:
        raise ValidationError(f"{library} is not installed: see requirements-tokenizer.txt.")
