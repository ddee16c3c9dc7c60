"""Stores what a file says, once: a file is checked whole before anything of it is written."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from django.conf import settings

from sessions_app.errors import (
    DossierError,
    InvalidRequest,
    OrphanToolResult,
    SessionClosed,
    SessionExpired,
)
from sessions_app.folding import plain_text
from sessions_app.models import Message
from sessions_app.services import NewSession, SessionManager
from sessions_app.services.drafts import Draft, draft_message
from sessions_app.services.titles import first_words

from .entries import BadFileError, Entry, Reader

_BATCH_MESSAGES, _BATCH_CHARACTERS = 200, 1 << 20
_LONGEST_TITLE = 500


@dataclass(slots=True)
class Loaded:
    """What came of one file: of its ``messages``, those that were new are ``stored``."""

    sessions: int = 0
    messages: int = 0
    stored: int = 0


@dataclass(slots=True)
class _Conversation:
    """One session of a file, as its check finds it."""

    title: str | None = None
    first_words: str | None = None
    agent_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    unanswered: Counter[str] = field(default_factory=Counter)
    names: set[Any] = field(default_factory=set)
    session_id: str = ""


@dataclass(slots=True)
class Loader:
    """Loads files of one format for one account; a file that was loaded in part is finished."""

    manager: SessionManager
    read: Reader
    agent_id: str | None = None
    user_id: str | None = None

    def load(self, file: IO[bytes], progress: Callable[[int], Any]) -> Loaded:
        """Check a file and store what is not there yet; ``progress`` is told of bytes as they are
        stored.

        Raises:
            BadFileError: nothing of it was written, unless the place was a session that is closed.
        """
        conversations = self._check(file)
        loaded = Loaded(sessions=len(conversations))
        file.seek(0)
        for batch in _batches(self.read(file)):
            loaded.messages += len(batch)
            loaded.stored += self._store(conversations[batch[0].session], batch)
            progress(file.tell())
        return loaded

    def _check(self, file: IO[bytes]) -> dict[str, _Conversation]:
        """Hold each message against what an append would refuse."""
        found: dict[str, _Conversation] = {}
        for entry in self.read(file):
            conversation = found.setdefault(entry.session, _Conversation())
            conversation.title = entry.title or conversation.title
            conversation.agent_id = entry.agent_id or conversation.agent_id
            conversation.metadata |= entry.metadata
            if entry.message is not None:
                try:
                    _take(conversation, entry.message)
                except DossierError as error:
                    raise BadFileError(entry.place, error.detail) from error
        if not any(conversation.names for conversation in found.values()):
            raise BadFileError("the file", "holds no message of this format")
        return found

    def _store(self, conversation: _Conversation, batch: list[Entry]) -> int:
        messages = [entry.message for entry in batch if entry.message is not None]
        try:
            if not conversation.session_id:
                conversation.session_id = self._session(conversation, batch[0].session)
            appended = self.manager.append(session_id=conversation.session_id, messages=messages)
        except (SessionClosed, SessionExpired) as error:
            if self._has_all(conversation.session_id, messages):
                return 0
            raise BadFileError(batch[0].place, error.detail) from error
        except DossierError as error:
            raise BadFileError(batch[0].place, error.detail) from error
        return appended.created_count

    def _session(self, conversation: _Conversation, external_id: str) -> str:
        is_said = not conversation.title
        title = conversation.first_words if is_said else conversation.title
        session, _ = self.manager.create(
            NewSession(
                external_id=external_id,
                if_exists="return",
                agent_id=self.agent_id or conversation.agent_id,
                user_id=self.user_id,
                title=title and title[:_LONGEST_TITLE],
                title_is_said=is_said,
                metadata=conversation.metadata,
            )
        )
        return session.session_id

    def _has_all(self, session_id: str, messages: Iterable[Mapping[str, Any]]) -> bool:
        names = {message["client_message_id"] for message in messages}
        stored = Message.objects.filter(session=session_id, client_message_id__in=names)
        return stored.count() == len(names)


def _take(conversation: _Conversation, message: Mapping[str, Any]) -> None:
    """Check one message, and tie its calls and results as the server will."""
    draft = draft_message(message, pointer="")
    if draft.client_message_id in conversation.names:
        return
    conversation.names.add(draft.client_message_id)
    for result in draft.results:
        if not conversation.unanswered[result.tool_call_id]:
            raise OrphanToolResult(f"no unanswered call has the id {result.tool_call_id[:80]!r}")
        conversation.unanswered[result.tool_call_id] -= 1
    conversation.unanswered.update(call.tool_call_id for call in draft.calls)
    if len(draft.calls) + len(draft.results) > settings.MAX_TOOL_CALLS_PER_BATCH:
        raise InvalidRequest("more tool calls and results than a message may have")
    conversation.first_words = conversation.first_words or _words_of(draft, message)


def _words_of(draft: Draft, message: Mapping[str, Any]) -> str | None:
    """How a user began; what programs put before that stands in angle brackets."""
    words = plain_text(message.get("content")).strip() if draft.role == "user" else ""
    return None if words.startswith("<") else first_words(words) or None


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Messages of one session that follow each other, as many as an append takes at once."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        if entry.message is None:
            continue
        weight = len(str(entry.message))
        full = len(batch) == _BATCH_MESSAGES or size + weight > _BATCH_CHARACTERS
        if batch and (full or entry.session != batch[0].session):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += weight
    if batch:
        yield batch
