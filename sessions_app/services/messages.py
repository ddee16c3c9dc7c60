"""Adding messages to a session, and taking them away again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Count, Sum

from ..actors import Actor
from ..errors import (
    ClientMessageIdReused,
    HasResult,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    SequenceMismatch,
)
from ..ids import new_id
from ..jsontext import JSONText
from ..models import Message, Session, ToolCall
from ..querysets import MessageQuerySet
from ..states import Subject
from ..usage import NO_USAGE, Usage
from ..writes import insert
from .drafts import Draft, draft_message
from .fencing import fence
from .lifecycle import record_event
from .locking import touch
from .tool_calls import Linker, forget, reopen

_PURGED = JSONText("{}")


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append stored: every message of the request in its order, old ones in place."""

    session: Session
    messages: list[Message]
    created_count: int


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
        draft_message(item, pointer="" if pointer is None else f"{pointer}/{index}")
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
        return Appended(session, _in_place(drafts, known), 0)
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
    linker.store()
    if usage is not NO_USAGE:
        (Usage.of(session) + usage).store(session)
    return Appended(session, _in_place(drafts, known, created), len(created))


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
    return Message(
        message_id=new_id("msg"),
        session_id=session.session_id,
        sequence=session.last_sequence,
        role=draft.role,
        type=draft.type,
        body=draft.body,
        size=len(draft.body),
        text=draft.text,
        client_message_id=draft.client_message_id,
        run_id=run_id,
        session_version=version,
        created_at=now,
    )


def remove(session: Session, sequence: int, *, actor: Actor, now: datetime) -> None:
    """Purge one message's content; its row keeps its place. Again: nothing happens.

    Raises:
        NotFound: the session has no such message.
        HasResult: it made a call that has a result.
    """
    message = Message.objects.filter(session=session, sequence=sequence).first()
    if message is None:
        raise NotFound(f"There is no message {sequence}.")
    if message.removed_at is not None:
        return
    calls = ToolCall.objects.filter(session=session, message_sequence=sequence)
    if calls.filter(result__isnull=False).exists():
        raise HasResult(f"Message {sequence} made a tool call that has a result.")
    _purge(session, [message], actor=actor, now=now)


def pop(session: Session, *, turn: bool, actor: Actor, now: datetime) -> list[Message]:
    """Remove the newest message, or all down to and including the last user message.

    Returns them as they were, oldest first.

    Raises:
        NotFound: there is none.
        PayloadTooLarge: the turn does not fit into one answer.
    """
    live = Message.objects.filter(session=session).live().order_by("-sequence")
    down_to = _last_user_message(live) if turn else live.first()
    if down_to is None:
        raise NotFound("There is no user message." if turn else "There is no message.")
    doomed = live.filter(sequence__gte=down_to.sequence).order_by("sequence")
    if turn:
        _require_answerable(doomed)
    popped = list(doomed)
    _purge(session, popped, actor=actor, now=now)
    return popped


def _require_answerable(turn: MessageQuerySet) -> None:
    """Refuse what one answer, which its key's record holds too, cannot: a page at most, or one
    message, whatever its size."""
    whole = turn.aggregate(size=Sum("size"), number=Count("pk"))
    if whole["number"] > 1 and whole["size"] > settings.MAX_PAGE_BYTES:
        raise PayloadTooLarge(
            f"The turn holds more than {settings.MAX_PAGE_BYTES} bytes: pop its messages one by "
            "one.",
            limit=settings.MAX_PAGE_BYTES,
        )


def _last_user_message(live: MessageQuerySet) -> Message | None:
    """The newest message in which a user speaks: one that only carries tool results does not."""
    # A few at a time: what is passed over is popped with the rest, but what is older stays.
    for message in live.filter(role="user").iterator(chunk_size=10):
        if not _only_answers(message.body.value.get("content")):
            return message
    return None


def _only_answers(content: Any) -> bool:
    if not isinstance(content, list) or not content:
        return False
    return all(part["type"] == "tool_result" for part in content)


def _purge(session: Session, messages: Sequence[Message], *, actor: Actor, now: datetime) -> None:
    version = touch(session, now=now)
    sequences = [message.sequence for message in messages]
    calls = ToolCall.objects.filter(session=session)
    forget(session, calls.filter(message_sequence__in=sequences))
    reopen(session, calls.filter(result_sequence__in=sequences), version=version)
    session.message_count -= sum(message.superseded_at is None for message in messages)
    Message.objects.filter(pk__in=[message.message_id for message in messages]).update(
        body=_PURGED, size=len(_PURGED), text="", removed_at=now, session_version=version
    )
    for message in messages:
        record_event(
            session,
            subject=Subject.CONTENT,
            subject_id=message.message_id,
            from_status=None,
            to_status="REMOVED",
            actor=actor,
            reason="",
            version=version,
            now=now,
        )
