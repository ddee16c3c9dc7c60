"""Adding messages to a session."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from ..errors import (
    ClientMessageIdReused,
    InvalidRequest,
    PayloadTooLarge,
    SequenceMismatch,
)
from ..ids import new_id
from ..jsontext import JSONText
from ..models import Message, Session
from ..usage import NO_USAGE, Usage
from ..writes import insert, new_row
from .drafts import Draft, draft_message
from .fencing import fence
from .locking import touch
from .search import index_messages
from .titles import name_session
from .tool_calls import Linker


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append stored: every message of the request in its order, old ones in place; and the
    session's last sequence and version."""

    messages: list[Message]
    created_count: int
    last_sequence: int
    version: int


def draft_messages(raw: Sequence[Any], *, pointer: str | None) -> list[Draft]:
    """Check a batch before anything is locked; without ``pointer`` its one message is the body.

    Raises:
        InvalidRequest: an empty batch, or a message that is not acceptable.
        PayloadTooLarge: more messages, or tool calls and results, than a batch may have.
    """
    if not raw:
        raise InvalidRequest.at(pointer or "", "must hold at least one message")
    if len(raw) > settings.MAX_MESSAGES_PER_BATCH:
        raise PayloadTooLarge(f"More than {settings.MAX_MESSAGES_PER_BATCH} messages in a batch.")
    drafts = [
        item
        if isinstance(item, Draft)
        else draft_message(item, pointer="" if pointer is None else f"{pointer}/{index}")
        for index, item in enumerate(raw)
    ]
    # They are rows, written under the lock: a body of nothing else would hold it for seconds.
    most = settings.MAX_TOOL_CALLS_PER_BATCH
    if sum(len(draft.calls) + len(draft.results) for draft in drafts) > most:
        raise PayloadTooLarge(f"More than {most} tool calls and results in a batch.")
    return drafts


def append(
    session: Session,
    drafts: Sequence[Draft],
    *,
    run_id: str | None,
    attempt: int | None,
    expected_last_sequence: int | None,
    now: datetime,
) -> Appended:
    """Store the drafts that are new as one contiguous range of sequences (row locked, ACTIVE).

    Raises:
        ClientMessageIdReused: other content under a known id.
        SequenceMismatch: the session has moved on; checked for new messages only.
        OrphanToolResult: see `Linker.add`.
    """
    known = _known(session, drafts)
    new = _new(drafts, known)
    if not new:
        return _appended(session, _in_place(drafts, known), 0)
    _check_expected(session, expected_last_sequence)
    usage = sum((draft.usage for draft in new if draft.usage is not NO_USAGE), NO_USAGE)
    fence(session, run_id=run_id, attempt=attempt, now=now, usage=usage)
    version = touch(session, now=now)
    linker = Linker.load(session, new, version=version, now=now)
    created = []
    for draft in new:
        message = _place(session, draft, run_id=run_id, version=version, now=now)
        linker.add(message, draft)
        created.append(message)
        if draft.client_message_id is not None:
            known[draft.client_message_id] = message
    insert(created)
    index_messages(session, created)
    linker.store()
    if usage is not NO_USAGE:
        (Usage.of(session) + usage).store(session)
    if session.title is None:
        name_session(session, new)
    return _appended(session, _in_place(drafts, known, created), len(created))


def _appended(session: Session, messages: list[Message], created: int) -> Appended:
    return Appended(messages, created, session.last_sequence, session.version)


def insert_copies(session: Session, messages: Sequence[Message]) -> None:
    """Insert messages that were not appended here, whole rows of one session: the one place where
    what is kept beside each message must be made for them, too."""
    insert(messages)
    index_messages(session, messages)


def _known(session: Session, drafts: Sequence[Draft]) -> dict[str, Message]:
    ids = [draft.client_message_id for draft in drafts if draft.client_message_id is not None]
    if not ids or not session.last_sequence:
        return {}
    stored = Message.objects.filter(session=session, client_message_id__in=ids)
    return {str(message.client_message_id): message for message in stored}


def _new(drafts: Sequence[Draft], known: dict[str, Message]) -> list[Draft]:
    """The drafts that are not stored yet; one under a known id must be what is stored."""
    new: list[Draft] = []
    first: dict[str, Draft] = {}
    for draft in drafts:
        name = draft.client_message_id
        if name is None or (name not in known and name not in first):
            new.append(draft)
            first |= {} if name is None else {name: draft}
            continue
        earlier = known[name] if name in known else first[name]
        removed = isinstance(earlier, Message) and earlier.removed_at is not None
        if not removed and _canonical(earlier.body) != _canonical(draft.body):
            raise ClientMessageIdReused(
                f"The client_message_id {name!r} is stored with other content.",
                client_message_id=name,
            )
    return new


def _canonical(body: JSONText) -> str:
    """Key order aside, the text: to Python, 1 and true and 1.0 would be equal."""
    return json.dumps(body.value, sort_keys=True)


def _in_place(
    drafts: Sequence[Draft], known: dict[str, Message], created: Sequence[Message] = ()
) -> list[Message]:
    fresh = iter([message for message in created if message.client_message_id is None])
    return [
        next(fresh) if draft.client_message_id is None else known[draft.client_message_id]
        for draft in drafts
    ]


def _check_expected(session: Session, expected: int | None) -> None:
    if expected is not None and expected != session.last_sequence:
        raise SequenceMismatch(
            f"The last sequence is {session.last_sequence}, not {expected}.",
            last_sequence=session.last_sequence,
            version=session.version,
        )


def _place(
    session: Session, draft: Draft, *, run_id: str | None, version: int, now: datetime
) -> Message:
    if draft.opens_session and session.head_sequence == session.last_sequence:
        session.head_sequence += 1
    session.last_sequence += 1
    session.message_count += 1
    return new_row(
        Message,
        message_id=new_id("msg"),
        session_id=session.session_id,
        sequence=session.last_sequence,
        role=draft.role,
        type=draft.type,
        body=draft.body,
        size=len(draft.body),
        text=draft.text,
        client_message_id=draft.client_message_id,
        item_id=draft.item_id,
        run_id=run_id,
        through_sequence=draft.through_sequence,
        session_version=version,
        created_at=now,
    )
