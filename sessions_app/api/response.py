"""An answer in JSON, written when it is made."""

import json
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import orjson
from django.http import HttpResponse
from django.http.response import ResponseHeaders
from django.utils.functional import Promise

from sessions_app.jsontext import JSONText
from sessions_app.timestamps import rfc3339

CONTENT_TYPE = "application/json"


class _Headers(ResponseHeaders):
    """Django's, in a third of the time where there is nothing to encode. Names are ours."""

    def __setitem__(self, name: str, value: Any) -> None:
        # No line break is printable.
        if type(value) is str and value.isascii() and value.isprintable():
            self._store[name.lower()] = (name, value)
        else:
            super().__setitem__(name, value)

    def __contains__(self, name: object) -> bool:
        return str(name).lower() in self._store

    def items(self) -> Any:
        return self._store.values()


class Response(HttpResponse):
    """What a handler answers: data, or None for an empty body.

    DRF's own waits to be rendered by what was negotiated; here there is nothing to negotiate.
    """

    def __init__(
        self,
        data: Any = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        content_type: str = CONTENT_TYPE,
    ) -> None:
        content = b"" if data is None else dumps(data)
        super().__init__(content, status=status, content_type=content_type)  # else it makes one up
        kind = {} if data is None else {"Content-Type": content_type}
        self.headers = _Headers({**kind, **(headers or {})})


def dumps(data: Any) -> bytes:
    """Encode an answer.

    orjson refuses what client JSON outside a `JSONText` might hold: integers beyond 64 bits,
    lone surrogates, deep nesting. The standard encoder takes them, so that none becomes a 500.
    """
    try:
        return orjson.dumps(data, default=_as_fragment, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except orjson.JSONEncodeError:
        text = json.dumps(
            data, default=_as_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        # Through UTF-16, where halves of a pair that stand together are one character again.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _as_fragment(value: Any) -> Any:
    return orjson.Fragment(value.text) if isinstance(value, JSONText) else _as_plain(value)


def _as_plain(value: Any) -> Any:
    if isinstance(value, JSONText):
        return value.value
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Promise):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")
