"""A session's metadata, and the terms by which it is found."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from ..errors import InvalidRequest, PayloadTooLarge
from ..folding import fold
from ..jsontext import JSONText
from ..models import MetadataTerm, Session
from ..writes import insert, new_row

_NONE = JSONText("{}")


def encode_metadata(metadata: Any, *, pointer: str = "/metadata") -> JSONText:
    """Metadata as text, within its limit.

    Raises:
        InvalidRequest: no object.
        PayloadTooLarge: over ``MAX_METADATA_BYTES``.
    """
    if not isinstance(metadata, Mapping):
        raise InvalidRequest.at(pointer, "must be an object")
    if not metadata:
        return _NONE
    text = JSONText.of(metadata, pointer=pointer)
    if len(text) > settings.MAX_METADATA_BYTES:
        raise PayloadTooLarge(f"The metadata is larger than {settings.MAX_METADATA_BYTES} bytes.")
    return text


def index_metadata(session: Session) -> None:
    """Make the terms of the session's metadata what they must be now."""
    MetadataTerm.objects.filter(session=session).delete()
    add_terms(session)


def add_terms(session: Session) -> None:
    """Make the terms of a session that has none."""
    insert(
        [
            new_row(
                MetadataTerm,
                session_id=session.session_id,
                digest=metadata_term(key, _as_filter(value)),
            )
            for key, value in session.metadata.value.items()
            if not isinstance(value, dict | list)
        ]
    )


def metadata_term(key: str, value: str) -> str:
    """The digest of ``metadata.key=value``: the key literally, the value as a filter writes it.

    A string is compared as it is, any other scalar as its JSON text (``5``, ``true``, ``null``).
    """
    return hashlib.sha256(f"{key}\x00{value}".encode()).hexdigest()


def index_text(session: Session) -> None:
    """Make ``search_text`` what `q` must find the session by."""
    session.search_text = fold("\n".join(filter(None, (session.title, session.external_id))))


def _as_filter(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
