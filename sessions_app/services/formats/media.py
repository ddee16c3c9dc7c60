"""Pictures, documents and sound: read from the parts of every provider."""

import re
from collections.abc import Mapping
from typing import Any

from .parts import Audio, Media, Part, Text, note

OPENAI, ANTHROPIC = "openai", "anthropic"
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,([A-Za-z0-9+/=\s]*)")
_WEB_URL = re.compile(r"https?://\S", re.IGNORECASE)


def picture_of_chat(part: Mapping[str, Any]) -> Part:
    """``image_url`` (an object, or with some servers a string) and ``input_image``."""
    given = part.get("image_url")
    inner = given if isinstance(given, Mapping) else part
    address = inner.get("url") if inner is given else given
    return _media(
        "image",
        address,
        file_id=_text(part.get("file_id")),
        home=OPENAI,
        detail=_text(inner.get("detail")),
    )


def picture_of_blocks(part: Mapping[str, Any]) -> Part:
    """Anthropic's ``image``, and that of the Model Context Protocol."""
    if "source" in part:
        return _of_source("image", part["source"], None)
    data, media_type = _text(part.get("data")), _text(part.get("mimeType"))
    if data is None or media_type is None:
        return note("image")
    return Media("image", data=data, media_type=media_type)


def file_of_chat(part: Mapping[str, Any]) -> Part:
    """``file``, and ``input_file`` of the Responses API."""
    given = part.get("file")
    inner = given if isinstance(given, Mapping) else part
    return _media(
        "file",
        inner.get("file_data") or inner.get("file_url"),
        file_id=_text(inner.get("file_id")),
        home=OPENAI,
        name=_text(inner.get("filename")),
    )


def document_of_blocks(part: Mapping[str, Any]) -> Part:
    """Anthropic's ``document``; of a plain one its text."""
    source = part.get("source")
    given = source if isinstance(source, Mapping) else {}
    plain = _text(given.get("data" if given.get("type") == "text" else "content"))
    return Text(plain) if plain else _of_source("file", source, _text(part.get("title")))


def sound_of_chat(part: Mapping[str, Any]) -> Part:
    given = part.get("input_audio")
    inner = given if isinstance(given, Mapping) else {}
    data, encoding = _text(inner.get("data")), inner.get("format")
    return Audio(data, encoding) if data and encoding in ("wav", "mp3") else note("audio")


def _of_source(kind: str, source: Any, name: str | None) -> Part:
    given = source if isinstance(source, Mapping) else {}
    data, media_type = _text(given.get("data")), _text(given.get("media_type"))
    if data is not None and media_type is not None:
        return Media(kind, data=data, media_type=media_type, name=name)
    file_id = _text(given.get("file_id"))
    return _media(kind, given.get("url"), file_id=file_id, home=ANTHROPIC, name=name)


def _media(kind: str, address: Any, **more: Any) -> Part:
    """What is at this address, which may hold the bytes themselves, or a file's id alone."""
    text = _text(address) or ""
    if inline := _DATA_URL.fullmatch(text):
        return Media(kind, media_type=inline[1].lower(), data=inline[2], **more)
    if _WEB_URL.match(text):
        return Media(kind, url=text, **more)
    if more.get("file_id"):
        return Media(kind, **more)
    return note(f"{kind}: {more['name']}" if more.get("name") else kind)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
