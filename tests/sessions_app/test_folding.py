import pytest

from sessions_app.folding import MAX_INDEXED_CHARACTERS, fold, folded_text, message_text
from tests.domain import user


class TestFold:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Straße", "STRASSE"),
            ("Ärger", "A\u0308rger"),
            ("ﬁle", "FILE"),
            ("\uff21\uff22\uff23", "abc"),
            ("ΣΊΣΥΦΟΣ", "σίσυφος"),
            ("Привет", "привет"),
            ("问题", "问题"),
        ],
    )
    def test_is_the_same_for_every_way_to_write_a_word(self, one, other):
        assert fold(one) == fold(other)

    @pytest.mark.parametrize("text", ["50%", "a_b", 'a"b', "a\\b", "😀"])
    def test_keeps_what_a_search_takes_literally(self, text):
        assert fold(text) == text


class TestFoldedText:
    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (None, ""),
            ("", ""),
            ([], ""),
            ("Hello World", "hello world"),
            ([{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}], "one\ntwo"),
            ([{"type": "refusal", "refusal": "No"}], "no"),
            ([{"type": "tool_result", "tool_use_id": "c", "content": "Found"}], "found"),
            (
                [
                    {
                        "type": "tool_result",
                        "content": [{"type": "text", "text": "Deep"}],
                    }
                ],
                "deep",
            ),
            ([{"type": "image", "source": {"data": "iVBORw0KGgo"}}], ""),
            ([{"type": "text", "text": 5}], ""),
        ],
    )
    def test_is_the_words_of_the_content(self, content, expected):
        assert folded_text(message_text({"content": content})) == expected

    @pytest.mark.parametrize("character", ["x", "\ufdfa", "ß"])
    def test_is_bounded_even_if_folding_makes_it_longer(self, character):
        text = folded_text(character * (MAX_INDEXED_CHARACTERS + 10))
        assert len(text) == MAX_INDEXED_CHARACTERS

    def test_stands_beside_the_message(self, desk):
        session_id = desk.open()
        message = desk.append(session_id, user("Grüße, 问题")).messages[0]
        message.refresh_from_db()
        assert message.text == "grüsse, 问题"
