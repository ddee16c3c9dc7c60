"""What went wrong, in the two words that nearly every error has."""

import json
from typing import Any, NamedTuple

from sessions_app.jsontext import JSONText


class Fault(NamedTuple):
    """``type`` and ``message`` of an error; of one that has neither, its text."""

    type: str
    message: str


def fault_of(error: JSONText | str | None) -> Fault | None:
    """Of a whole error, or of its beginning as text."""
    if error is None:
        return None
    text = error.text if isinstance(error, JSONText) else error
    try:
        value = json.loads(text)
    except ValueError:  # cut in the middle: a long one
        return Fault("", text)
    if not isinstance(value, dict):
        return Fault("", value if isinstance(value, str) else text)
    kind, message = _word(value.get("type")), _word(value.get("message"))
    return Fault(kind, message) if kind or message else Fault("", text)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
