"""What clients sent, as a page may show it: always text, never longer than a page can bear."""

import json
import re
from datetime import UTC, datetime

from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy

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


def cut(text: str, most: int) -> str:
    return text[:most] + ("…" if len(text) > most else "")


def cell(text: str | None) -> str | SafeString:
    """A short value in a list: one line, cut, and no reason for the text around it to turn."""
    if not text:
        return NOTHING
    shown = visible(" ".join(cut(text, CELL_CHARACTERS).split()))
    return format_html('<bdi class="cell">{}</bdi>', shown)


def line(text: str | None) -> str | SafeString:
    """A short value, whole."""
    return format_html('<bdi class="line">{}</bdi>', visible(text)) if text else NOTHING


def number(value: int | None) -> str:
    return NOTHING if value is None else number_format(value, force_grouping=True)


def dollars(nanousd: int) -> str:
    """Money, with as many places as it needs to be seen; nothing for none."""
    return f"${nanousd / 1_000_000_000:,.4f}" if nanousd else ""


def moment(value: datetime | None) -> str | SafeString:
    """A point in time to the second; in UTC, until a script puts it in the viewer's zone."""
    if value is None:
        return NOTHING
    at = value.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        at.isoformat(),
        f"{at:%Y-%m-%d %H:%M:%S} UTC",
        f"{at:%Y-%m-%d %H:%M:%S}",
    )


def ago(value: datetime | None, *, now: datetime | None = None) -> str | SafeString:
    """How long ago, or ahead; the exact time where the mouse rests. The script keeps it true."""
    if value is None:
        return NOTHING
    at = value.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}" data-relative>{}</time>',
        at.isoformat(),
        f"{at:%Y-%m-%d %H:%M:%S} UTC",
        _from_now(at, now or timezone.now()),
    )


_UNITS = (
    (
        86_400,
        ngettext_lazy("%(count)d day ago", "%(count)d days ago", "count"),
        ngettext_lazy("in %(count)d day", "in %(count)d days", "count"),
    ),
    (
        3_600,
        ngettext_lazy("%(count)d hour ago", "%(count)d hours ago", "count"),
        ngettext_lazy("in %(count)d hour", "in %(count)d hours", "count"),
    ),
    (
        60,
        ngettext_lazy("%(count)d minute ago", "%(count)d minutes ago", "count"),
        ngettext_lazy("in %(count)d minute", "in %(count)d minutes", "count"),
    ),
)
_LONGEST_DAYS = 30


def _from_now(at: datetime, now: datetime) -> str:
    """As times.js says it."""
    seconds = int((at - now).total_seconds())
    distance = abs(seconds)
    if distance > _LONGEST_DAYS * 86_400:
        return f"{at:%Y-%m-%d}"
    for length, past, future in _UNITS:
        if count := distance // length:
            return str((past if seconds < 0 else future) % {"count": count})
    return _("now")


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
