"""Working memory: what the agent currently understands, in six fields and one for its own keys."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from ..actors import Actor
from ..errors import InvalidRequest, PayloadTooLarge, pointer_token
from ..jsontext import JSONText
from ..models import Session, WorkingMemoryRevision
from ..prepared import Given
from .fencing import fence
from .locking import touch, version_mismatch
from .search import reindex_memory
from .survey import Survey, part

_TEXTS = ("goal", "next_action")
_LISTS = ("plan", "completed", "errors", "important_files")
FIELDS = ("goal", "plan", "completed", "errors", "important_files", "next_action", "extra")


def empty_memory() -> dict[str, Any]:
    """Every field at its empty value."""
    return {name: "" if name in _TEXTS else [] if name in _LISTS else {} for name in FIELDS}


NO_MEMORY: Final = JSONText.of(empty_memory())


def complete_memory(raw: Any, *, pointer: str = "") -> dict[str, Any]:
    """The whole document from what a client sent: missing and null keys are their empty values.

    Raises:
        InvalidRequest: an unknown key, or a value of the wrong type.
    """
    _check(raw, pointer)
    return empty_memory() | {name: value for name, value in raw.items() if value is not None}


def merge_memory(current: Mapping[str, Any], patch: Any) -> dict[str, Any]:
    """Apply a JSON merge patch (RFC 7396): lists are replaced, null resets, ``extra`` merges.

    Raises:
        InvalidRequest: an unknown key, or a value of the wrong type.
    """
    _check(patch, "")
    merged = merge_patch(current, patch)
    return empty_memory() | {name: merged[name] for name in FIELDS if name in merged}


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396, as it stands there: null deletes a key, objects merge, all else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def current_revision(session: Session) -> WorkingMemoryRevision | None:
    """The newest revision: the current working memory, or none if nothing was ever written."""
    return (
        WorkingMemoryRevision.objects.filter(
            session=session, version=session.working_memory_version
        ).first()
        if session.working_memory_version
        else None
    )


def current_memory(session: Session) -> JSONText:
    """The current document, whole."""
    revision = current_revision(session)
    return revision.memory if revision else NO_MEMORY


def current_memory_part(given: type[Given]) -> QuerySet[Any, Any]:
    """Of a survey: the current document, of a session that has one."""
    current = WorkingMemoryRevision.objects.filter(
        session=given("session_id"), version=given("memory_version")
    )
    return part("memory", current, text=Cast("memory", TextField()))


def surveyed_memory(survey: Survey) -> JSONText:
    """The current document, as a survey with `current_memory_part` found it."""
    for *_, text in survey["memory"]:
        return JSONText(text)
    return NO_MEMORY


def check_memory_version(session: Session, if_match: int | None) -> None:
    """Compare-and-set on the working memory's own version.

    Raises:
        VersionMismatch: it is another one.
    """
    if if_match is not None and if_match != session.working_memory_version:
        raise version_mismatch(session.working_memory_version)


def store_memory(
    session: Session,
    memory: Mapping[str, Any],
    *,
    actor: Actor,
    run_id: str | None,
    attempt: int | None,
    now: datetime,
) -> WorkingMemoryRevision:
    """Write the document as a new revision (row locked, ACTIVE).

    Raises:
        PayloadTooLarge: over ``MAX_WORKING_MEMORY_BYTES``.
    """
    text = encode_memory(memory)
    fence(session, run_id=run_id, attempt=attempt, now=now)
    version = touch(session, now=now)
    return add_revision(session, text, actor=actor, run_id=run_id, version=version, now=now)


def encode_memory(memory: Mapping[str, Any]) -> JSONText:
    """The document as text, within its limit.

    Raises:
        PayloadTooLarge: over ``MAX_WORKING_MEMORY_BYTES``.
    """
    text = JSONText.of(memory, wrapped=1)
    if len(text) > settings.MAX_WORKING_MEMORY_BYTES:
        raise PayloadTooLarge(
            f"The working memory is larger than {settings.MAX_WORKING_MEMORY_BYTES} bytes."
        )
    return text


def add_revision(
    session: Session,
    memory: JSONText,
    *,
    actor: Actor,
    run_id: str | None,
    version: int,
    now: datetime,
) -> WorkingMemoryRevision:
    """Append a revision within a change that has begun."""
    session.working_memory_version += 1
    reindex_memory(session, memory)
    return WorkingMemoryRevision.objects.create(
        session=session,
        version=session.working_memory_version,
        memory=memory,
        sequence=session.last_sequence,
        run_id=run_id,
        actor_type=actor.type,
        actor_id=actor.id,
        session_version=version,
        created_at=now,
    )


def _check(raw: Any, pointer: str) -> None:
    if not isinstance(raw, Mapping):
        raise InvalidRequest.at(pointer, "must be an object")
    for name, value in raw.items():
        path = f"{pointer}/{pointer_token(name)}"
        if name not in FIELDS:
            raise InvalidRequest.at(path, "is not a field; keys of your own go into extra")
        if value is not None:
            _check_type(name, value, path)


def _check_type(name: str, value: Any, path: str) -> None:
    if name in _TEXTS and not isinstance(value, str):
        raise InvalidRequest.at(path, "must be a string")
    if name == "extra" and not isinstance(value, Mapping):
        raise InvalidRequest.at(path, "must be an object")
    if name in _LISTS and not (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    ):
        raise InvalidRequest.at(path, "must be a list of strings")
