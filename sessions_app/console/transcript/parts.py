"""What a message says, part by part, whatever its provider's form."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..markdown import MOST_CHARACTERS, Budget, highlighted, markdown
from ..terminal import coloured, plain
from ..values import number, visible
from .hosted import HostedCard, hosted_card

FOLDED_CHARACTERS = 4_096
_FOLDED_LINES = 24  # of what is folded: a log has short ones
MOST_PLAIN = 256 * 1024
MOST_IMAGE = 512 * 1024
MOST_IMAGES = 1024 * 1024  # of one message
MOST_PARTS = 100
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")
_TEXTS = {"text", "input_text", "output_text", "refusal", "summary_text", "reasoning_text"}
_IMAGES = {"image", "image_url", "input_image", "computer_screenshot"}
_THOUGHTS = {"thinking", "reasoning", "redacted_thinking"}
# Parts that a card of the call shows.
CALLS = {"tool_use", "tool_result", "function_call", "function_call_output"}


class Block(NamedTuple):
    """``kind`` chooses how it looks; ``rest`` is how many characters are folded away, ``ref`` where
    the whole is found. Of an item ``card`` says what it is, and ``values`` are below it."""

    kind: str
    html: SafeString | str = ""
    label: str = ""
    rest: int = 0
    ref: str = ""
    card: HostedCard | None = None
    values: Sequence["Block"] = ()


def blocks_of(body: Mapping[str, Any] | None, budget: Budget | None = None) -> list[Block]:
    """What a message says but its tool calls and their results; of very many parts the first."""
    if not body:
        return []
    return _Blocks(budget or Budget()).of(body)


class _Blocks:
    """One message, taken apart."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.images = MOST_IMAGES

    def of(self, body: Mapping[str, Any]) -> list[Block]:
        found = list(self._thoughts(body))
        if item := body.get("item"):
            found += self._item(item)
        found += self._all(_parts(body.get("content")))
        if isinstance(body.get("refusal"), str) and body["refusal"]:
            html, rest = self._text(body["refusal"])
            found.append(Block("refusal", html, _("Refusal"), rest))
        return found

    def _all(self, parts: Sequence[Any]) -> Iterator[Block]:
        mine = [(index, part) for index, part in enumerate(parts) if _kind(part) not in CALLS]
        for index, part in mine[:MOST_PARTS]:
            yield from self._part(part, f"{index}")
        if (more := len(mine) - MOST_PARTS) > 0:
            said = ngettext("%(count)s more part", "%(count)s more parts", more)
            yield Block("beyond", label=said % {"count": number(more)})

    def _part(self, part: Any, ref: str) -> Iterator[Block]:
        # Parts of a provider's item are not checked when they are stored.
        kind = "text" if isinstance(part, str) else _kind(part)
        text = _text_in(part)
        if kind in _TEXTS and text is not None:
            html, rest = self._text(text)
            yield Block("text", html, rest=rest, ref=ref)
        elif kind in _IMAGES:
            yield self._image(part)
        elif kind in _THOUGHTS:
            yield from self._thought(
                part.get("thinking") or part.get("text") or part.get("summary")
            )
        else:
            yield _other(kind, part)

    def _text(self, text: str) -> tuple[SafeString | str, int]:
        """Its HTML, and how much of it is folded."""
        cut = text[:FOLDED_CHARACTERS]
        if len(cut) < len(text):
            cut = "\n".join(cut.split("\n", _FOLDED_LINES)[:_FOLDED_LINES])
        return markdown(visible(plain(cut)), self.budget), max(0, len(text) - len(cut))

    def _thoughts(self, body: Mapping[str, Any]) -> Iterator[Block]:
        for name in ("reasoning_content", "reasoning", "thinking"):
            if body.get(name):
                yield from self._thought(body[name])
                return

    def _thought(self, said: Any) -> Iterator[Block]:
        texts = [said] if isinstance(said, str) else [_text_in(each) for each in _parts(said)]
        text = "\n\n".join(each for each in texts if each)
        html, rest = self._text(text)
        yield Block("thought", html if text else "", _("Reasoning"), rest)

    def _image(self, part: Mapping[str, Any]) -> Block:
        block = _image(part)
        if block.kind != "image":
            return block
        self.images -= len(block.html)
        return block if self.images >= 0 else _too_large(str(block.html))

    def _item(self, item: Mapping[str, Any]) -> Iterator[Block]:
        """A provider's own item: a message, thoughts, or a call of a tool that it runs itself."""
        kind = str(item.get("type"))
        if kind in CALLS:
            return
        if kind in _THOUGHTS:
            yield from self._thought(item.get("summary") or item.get("content"))
        elif kind == "message":
            for block in self._all(_parts(item.get("content"))):
                yield block._replace(ref="")
        else:
            yield self._hosted(item)

    def _hosted(self, item: Mapping[str, Any]) -> Block:
        card = hosted_card(item)
        values = [each for title, value in card.values for each in self._values(title, value)]
        return Block("hosted", label=card.name, card=card, values=values)

    def _values(self, title: str, value: Any) -> Iterator[Block]:
        """Pictures as such, by themselves or in a list; all else as it stands."""
        several = value if isinstance(value, list) else [value]
        if several and all(_kind(each) in _IMAGES for each in several[:MOST_PARTS]):
            yield from map(self._image, several[:MOST_PARTS])
        else:
            text = value_text(value)
            cut = text[:FOLDED_CHARACTERS]
            html = value_html(value if len(cut) == len(text) else cut)
            yield Block("value", html, title, len(text) - len(cut))


