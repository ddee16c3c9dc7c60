"""How many tokens messages are: by their bytes, or exactly, where a tokenizer is installed.

The estimate is the bytes of a message's JSON as it is stored, divided by four: a column, so that a
window is chosen without reading what it leaves out. docs/RESUMING.md says how far it is from the
truth. With the setting TOKENIZER (``requirements-tokenizer.txt``) a window is chosen by what its
words really are to a model; then every message that it might hold is read.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from math import inf

from django.conf import settings

from ..rows import MessageRow
from .formats.parts import Call, Media, Native, Part, as_text, text_of
from .formats.stored import take_apart

# English and code run at about four bytes of JSON a token.
BYTES_PER_TOKEN = 4
# What every message costs beside its words, and about what a picture or a page does.
_MESSAGE_TOKENS = 4
_MEDIA_TOKENS = 1000
# Tokenizers refuse texts of many megabytes, and are slow on long ones without a space.
_CHUNK = 50_000

Counter = Callable[[MessageRow], int]


def bytes_for(max_tokens: int | None) -> float:
    """How many bytes of messages are no more than so many tokens by the estimate; infinite, where
    another judges."""
    if max_tokens is None or exact_counter() is not None:
        return inf
    return (max_tokens + 1) * BYTES_PER_TOKEN - 1


def tokens_of(messages: Iterable[MessageRow]) -> int:
    """How many tokens these are, by the estimate or exactly."""
    if count := exact_counter():
        return sum(map(count, messages))
    return sum(message.size for message in messages) // BYTES_PER_TOKEN


def exact_counter() -> Counter | None:
    """What counts a message's tokens, if the setting names a tokenizer."""
    return _counter(settings.TOKENIZER) if settings.TOKENIZER else None


@lru_cache(maxsize=2)
def _counter(name: str) -> Counter:
    library, encoding = name.split(":")
    encode: Callable[[str], list[int]] = (
        import_module(library).get_encoding(encoding).encode_ordinary
    )

    def words(text: str) -> int:
        starts = range(0, len(text), _CHUNK)
        return sum(len(encode(text[start : start + _CHUNK])) for start in starts)

    def count(message: MessageRow) -> int:
        return _MESSAGE_TOKENS + sum(
            _MEDIA_TOKENS if isinstance(said, Media) else words(said) for said in _said(message)
        )

    return count


def _said(message: MessageRow) -> Iterator[str | Media]:
    apart = take_apart(message)
    for said in apart.said:
        yield from _spoken(said.parts)
    for _, result in apart.results:
        yield from _spoken(result.parts)


def _spoken(parts: Iterable[Part]) -> Iterator[str | Media]:
    for part in parts:
        if isinstance(part, Call):
            yield from (part.name, part.text)
        elif isinstance(part, Media):
            yield part
        else:
            yield as_text(part.raw) if isinstance(part, Native) else text_of(part)
