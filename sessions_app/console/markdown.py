"""What agents write in Markdown, as HTML that can only be text: no markup of theirs, no picture
from elsewhere, no address but a web page's."""

import re
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from io import StringIO
from typing import Any

import nh3
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

MOST_CHARACTERS = 64 * 1024
"""A megabyte of Markdown takes five seconds; what is longer is shown as plain text."""

MOST_EFFORT = 8_000
"""What a page spends on Markdown: about a second, if each sign is as dear as the dearest."""

_MOST_HIGHLIGHTED = 8 * 1024
_MOST_JSON = 32 * 1024
_LONGEST_HIGHLIGHTING = (
    0.1  # seconds: most lexers can be made to take the square of a text's length
)
# Whoever writes a text chooses its lexer, and some of the 500 never come to an end.
_LANGUAGES = {
    *("bash", "c", "c#", "c++", "cpp", "csharp", "css", "diff", "docker", "dockerfile", "go"),
    *("golang", "html", "http", "java", "javascript", "js", "json", "jsx", "kotlin", "lua"),
    *("markdown", "md", "nginx", "perl", "php", "powershell", "py", "python", "python3", "r"),
    *("rb", "rs", "ruby", "rust", "scss", "sh", "shell", "sql", "swift", "toml", "ts", "tsx"),
    *("typescript", "xml", "yaml", "yml", "zsh"),
}
# Of these, and of lines, the time of the parser is made.
_DEAR = re.compile(r"[\n\[\]!*_~<&`#=-]")
_HEADINGS = 3  # how far down: the page has headings of its own
_TAGS = {
    *("p", "br", "hr", "strong", "em", "s", "code", "pre", "blockquote", "a", "span", "div"),
    *("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "h4", "h5", "h6"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "span": {"class"}, "div": {"class"}, "ol": {"start"}}
_formatter = HtmlFormatter(nowrap=True)


class Budget:
    """What is left of the effort that a page may take: what does not fit is shown as it is written.

    Four kilobytes of Markdown are ready in 35 ms, four of nothing but brackets in half a second.
    """

    def __init__(self) -> None:
        self.left = MOST_EFFORT

    def affords(self, text: str) -> bool:
        effort = len(_DEAR.findall(text))
        if effort > self.left:
            return False
        self.left -= effort
        return True


def markdown(text: str, budget: Budget | None = None) -> SafeString:
    """Text that `visible` has cleaned, of at most `MOST_CHARACTERS`; plain, where the budget (by
    default that of a page for this text alone) does not suffice."""
    if (budget or Budget()).affords(text):
        return _rendered(text)
    return format_html('<div class="as-written">{}</div>', text)


def highlighted(code: str, language: str) -> SafeString:
    """Code with classes for its colours, as far as its lexer comes in time; as it is, where it is
    long, or of no language that many speak."""
    most = _MOST_JSON if language == "json" else _MOST_HIGHLIGHTED
    if language.lower() not in _LANGUAGES or len(code) > most:
        return escape(code)
    code = code.replace("\r\n", "\n")
    html, reached = StringIO(), [0]
    _formatter.format(_in_time(code, language, reached), html)
    # The formatter ends the last line, whether or not the text does.
    done, rest = html.getvalue().removesuffix("\n"), code[reached[0] :]
    ended = "\n" if code[: reached[0]].endswith("\n") else ""
    return mark_safe(done + ended + escape(rest))  # noqa: S308  Pygments escapes


def _in_time(code: str, language: str, reached: list[int]) -> Iterator[Any]:
    """Tokens; ``reached`` is told up to where they came."""
    until = time.monotonic() + _LONGEST_HIGHLIGHTING
    for index, kind, text in get_lexer_by_name(language.lower()).get_tokens_unprocessed(code):
        yield kind, text
        reached[0] = index + len(text)
        if time.monotonic() > until:
            return


@lru_cache(maxsize=256)
def _rendered(text: str) -> SafeString:
    html = _parser.render(text)
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)  # noqa: S308  just cleaned


def _fence(code: str, language: str, _attributes: str) -> str:
    label = f'<div class="code-language">{escape(language)}</div>' if language else ""
    return f"<pre>{label}<code>{highlighted(code, language)}</code></pre>"


def _image(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any
) -> str:
    """A picture would be fetched from another host: its words and its address instead."""
    token = tokens[index]
    address = str(token.attrs.get("src", ""))
    words = token.content or address
    if address.startswith(("http://", "https://")):
        return f'<a href="{escape(address)}">{escape(words)}</a>'
    return f"[{escape(words)}]"


def _parser_of_ours() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "highlight": _fence})
    parser.enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image)
    parser.core.ruler.push("lower_headings", _lower_headings)
    return parser


def _lower_headings(state: Any) -> None:
    for token in state.tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + _HEADINGS)}"


_parser = _parser_of_ours()
