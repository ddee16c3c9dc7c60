"""A piece of a text in which the words that were looked for are marked."""

import re
from itertools import accumulate, groupby
from operator import itemgetter
from typing import NamedTuple

from .folding import MAX_INDEXED_CHARACTERS
from .terms import Query, normal, tokens_at

_BEFORE, _AFTER = 60, 180
_LINE = re.compile(r".+")
# A character and the marks that folding may join to it.
_CLUSTER = re.compile(r".[\u0300-\u036f\u3099\u309a]*", re.DOTALL)

Span = tuple[int, int]


class Segment(NamedTuple):
    text: str
    marked: bool


def snippet_of(text: str, query: Query) -> list[Segment]:
    """The text around the first place that has any of it; of a text that has nothing of it in one
    piece, its beginning. ``…`` stands where it is cut. Only as much is looked at as is indexed.
    """
    text = text[:MAX_INDEXED_CHARACTERS]
    first = _first(text, query)
    begin, end = max(0, first - _BEFORE), first + _AFTER
    folded, places = _aligned(text[begin:end])
    spans = [(places[start], places[stop]) for start, stop in _spans(folded, query)]
    # What is cut in two may look like another word.
    marked = [span for span in spans if span[0] > 0 or begin == 0]
    segments = _segments(text[begin:end], marked)
    cut = Segment("…", marked=False)
    return _joined([cut] * (begin > 0) + segments + [cut] * (end < len(text)))


def _first(text: str, query: Query) -> int:
    for line in _LINE.finditer(text):
        folded = normal(line[0])
        if spans := _spans(folded, query):
            start = min(spans)[0]
            same = len(folded) == len(line[0])
            return line.start() + (start if same else _aligned(line[0])[1][start])
    return 0


def _spans(folded: str, query: Query) -> list[Span]:
    """Where in the text any of it stands: beginnings of words, and signs."""
    words = [each.terms[0] for each in query.wanted if each.is_word]
    signs = [re.escape(each.text) for each in query.wanted if not each.is_word]
    sign = re.compile("|".join(sorted(signs, key=len, reverse=True))) if signs else None
    found = []
    for start, token, is_word in tokens_at(folded):
        if is_word:
            longest = max((len(word) for word in words if token.startswith(word)), default=0)
            found += [(start, start + longest)] if longest else []
        elif sign:
            found += [(start + at.start(), start + at.end()) for at in sign.finditer(token)]
    return found


def _aligned(text: str) -> tuple[str, list[int]]:
    """The text as it is compared, and where in it as it is spelt each character begins; one more
    for its end."""
    folded = normal(text)
    if len(folded) == len(text):
        return folded, list(range(len(text) + 1))
    clusters = _CLUSTER.findall(text)
    begins = [0, *accumulate(map(len, clusters))]
    parts = [normal(cluster) for cluster in clusters]
    places = [begin for part, begin in zip(parts, begins, strict=False) for _ in part]
    return "".join(parts), [*places, len(text)]


def _segments(piece: str, spans: list[Span]) -> list[Segment]:
    segments, last = [], 0
    for start, stop in spans:
        segments += [Segment(piece[last:start], False), Segment(piece[start:stop], True)]
        last = stop
    return [*segments, Segment(piece[last:], False)]


def _joined(segments: list[Segment]) -> list[Segment]:
    """Without empty ones, and no two alike side by side."""
    alike = groupby(filter(itemgetter(0), segments), key=itemgetter(1))
    return [Segment("".join(text for text, _ in each), marked) for marked, each in alike]
