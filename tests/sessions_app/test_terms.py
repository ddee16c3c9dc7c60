"""What matches what, before any database is asked."""

import pytest

from sessions_app.folding import MAX_INDEXED_CHARACTERS, fold
from sessions_app.terms import MAX_WORD, Query, index_terms


def terms(text):
    return set(index_terms(fold(text)).split(" "))


def matches(query, text):
    """As both databases do: each term is there, or is the beginning of one."""
    found = terms(text)
    return all(
        any(each.startswith(term) for each in found) if start else term in found
        for term, start in Query.of(query)._terms()
    )


@pytest.mark.parametrize(
    ("text", "found", "missed"),
    [
        (
            "A Refund of 5 EUR",
            ["refund", "REF", "r", "5", "eur refund", "\uff32efund"],
            ["fund", "50"],
        ),
        ("Straße, ﬁne", ["STRASSE", "strass", "fine"], ["trasse"]),
        ("e\u0301tude in Ünïcode", ["étude", "Étu", "ünïc"], ["etude"]),
        ("Привет, мир", ["ПРИВЕТ", "при", "мир"], ["вет"]),
        ("हिन्दी में", ["हिन्दी", "हिन्"], ["न्दी"]),
        ("مرحبا بك", ["مرحبا", "بك"], ["رحبا"]),
        (
            "我爱北京大学\uff01",
            ["北", "学", "北京", "京大学", "北京 爱", "\uff01", "学!"],
            ["大京", "北学", "海"],
        ),
        ("東京タワーのﾀﾜｰ", ["タワ", "ワーの", "東京", "ー"], ["タの"]),
        ("안녕하세요 세계", ["하세", "세계", "요"], ["요세"]),
        ("สวัสดีครับ", ["ครับ", "สวัส"], ["ครส"]),
        ("ok 🙂👍🏽 ❤️ 🇨🇳 👨\u200d👩", ["🙂", "👍", "🙂👍", "❤", "🇨🇳", "👩", "👨👩"], ["🇳🇨", "🎉"]),
        ("100% of a_b\\c", ["%", "100%", "_", "a_b", "\\", "b\\c"], ["%%", "a-b", "*"]),
        ("x*y (a|b) & !c : 'q' \"d\"", ["*", "x*", "(a|b)", "&", "!c", ":", "'q'", '"d"'], ["<->"]),
        ("C++ and list_files", ["c++", "files", "list_"], ["c+-"]),
        ("iPhone手机", ["iphone手机", "手", "iph"], ["phone"]),
    ],
)
def test_words_match_by_their_beginning_and_signs_side_by_side(text, found, missed):
    assert [query for query in found if not matches(query, text)] == []
    assert [query for query in missed if matches(query, text)] == []


@pytest.mark.parametrize("text", ["", " \t\n\u3000", "\u200b\ufe0f", "\x01", "\ue025"])
def test_what_cannot_be_seen_is_nothing_to_look_for(text):
    assert not Query.of(text)
    assert index_terms(fold(text)) == ""


def test_terms_hold_nothing_that_a_database_takes_for_its_own():
    everything = "".join(chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000)
    found = index_terms(fold(everything[:MAX_INDEXED_CHARACTERS]))
    assert all(sign.isalnum() for sign in found if sign.isascii() and sign != " ")
    assert all(len(term.encode()) < 2_046 for term in found.split(" "))


def test_a_text_as_long_as_it_may_be_fits_into_a_tsvector():
    text = "".join(chr(0x20000 + code % 40_000) for code in range(MAX_INDEXED_CHARACTERS))
    assert sum(len(term.encode()) for term in terms(text)) < 2**20 - 1


def test_a_long_word_is_found_by_what_is_kept_of_it():
    word = "x" * (2 * MAX_WORD)
    assert matches(word, word)
    assert matches(word[:10], word)
