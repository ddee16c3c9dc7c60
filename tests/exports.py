"""Exported sessions, and what of two of them must be equal."""

import json
import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from django.utils import timezone

from runs_app.services.transfer import Contents, ndjson, stage
from sessions_app.models import Session
from tests.domain import Desk, row

_ID = re.compile(r"\b(sess|msg|run|call|evt)_[0-9a-hjkmnp-tv-z]{26}\b")


def exported(session_id: str) -> bytes:
    """The session's file."""
    return b"".join(ndjson(Contents(row(session_id), timezone.now())))


def imported(desk: Desk, file: bytes) -> Session:
    staged = stage(BytesIO(file), now=timezone.now())
    try:
        return desk.runs.restore(staged)
    finally:
        staged.close()


def objects(file: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.splitlines()]


def joined(lines: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)


def comparable(file: bytes) -> list[str]:
    """The lines, byte for byte but for ids, which are named in the order in which they first stand,
    and for what an import adds: whence the session came, and events at the end that say so."""
    names: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"{found[1]}-{len(names)}")

    lines = [line for line in file.decode().splitlines() if '"reason":"imported from ' not in line]
    kept = [re.sub(r'"imported_from":("[^"]*"|null)', "", line) for line in lines]
    kept[-1] = re.sub(r'"events":\d+', "", kept[-1])
    return [_ID.sub(named, line) for line in kept]
