"""JSON over HTTP: what a body may be. How an answer is written: `sessions_app.api.response`."""

from collections.abc import Iterable, Mapping
from typing import IO, Any

from django.conf import settings
from django.http import UnreadablePostError
from django.utils.http import parse_header_parameters
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from sessions_app import jsontext
from sessions_app.api.uploads import require_plain_utf8
from sessions_app.errors import PayloadTooLarge

MERGE_PATCH = "application/merge-patch+json"


class JSONParser(BaseParser):
    """The strict parser of `sessions_app.jsontext`, behind a limit on the body's size.

    A request without a body never comes here: its ``data`` is an empty object.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        meta = (parser_context or {})["request"].META
        require_plain_utf8(media_type or "", meta)
        return jsontext.loads(_read(stream, meta))


def _read(stream: IO[bytes], meta: Mapping[str, Any]) -> bytes:
    limit = settings.MAX_BODY_BYTES
    # What announces itself as too large is refused before a byte of it is read.
    announced = meta.get("CONTENT_LENGTH") or "0"
    body = b"" if int(announced) > limit else stream.read(limit + 1)
    if int(announced) > limit or len(body) > limit:
        raise PayloadTooLarge(f"A body has at most {limit} bytes.", limit=limit)
    if len(body) < int(announced):
        raise UnreadablePostError("The connection ended before the body did.")
    return body


class AlwaysJSON(BaseContentNegotiation):
    """One format: whatever ``Accept`` says, a JSON answer helps more than a 406."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        media_type, _ = parse_header_parameters(request.content_type or "")
        if media_type == MERGE_PATCH and request.method == "PATCH":
            media_type = JSONParser.media_type
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


class JSONRenderer(BaseRenderer):
    """What the schema says of every answer. It renders none: each `Response` is written already."""

    media_type = JSONParser.media_type
    format = "json"
