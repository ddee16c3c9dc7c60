"""The terms by which texts are found: made here alone, both of what is stored and of what is looked
for, so that SQLite and PostgreSQL find the same.

*Words* (letters, digits and their marks, of scripts that part words by spaces) are found by their
beginning. Everything else that can be seen (Chinese, Japanese, Korean, Thai, emoji, punctuation) is
found by its characters and which one follows which: the terms of a run of them are all of its
pairs, and its last character. So one character is the beginning of a term, and several are found by
their pairs. No sign means anything but itself.

Texts are folded first. Terms have neither spaces nor ASCII signs, which a tsvector and an FTS5
table, and their queries, would take for their own: signs of ASCII are written as characters of
private use.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import add

from .folding import fold

# A tsvector's term ends at 2,046 bytes. Of what is longer (base64), the beginning is compared.
MAX_WORD = 64

# Thai and Lao; Myanmar; Hangul letters; Khmer; Chinese, Japanese, Yi; Hangul; their supplements.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff]"
)


def _is_of_words(character: str) -> bool:
    """With marks that no composition takes in, such as the vowels of Hindi."""
    is_part = character.isalnum() or unicodedata.category(character)[0] == "M"
    return is_part and not _UNSPACED.match(character)


def _is_nothing(character: str) -> bool:
    """Spaces, controls; also private use, by which signs of ASCII are written."""
    return character == " " or not character.isprintable()


def _class_of(belongs: Callable[[str], bool]) -> str:
    """Characters below U+10000, as a regular expression's class says them. Written out they are
    looked up in a bitmap; ``\\w`` less some ranges takes twenty times as long."""
    found = [code for code in range(0x10000) if belongs(chr(code))]
    spans = [(run[0], run[-1]) for run in _runs(found)]
    return "".join(f"\\u{first:04x}-\\u{last:04x}" for first, last in spans)


def _runs(codes: list[int]) -> list[list[int]]:
    groups = groupby(enumerate(codes), key=lambda item: item[1] - item[0])
    return [[code for _, code in run] for _, run in groups]


_OF_WORDS = _class_of(_is_of_words)
_OF_SIGNS = f"^{_OF_WORDS}{_class_of(_is_nothing)}"
_WORDS, _SIGNS = re.compile(f"[{_OF_WORDS}]+"), re.compile(f"[{_OF_SIGNS}]+")
_TOKEN = re.compile(f"([{_OF_WORDS}]+)|([{_OF_SIGNS}]+)")
# Joiners, directions, variants: what is not seen makes no difference.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff]+"
)
_ASCII_SIGN = re.compile(r"[!-/:-@\[-`{-~]")
_PRIVATE_USE = 0xE000


@dataclass(frozen=True, slots=True)
class Wanted:
    """One thing that must stand in a text: a word, or signs in their order; folded."""

    text: str
    is_word: bool

    @property
    def terms(self) -> list[str]:
        """As they are indexed; all of them must be there."""
        if self.is_word:
            return [self.text[:MAX_WORD]]
        encoded = _encoded(self.text)
        return _pairs(encoded)[:-1] or [encoded]

    @property
    def is_beginning(self) -> bool:
        """Whether any longer term serves, too."""
        return self.is_word or len(self.text) == 1


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: a text matches that has all of it."""

    wanted: tuple[Wanted, ...]

    @classmethod
    def of(cls, text: str) -> "Query":
        return cls(
            tuple(
                dict.fromkeys(
                    Wanted(token, is_word) for _, token, is_word in tokens_at(normal(text))
                )
            )
        )

    def __bool__(self) -> bool:
        return bool(self.wanted)

    def as_tsquery(self) -> str:
        """For ``@@`` of PostgreSQL."""
        return " & ".join(f"'{term}'{':*' if start else ''}" for term, start in self._terms())

    def as_fts5(self) -> str:
        """For ``MATCH`` of SQLite."""
        return " AND ".join(f'"{term}"{"*" if start else ""}' for term, start in self._terms())

    def _terms(self) -> dict[tuple[str, bool], None]:
        """Each term once, and whether a longer one serves, too."""
        terms = ((term, each.is_beginning) for each in self.wanted for term in each.terms)
        return dict.fromkeys(terms)


def index_terms(folded: str) -> str:
    """The terms of a folded text, each once, with a space between them: what both databases take
    as it is."""
    # Nothing reaches over a space, and most of a text is said more than once.
    text = _visible(" ".join(set(folded.split())))
    found = {word[:MAX_WORD] for word in set(_WORDS.findall(text))}
    for run in set(_SIGNS.findall(text)):
        found.update(_pairs(_encoded(run)))
    return " ".join(found)


def normal(text: str) -> str:
    """Folded, without what is not seen: in what `tokens_at` looks."""
    return _visible(fold(text))


def tokens_at(text: str) -> Iterator[tuple[int, str, bool]]:
    """Words, and signs that stand together, in their order: where, what, and whether it is a
    word."""
    for found in _TOKEN.finditer(text):
        yield found.start(), found[0], found[1] is not None


def _visible(text: str) -> str:
    return text if text.isascii() else _INVISIBLE.sub("", text)


def _encoded(run: str) -> str:
    return _ASCII_SIGN.sub(lambda sign: chr(_PRIVATE_USE + ord(sign[0])), run)


def _pairs(run: str) -> list[str]:
    """Each character with the next one, and the last one alone."""
    return [*map(add, run, run[1:]), run[-1]]