def whole_text(body: Mapping[str, Any] | None, index: int) -> SafeString | str | None:
    """One part's text, all of it, or as much as a browser can bear."""
    parts = _parts((body or {}).get("content"))
    text = _text_in(parts[index]) if 0 <= index < len(parts) else None
    return None if text is None else whole(text)


def whole(text: str) -> SafeString | str:
    if len(text) <= MOST_CHARACTERS:
        return markdown(visible(plain(text)))
    return SafeString(f'<pre class="code" tabindex="0">{coloured(text[:MOST_PLAIN])}</pre>')


def value_html(value: Any) -> SafeString | str:
    """An argument or a result: JSON indented and coloured, anything else as it was printed."""
    if isinstance(value, str):
        text = _indented(value)
        return coloured(value) if text is None else highlighted(visible(text), "json")
    return highlighted(visible(value_text(value)), "json")


def value_text(value: Any) -> str:
    """What is counted and cut."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _indented(text: str) -> str | None:
    """A document in a string: indented, it says more. None, if it is none, or none that Python
    can hold: nobody has checked how deep it is."""
    if len(text) > MOST_CHARACTERS or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return value_text(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [content] if content.strip() else []
    return content if isinstance(content, list) else []


def _kind(part: Any) -> str:
    return str(part.get("type")) if isinstance(part, Mapping) else ""


def _text_in(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    text = part.get("text", part.get("refusal")) if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else None


def _image(part: Mapping[str, Any]) -> Block:
    """From what is stored only: a picture elsewhere is an address, and nothing fetches it."""
    given = part.get("image_url") or part.get("source") or part.get("url")
    if isinstance(given, Mapping):
        data = given.get("data")
        inline = f"data:{given.get('media_type')};base64,{data}" if data else None
        given = inline or given.get("url")
    address = given if isinstance(given, str) else ""
    if len(address) <= MOST_IMAGE and _IMAGE.fullmatch(address):
        return Block("image", address, _("Image"))
    if address.startswith("data:"):
        return _too_large(address)
    return Block("note", visible(address[:300]), _("Image elsewhere"))


def _too_large(address: str) -> Block:
    return Block("note", visible(address[:40]) + "…", _("Image, too large to show here"))


def _other(kind: str, part: Any) -> Block:
    """A kind that nobody has told us of: its name, and all of it, folded."""
    text = json.dumps(part, ensure_ascii=False, indent=2)
    cut = text[:FOLDED_CHARACTERS]
    html = highlighted(visible(cut), "json") if len(cut) == len(text) else escape(visible(cut))
    return Block("data", html, visible(kind[:80]), len(text) - len(cut))
