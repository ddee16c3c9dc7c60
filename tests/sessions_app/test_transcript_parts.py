"""What a transcript makes of what clients send: text, and nothing that a browser would run."""

import pytest

from sessions_app.console.markdown import highlighted, markdown
from sessions_app.console.terminal import coloured, plain
from sessions_app.console.transcript import blocks_of, whole_text
from sessions_app.console.transcript.parts import FOLDED_CHARACTERS, value_html
from tests.admin import Page


class TestMarkdown:
    @pytest.mark.parametrize(
        "text",
        [
            "<script>evil()</script>",
            "<img src=x onerror=evil()>",
            "[x](javascript:evil())",
            "[x](data:text/html,evil)",
            "[x](vbscript:evil)",
            "<javascript:evil()>",
            "![x](https://evil.example/x.png)",
            "![x](javascript:evil())",
            '```"onload=evil()\nx\n```',
            "<a href='javascript:evil()'>x</a>",
            "[x]: javascript:evil()\n\n[x]",
            "&#60;script&#62;evil()&#60;/script&#62;",
        ],
    )
    def test_runs_and_fetches_nothing(self, text):
        page = Page(markdown(text))
        for tag, attributes in page.tags:
            assert tag not in {"script", "img", "style", "iframe"}
            assert not [name for name in attributes if name.startswith("on")]
            assert attributes.get("href", "https://").startswith(("http", "mailto:"))

    def test_has_tables_lists_and_coloured_code(self):
        page = Page(markdown("# A\n\n|a|b|\n|-|-|\n|1|2|\n\n- x\n\n```python\ndef f(): pass\n```"))
        tags = [tag for tag, _attributes in page.tags]
        assert {"h4", "table", "ul", "pre"} <= set(tags)
        assert {"class": "k"} in page.of("span")
        assert not [attributes for _tag, attributes in page.tags if "style" in attributes]

    def test_leads_elsewhere_without_saying_from_where(self):
        (link,) = Page(markdown("[x](https://example.org)")).of("a")
        assert link["rel"] == "noopener noreferrer nofollow"

    def test_leaves_code_of_an_unknown_language_as_it_is(self):
        assert highlighted("a < b", "no-such-language") == "a &lt; b"


class TestATerminalsText:
    def test_keeps_its_colours_as_classes(self):
        assert coloured("\x1b[1;31mno\x1b[0m yes") == (
            '<span class="ansi-bold ansi-red">no</span> yes'
        )

    def test_loses_its_other_controls(self):
        assert plain("\x1b]0;title\x07a\x1b[2Kb\x1b[38;5;9mc") == "abc"
        assert coloured("\x1b[999999999999999m<b>") == "&lt;b&gt;"

    def test_shows_what_is_left_of_them(self):
        assert coloured("\x1b[31ma\x07") == '<span class="ansi-red">a⟨U+0007⟩</span>'


class TestParts:
    def test_of_every_kind_are_shown(self):
        body = {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "**so**"},
                {"type": "tool_use", "id": "a", "name": "ls", "input": {}},
                {"type": "image", "source": {"media_type": "image/png", "data": "aGk="}},
                {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}},
                {"type": "custom", "list": [[], None]},
            ],
            "refusal": "no",
        }
        kinds = [block.kind for block in blocks_of(body)]
        assert kinds == ["thought", "text", "image", "note", "data", "refusal"]

    @pytest.mark.parametrize(
        ("item", "kinds"),
        [
            ({"type": "reasoning", "summary": []}, ["thought"]),
            ({"type": "web_search_call", "id": "ws"}, ["hosted"]),
            ({"type": "function_call", "name": "ls"}, []),
            ({"type": "message", "content": [{"type": "output_text", "text": "a"}]}, ["text"]),
        ],
    )
    def test_of_a_providers_item(self, item, kinds):
        assert [block.kind for block in blocks_of({"item": item})] == kinds

    @pytest.mark.parametrize(
        "body",
        [
            None,
            {},
            {"content": None},
            {"content": ""},
            {"content": [{"type": "text"}]},
            {"content": [{"type": "image", "source": 1}]},
            {"reasoning": {"a": 1}},
            {"content": [{"type": "thinking", "thinking": {"a": []}}]},
            {"refusal": 1},
            {"item": {"type": "message", "role": [], "content": [1, None, [], {}]}},
        ],
    )
    def test_of_odd_shapes_break_nothing(self, body):
        assert isinstance(blocks_of(body), list)
        assert whole_text(body, 7) is None

    def test_that_are_long_are_folded(self):
        (block,) = blocks_of({"content": "x" * 5_000})
        assert block.rest == 5_000 - FOLDED_CHARACTERS
        assert "x" * 5_000 in str(whole_text({"content": "x" * 5_000}, 0))

    def test_that_are_json_are_indented(self):
        assert Page(value_html('{"a": [1]}')).text.split() == ["{", '"a"', ":", "[", "1", "]", "}"]
        assert value_html("{not json") == "{not json"
        assert value_html("[" * 30_000) == "[" * 30_000
        deep = "[" * 700 + "]" * 700
        assert "[" in value_html(deep)
