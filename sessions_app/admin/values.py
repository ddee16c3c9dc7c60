"""What clients sent, as a page may show it: always text, never longer than a page can bear."""

import json
import re
from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..jsontext import JSONText

PREVIEW_CHARACTERS = 4_000
CELL_CHARACTERS = 80
# Indenting a longer document would cost more than a preview of it is worth.
_MOST_INDENTED = 64 * 1024
# What hides, or turns around what stands beside it: controls, bidi marks, overrides and isolates.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
NOTHING = "\N{EN DASH}"


def visible(text: str) -> str:
    """Text in which nothing is invisible."""
    return _INVISIBLE.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def cell(text: str | None) -> str | SafeString:
    """A short value in a list: one line, cut, and no reason for the text around it to turn."""
    if not text:
        return NOTHING
    cut = text[:CELL_CHARACTERS] + ("…" if len(text) > CELL_CHARACTERS else "")
    return format_html('<bdi class="cell">{}</bdi>', visible(" ".join(cut.split())))


def line(text: str | None) -> str | SafeString:
    """A short value, whole."""
    return format_html('<bdi class="line">{}</bdi>', visible(text)) if text else NOTHING


def number(value: int | None) -> str:
    return NOTHING if value is None else number_format(value, force_grouping=True)


def moment(value: datetime | None) -> str | SafeString:
    """A point in time to the second, in the server's zone; exactly, where the mouse rests."""
    if value is None:
        return NOTHING
    local = timezone.localtime(value)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        value.isoformat(),
        local.isoformat(" "),
        date_format(local, "Y-m-d H:i:s"),
    )


def badge(kind: str, label: object) -> SafeString:
    """A status in words, and in a colour for those who see it."""
    return format_html('<span class="badge badge-{}">{}</span>', kind.lower(), label)


def readable(value: JSONText | str | None) -> str | None:
    """A document indented for people, a string as what it says; a long one as it is stored."""
    if value is None or isinstance(value, str):
        return value
    if len(value.text) > _MOST_INDENTED:
        return value.text
    parsed = value.value
    return parsed if isinstance(parsed, str) else json.dumps(parsed, ensure_ascii=False, indent=2)


def document(value: JSONText | str | None, *, download: str) -> str | SafeString:
    """A long value: its beginning, how much more there is, and where to have it byte for byte.

    Source: report UI-01 (one line of 4.7 million characters froze the page).
    """
    text = readable(value)
    if text is None:
        return NOTHING
    return format_html(
        '<div class="document"><pre tabindex="0">{}</pre>'
        '<p class="document-foot">{} <a href="{}">{}</a></p></div>',
        visible(text[:PREVIEW_CHARACTERS]),
        _more(len(text) - PREVIEW_CHARACTERS),
        download,
        _("Download the whole value"),
    )


def _more(characters: int) -> str | SafeString:
    if characters <= 0:
        return ""
    note = ngettext("%(count)s more character.", "%(count)s more characters.", characters)
    return format_html('<strong class="more">… {}</strong>', note % {"count": number(characters)})
