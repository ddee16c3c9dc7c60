import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.errors import DossierError, InvalidJSON, InvalidRequest
from sessions_app.jsontext import JSONText, clean_text, loads, scrub

SURROGATES = st.characters(categories=["Cs"])
# As a body may hold them: no NUL, which is replaced, and no halves of pairs, which are refused.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=30,
)  # fmt: skip


def nested(levels: int, opening: str = "[", closing: str = "]") -> bytes:
    return (opening * levels + "1" * (opening != "[") + closing * levels).encode()


class Word(StrEnum):
    NUL = "a\x00b"


class Plain(Enum):
    NUL = "a\x00b"
    HALF = "\ud83d"


class TestABody:
    @given(values)
    def test_reads_as_the_value_that_was_sent(self, value: Any) -> None:
        for ascii_only in (True, False):
            assert repr(loads(json.dumps(value, ensure_ascii=ascii_only).encode())) == repr(value)

    @given(values)
    def test_is_stored_and_read_again_without_loss(self, value: Any) -> None:
        text = JSONText.of(loads(json.dumps(value).encode()))
        assert repr(text.value) == repr(value)
        assert JSONText.of(text.value) == text

    @given(
        st.binary()
        | st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))
        | st.text(st.sampled_from('{}[]":,\\u0dD8abcdef1eE.+-tnl \x00\n')).map(str.encode)
    )
    def test_of_any_bytes_is_read_or_refused(self, body: bytes) -> None:
        try:
            value = loads(body)
        except DossierError:
            return
        JSONText.of(value).text.encode()

    @pytest.mark.parametrize(
        "body",
        ["NaN", "Infinity", "-Infinity", "[NaN]", '{"a":Infinity}', "1e999", "-1e999",
         "[1e309]", "1" + "0" * 400 + ".0"],
    )  # fmt: skip
    def test_holds_finite_numbers_only(self, body: str) -> None:
        with pytest.raises(InvalidJSON):
            loads(body.encode())

    @pytest.mark.parametrize(
        "number",
        [2**53 + 1, 2**63, 2**64 + 1, -(10**30), 2512292042121000001, 10**4299],
    )
    def test_keeps_every_digit_of_an_integer(self, number: int) -> None:
        assert loads(str(number).encode()) == number
        assert JSONText.of(number).text == str(number)

    def test_with_a_longer_integer_than_python_reads_is_refused(self) -> None:
        with pytest.raises(InvalidJSON, match="4,300 digits"):
            loads(b"9" * 4301)

    @pytest.mark.parametrize(
        ("sent", "stored"),
        [("1.0", "1.0"), ("1", "1"), ("-0.0", "-0.0"), ("1e2", "100.0"), ("0.1", "0.1"),
         ("0.30000000000000004", "0.30000000000000004"), ("1e22", "1e+22"),
         ("5e-324", "5e-324")],
    )  # fmt: skip
    def test_keeps_doubles_in_their_shortest_form(self, sent: str, stored: str) -> None:
        assert JSONText.of(loads(sent.encode())).text == stored

    @pytest.mark.parametrize(
        "body",
        ['{"a":1,"a":1}', '{"a":1,"b":2,"a":3}', '[{"x":{"a":1,"a":2}}]', '{"a":1,"\\u0061":2}',
         '{"\\u0000":1,"\\ufffd":2}', '{"":1,"":2}'],
    )  # fmt: skip
    def test_holds_no_key_twice(self, body: str) -> None:
        with pytest.raises(InvalidJSON, match="twice"):
            loads(body.encode())

    @pytest.mark.parametrize(
        "text",
        [r'"\ud83d"', r'"abc \ud83d"', r'"\ude00"', r'"\ude00\ud83d"', r'{"a":["\uD83D"]}',
         r'{"\ud83d":1}', r'"\ud83d\u0041"', r'"\ud83dx\ude00"'],
    )  # fmt: skip
    def test_holds_no_lone_surrogate(self, text: str) -> None:
        with pytest.raises(InvalidJSON, match="surrogate"):
            loads(text.encode())

    def test_may_write_a_character_as_a_pair(self) -> None:
        assert loads(rb'"\ud83d\ude00 \uD83D\uDE00"') == "😀 😀"

    @pytest.mark.parametrize(
        ("sent", "read"),
        [
            (r'"a\u0000b"', "a\ufffdb"),
            (r'{"a\u0000":["\u0000"]}', {"a\ufffd": ["\ufffd"]}),
            (r'"\\u0000"', "\\u0000"),
            (r'"\\\u0000"', "\\\ufffd"),
            (r'"\\ud83d"', "\\ud83d"),
        ],
    )
    def test_has_its_nuls_replaced_and_nothing_else(self, sent: str, read: Any) -> None:
        value = loads(sent.encode())
        assert value == read
        assert JSONText.of(value).value == read

    @pytest.mark.parametrize(
        "body",
        [b"", b" ", b"{", b"[1,]", b"{'a':1}", b"01", b"+1", b".5", b"5.", b"1e", b"tru", b"a",
         b'"a', b'"\x01"', b'"\x00"', b'"\\x41"', b"// x\n1", b"1 2", b"\xff", b'"\xed\xa0\x80"',
         b'"\xc0\x80"', b"\xef\xbb\xbf1", "1".encode("utf-16"), b"\xa0{}", b"[1\x0b]"],
    )  # fmt: skip
    def test_that_is_not_json_in_utf8_is_refused(self, body: bytes) -> None:
        with pytest.raises(InvalidJSON):
            loads(body)

    @pytest.mark.parametrize("wrap", [("[", "]"), ('{"a":', "}")])
    @pytest.mark.parametrize("levels", [1, 100, 103])
    def test_may_be_nested_as_deep_as_a_field_in_its_envelope(
        self, levels: int, wrap: tuple[str, str]
    ) -> None:
        loads(nested(levels, *wrap))

    @pytest.mark.parametrize("wrap", [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
    @pytest.mark.parametrize("levels", [104, 500, 1_000, 20_000])
    def test_is_nested_no_deeper(self, levels: int, wrap: tuple[str, str]) -> None:
        with pytest.raises((InvalidJSON, InvalidRequest)):
            loads(nested(levels, *wrap))

    def test_that_opens_a_million_levels_is_refused(self) -> None:
        with pytest.raises(InvalidJSON, match="deep"):
            loads(b"[" * 1_000_000)

    def test_may_hold_any_number_of_brackets_in_its_strings(self) -> None:
        assert loads(b'"' + b"[{" * 1000 + b'"') == "[{" * 1000

    def test_may_be_wide(self) -> None:
        assert len(loads(b"[" + b"[]," * 10_000 + b"{}]")) == 10_001

    def test_is_refused_in_words_that_can_be_sent(self) -> None:
        for body in (rb'{"\ud83d":1,"\ud83d":2}', b'{"' + b"k" * 10**6 + b'":1,"k":2,"k":3}'):
            with pytest.raises(InvalidJSON) as caught:
                loads(body)
            assert len(caught.value.detail.encode()) < 500


class TestAStoredText:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ({"b": 1, "a": [None, "", [], {}]}, '{"b":1,"a":[null,"",[],{}]}'),
            ("问题 é 😀", '"问题 é 😀"'),
            ((1, 2), "[1,2]"),
            (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), '"2026-01-02T03:04:05+00:00"'),
            (date(2026, 1, 2), '"2026-01-02"'),
            (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
            ({1: "a", None: "b"}, '{"1":"a","null":"b"}'),
        ],
    )
    def test_is_compact_and_readable(self, value: Any, text: str) -> None:
        assert JSONText.of(value).text == text

    @pytest.mark.parametrize("value", ["a\x00b", Word.NUL, Plain.NUL])
    def test_holds_no_nul_whatever_it_comes_from(self, value: Any) -> None:
        stored = JSONText.of({"a": [value]})
        assert stored.value == {"a": ["a\ufffdb"]}
        assert "\\u0000" not in stored.text

    def test_leaves_a_written_out_escape_alone(self) -> None:
        assert JSONText.of("\\u0000").value == "\\u0000"

    @pytest.mark.parametrize("value", ["\ud83d", ["a\ude00"], {"\ud83d": 1}, Plain.HALF])
    def test_holds_no_lone_surrogate(self, value: Any) -> None:
        with pytest.raises(InvalidJSON):
            JSONText.of(value)

    @pytest.mark.parametrize(
        ("value", "pointer"),
        [
            (math.nan, "/parts/1/data"),
            (math.inf, "/parts/1/data"),
            ({1, 2}, "/parts/1/data"),
            (b"bytes", "/parts/1/data"),
            (Decimal("1.5"), "/parts/1/data"),
            (object(), "/parts/1/data"),
            (len, "/parts/1/data"),
            ({"a/b": [0, {"m~n": {1}}]}, "/parts/1/data/a~1b/1/m~0n"),
            pytest.param(10**5000, "/parts/1/data", id="too many digits"),
        ],
    )
    def test_of_what_has_no_json_form_is_refused_by_its_path(
        self, value: Any, pointer: str
    ) -> None:
        with pytest.raises(InvalidRequest) as caught:
            JSONText.of({"parts": [{"data": "fine"}, {"data": value}]})
        assert list(caught.value.pointers) == [pointer]

    def test_has_the_pointer_of_its_field_before_the_path(self) -> None:
        with pytest.raises(InvalidRequest) as caught:
            JSONText.of([{1}], pointer="/metadata")
        assert list(caught.value.pointers) == ["/metadata/0"]

    @pytest.mark.parametrize("copies", [1, 2])
    def test_cannot_hold_itself(self, copies: int) -> None:
        endless: list[Any] = []
        endless.extend([endless] * copies)
        with pytest.raises(InvalidRequest, match="itself"):
            JSONText.of(endless)

    @pytest.mark.parametrize(("levels", "wrapped", "deep"), [
        (100, 0, False), (101, 0, True), (101, 1, False), (102, 1, True), (5000, 0, True),
    ])  # fmt: skip
    def test_is_nested_up_to_the_limit(self, levels: int, wrapped: int, deep: bool) -> None:
        value: Any = "leaf"
        for number in range(levels):
            value = [value] if number % 2 else {"a": value}
        if deep:
            with pytest.raises(InvalidRequest, match="100 levels"):
                JSONText.of(value, pointer="/metadata", wrapped=wrapped)
        else:
            assert JSONText.of(value, wrapped=wrapped).value == value

    def test_that_is_deep_and_unencodable_is_refused_too(self) -> None:
        value: Any = {1}
        for _ in range(900):
            value = [value]
        with pytest.raises(InvalidRequest):
            JSONText.of(value)

    def test_is_not_encoded_twice(self) -> None:
        text = JSONText('{"a": 1e2}')
        assert JSONText.of(text) is text

    def test_is_parsed_afresh_at_each_look(self) -> None:
        text = JSONText('{"a":[]}')
        text.value["a"].append(1)
        assert text.value == {"a": []}

    def test_is_as_long_as_its_bytes(self) -> None:
        assert len(JSONText('"é"')) == 4

    def test_equals_the_same_text(self) -> None:
        assert JSONText("1") == JSONText("1")
        assert len({JSONText("1"), JSONText("1"), JSONText("1.0")}) == 2
        assert JSONText("1") != "1"


class TestCleaning:
    @given(st.text(SURROGATES | st.characters()))
    def test_gives_a_text_for_every_database_or_refuses(self, text: str) -> None:
        try:
            cleaned = clean_text(text)
        except InvalidJSON:
            assert any("\ud800" <= character <= "\udfff" for character in text)
        else:
            assert "\x00" not in cleaned
            assert len(cleaned) == len(text)
            cleaned.encode()

    def test_leaves_other_values_alone(self) -> None:
        value = [1, 1.5, True, None, {"a": 10**30}]
        assert scrub(value) == value
