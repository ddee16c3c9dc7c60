"""What programs print for a terminal: its colours as classes, its other controls left out."""

import re

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from .values import visible

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_COLOUR = re.compile(r"\x1b\[([0-9;]*)m")
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def plain(text: str) -> str:
    """The text without a terminal's controls."""
    return _SEQUENCE.sub("", text) if "\x1b" in text else text


def coloured(text: str) -> SafeString:
    """The text with its colours, as far as they are of the eight that every terminal has."""
    if "\x1b" not in text:
        return escape(visible(text))
    html: list[str] = []
    classes: list[str] = []
    for index, piece in enumerate(_COLOUR.split(text)):
        if index % 2:
            classes = _after(classes, piece)
        elif shown := escape(visible(plain(piece))):
            html.append(f'<span class="{" ".join(classes)}">{shown}</span>' if classes else shown)
    return mark_safe("".join(html))  # noqa: S308  each piece is escaped


def _after(classes: list[str], codes: str) -> list[str]:
    for code in (int(each or 0) for each in codes[:40].split(";")):
        if code == 0:
            classes = []
        elif code == 1 and "ansi-bold" not in classes:
            classes = [*classes, "ansi-bold"]
        elif code % 10 < len(_NAMES) and code // 10 in {3, 9}:
            others = [each for each in classes if each == "ansi-bold"]
            classes = [*others, f"ansi-{_NAMES[code % 10]}"]
    return classes
