"""A piece of a text, and what is marked in it."""

import pytest

from sessions_app.snippets import snippet_of
from sessions_app.terms import Query


def snippet(text, query):
    return [tuple(each) for each in snippet_of(text, Query.of(query))]


def marked(text, query):
    return [piece for piece, is_marked in snippet(text, query) if is_marked]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("The Refund and refunds", "refund", ["Refund", "refund"]),
        ("A Refunding", "ref", ["Ref"]),
        ("ﬁne Straße", "strasse", ["Straße"]),
        ("e\u0301tude", "Étu", ["e\u0301tu"]),
        ("我爱北京大学\uff01", "京大", ["京大"]),
        ("a_b = 100%", "% a_b", ["a_b", "%"]),
        ("a <b>script</b>", "script", ["script"]),
        ("k\nm other\nlast", "last k", ["k", "last"]),
        ("京大 北京", "北京大", []),
    ],
)
def test_marks_what_was_looked_for_as_it_is_spelt(text, query, expected):
    assert marked(text, query) == expected
    assert "".join(piece for piece, _ in snippet(text, query)) == text


def test_says_where_it_is_cut():
    found = snippet("x " * 300 + "Refund " + "y " * 300, "refund")
    (before, _), (word, _), (after, _) = found
    assert (before[:2], word, after[-1]) == ("… ", "Refund", "…") or before.startswith("…x")
    assert len(before + word + after) < 300


def test_never_takes_the_end_of_a_cut_word_for_another():
    assert marked("pre" + "fund" * 20 + " a fund", "fund") == ["fund"]
