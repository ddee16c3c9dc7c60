"""How long something took, in words that are read at a glance."""

from datetime import timedelta

from django.utils.translation import gettext as _

from .values import NOTHING, number

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def duration(length: timedelta | None) -> str:
    """``230 ms``, ``4.2 s``, ``3 min 7 s``, ``2 h 5 min``, ``4 d 3 h``."""
    if length is None:
        return NOTHING
    seconds = max(0.0, length.total_seconds())
    if 0 < seconds < 1:
        return _("%(count)s ms") % {"count": number(round(seconds * 1000))}
    if seconds < _MINUTE:
        return _("%(count)s s") % {"count": f"{int(seconds * 10) / 10:g}"}
    return _long(int(seconds))


def _long(seconds: int) -> str:
    if seconds < _HOUR:
        return _two(seconds, _MINUTE, 1, _("%(first)d min"), _("%(first)d min %(second)d s"))
    if seconds < _DAY:
        return _two(seconds, _HOUR, _MINUTE, _("%(first)d h"), _("%(first)d h %(second)d min"))
    return _two(seconds, _DAY, _HOUR, _("%(first)d d"), _("%(first)d d %(second)d h"))


def _two(seconds: int, unit: int, smaller: int, alone: str, both: str) -> str:
    first, second = seconds // unit, seconds % unit // smaller
    return (both if second else alone) % {"first": first, "second": second}
