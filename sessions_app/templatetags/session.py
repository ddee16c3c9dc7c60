"""What only the pages of one session show."""

from datetime import timedelta

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ..console import addresses, durations, values
from ..console.statuses import STATUSES
from ..models import Message, ToolCall, WorkingMemoryRevision

register = template.Library()
register.simple_tag(addresses.message_url)


@register.simple_tag
def duration(milliseconds: int | None) -> str:
    """``{% duration call.duration_ms %}``: 240 ms, 1.4 s, 3 min 5 s, 2 h 10 min."""
    known = milliseconds is not None
    return durations.duration(timedelta(milliseconds=milliseconds or 0) if known else None)


@register.simple_tag
def places_of(record: object) -> list[tuple[str, str]]:
    """Where a stored record is seen in its session: ``{% places_of original as places %}``."""
    places = [(label, at) for label, at in _places(record) if at]
    session_id = getattr(record, "session_id", "")
    return [(f"{label} #{at}", addresses.message_url(session_id, at)) for label, at in places]


def _places(record: object) -> list[tuple[str, int | None]]:
    if isinstance(record, Message):
        return [(_("In the transcript"), record.sequence)]
    if isinstance(record, ToolCall):
        return [
            (_("Called in"), record.message_sequence),
            (_("Answered in"), record.result_sequence),
        ]
    if isinstance(record, WorkingMemoryRevision):
        return [(_("After message"), record.sequence)]
    return []


@register.simple_tag
def status(value: str) -> SafeString:
    """A status of whatever an event is about: ``{% status event.to_status %}``."""
    return values.badge(value, STATUSES.get(value, value))
