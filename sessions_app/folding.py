"""Text as search compares it: folded, plain, and no longer than an index can hold."""

import unicodedata
from collections.abc import Iterator
from typing import Any

# A PostgreSQL tsvector ends at 1 MB; what stands later in a message is not searchable.
MAX_INDEXED_CHARACTERS = 64 * 1024


def fold(text: str) -> str:
    """Case-folded, compatibility-normalised text: the same for every way to write a word."""
    return unicodedata.normalize("NFKC", text).casefold()


def folded_text(content: Any) -> str:
    """The words of a message's content, folded: a string, or the text of a list of parts."""
    text = content if isinstance(content, str) else "\n".join(_texts(content))
    return fold(text[:MAX_INDEXED_CHARACTERS])[:MAX_INDEXED_CHARACTERS]


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            yield from _texts(part)
    elif isinstance(content, dict):
        for key in ("text", "content", "refusal", "summary"):
            yield from _texts(content.get(key))
