"""What only the pages of one session show."""

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ..console import values
from ..console.statuses import STATUSES

register = template.Library()
_SECOND, _MINUTE = 1000, 60


@register.simple_tag
def duration(milliseconds: float) -> str:
    """``{% duration call.duration_ms %}``: 240 ms, 1.4 s, 3 min 05 s, 2 h 10 min."""
    if milliseconds < _SECOND:
        return _("%(count)d ms") % {"count": milliseconds}
    seconds = milliseconds / _SECOND
    if seconds < _MINUTE:
        return _("%(count).1f s") % {"count": seconds}
    minutes, rest = divmod(int(seconds), _MINUTE)
    if minutes < _MINUTE:
        return _("%(minutes)d min %(seconds)02d s") % {"minutes": minutes, "seconds": rest}
    hours, minutes = divmod(minutes, _MINUTE)
    return _("%(hours)d h %(minutes)02d min") % {"hours": hours, "minutes": minutes}


@register.simple_tag
def status(value: str) -> SafeString:
    """A status of whatever an event is about: ``{% status event.to_status %}``."""
    return values.badge(value, STATUSES.get(value, value))
