"""What a transcript makes of what clients send: text, and nothing that a browser would run."""

import pytest

from sessions_app.console import markdown as markdown_module
from sessions_app.console.markdown import MOST_EFFORT, Budget, highlighted, markdown
from sessions_app.console.terminal import coloured, plain
from sessions_app.console.transcript import blocks_of, whole_text
from sessions_app.console.transcript.parts import (
    FOLDED_CHARACTERS,
    MOST_IMAGES,
    MOST_PARTS,
    value_html,
)
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

    @pytest.mark.parametrize("language", ["no-such-language", "autohotkey", "Makefile"])
    def test_leaves_code_of_a_language_that_few_speak_as_it_is(self, language):
        """Some lexers take the square, or the third power, of a text's length."""
        assert highlighted("a < b", language) == "a &lt; b"

    def test_leaves_code_as_it_is_from_where_its_time_is_up(self, monkeypatch):
        monkeypatch.setattr(markdown_module, "_LONGEST_HIGHLIGHTING", -1)
        html = highlighted("def f(a):\r\n    return '<b>'", "Python")
        assert html == '<span class="k">def</span> f(a):\n    return &#x27;&lt;b&gt;&#x27;'

    def test_of_a_page_takes_so_much_effort_and_no_more(self):
        """Four kilobytes of brackets take half a second, and a page has thirty such messages."""
        budget = Budget()
        dear = "[" * (MOST_EFFORT // 2)
        shown = [markdown(text, budget) for text in (dear, dear + "<b>", dear, "**b**")]
        as_written = ['class="as-written"' in html for html in shown]
        assert as_written == [False, True, False, True]
        assert "&lt;b&gt;" in shown[1]
        assert "<strong>" in markdown("**b** " * 1_000)


class TestATerminalsText:
    def test_keeps_its_colours_as_classes(self):
        assert coloured("\x1b[1;31mno\x1b[0m yes") == (
            '<span class="ansi-bold ansi-red">no</span> yes'
        )

    def test_loses_its_other_controls(self):
        assert plain("\x1b]0;title\x07a\x1b[2Kb\x1b[38;5;9mc") == "abc"
        assert coloured("\x1b[999999999999999m<b>") == "&lt;b&gt;"

    def test_stays_small_however_often_it_is_coloured(self):
        html = coloured("\x1b[1m.\x1b[31m." * 1_000)
        assert html.count("ansi-bold") == html.count("<span") == 2_000
        assert coloured("\x1b[" + "9" * 5_000 + "mx") == "x"

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
        ("item", "name", "subject", "status"),
        [
            (
                {"type": "web_search_call", "action": {"query": "cats"}, "status": "completed"},
                "Web search",
                "cats",
                "COMPLETED",
            ),
            (
                {"type": "shell_call", "action": {"commands": ["ls", "pwd"]}, "status": "failed"},
                "Shell",
                "ls; pwd",
                "FAILED",
            ),
            (
                {"type": "mcp_call", "server_label": "s", "name": "f", "error": {"message": "no"}},
                "s · f",
                "",
                "FAILED",
            ),
            ({"type": "code_interpreter_call", "code": "1\n+ 1"}, "Code interpreter", "1 + 1", ""),
            ({"type": "file_search_call", "status": "searching"}, "File search", "", "RUNNING"),
            ({"type": "never_heard_of"}, "never_heard_of", "", ""),
            ({"type": "mcp_call", "name": 1, "action": [], "status": {}}, "mcp_call", "", ""),
        ],
    )
    def test_of_a_hosted_tool_are_a_card(self, item, name, subject, status):
        (block,) = blocks_of({"item": item})
        assert block.card is not None
        assert block.card[:3] == (name, subject, status)
        assert block.values

    def test_of_a_tool_that_paints_show_its_picture(self):
        item = {"type": "image_generation_call", "result": "aGk=", "status": "completed"}
        (block,) = blocks_of({"item": item})
        assert [(each.kind, each.html) for each in block.values] == [
            ("image", "data:image/png;base64,aGk=")
        ]
        screen = {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="}
        (block,) = blocks_of({"item": {"type": "computer_call_output", "output": screen}})
        assert [each.kind for each in block.values] == ["image"]
        assert block.card is not None
        assert block.card.is_answer

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

    def test_that_are_very_many_are_left_out_and_counted(self):
        parts = [{"type": "text", "text": "a"}] * (MOST_PARTS + 1_000)
        *shown, last = blocks_of({"content": [{"type": "tool_result"}, *parts]})
        assert {block.kind for block in shown} == {"text"}
        assert (len(shown), shown[0].ref, last.kind) == (MOST_PARTS, "1", "beyond")
        assert last.label == "1,000 more parts"
        *shown, last = blocks_of({"item": {"type": "message", "content": parts}})
        assert (len(shown), last.kind) == (MOST_PARTS, "beyond")

    def test_that_are_large_pictures_are_left_out(self):
        picture = "data:image/png;base64," + "A" * (MOST_IMAGES // 3)
        parts = [{"type": "image_url", "image_url": {"url": picture}}] * 4
        kinds = [block.kind for block in blocks_of({"content": parts})]
        assert kinds == ["image", "image", "note", "note"]

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
