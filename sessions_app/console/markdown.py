"""What agents write in Markdown, as HTML that can only be text: no markup of theirs, no picture
from elsewhere, no address but a web page's."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

MOST_CHARACTERS = 64 * 1024
"""A megabyte of Markdown takes five seconds; what is longer is shown as plain text."""

_MOST_HIGHLIGHTED = 32 * 1024
_HEADINGS = 3  # how far down: the page has headings of its own
_TAGS = {
    *("p", "br", "hr", "strong", "em", "s", "code", "pre", "blockquote", "a", "span", "div"),
    *("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "h4", "h5", "h6"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "span": {"class"}, "div": {"class"}, "ol": {"start"}}
_formatter = HtmlFormatter(nowrap=True)


def markdown(text: str) -> SafeString:
    """Text that `visible` has cleaned, of at most `MOST_CHARACTERS`."""
    return _rendered(text)


def highlighted(code: str, language: str) -> SafeString:
    """Code with classes for its colours; as it is, where the language is unknown or it is long."""
    if not language or len(code) > _MOST_HIGHLIGHTED:
        return escape(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return escape(code)
    return mark_safe(highlight(code, lexer, _formatter))  # noqa: S308  Pygments escapes


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
