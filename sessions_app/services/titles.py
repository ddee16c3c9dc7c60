"""What a session is called that nobody has given a title: how its user began."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..folding import plain_text
from ..models import Message, Session
from .drafts import Draft
from .metadata import index_text
from .notes import note_session
from .search import reindex_title

MAX_CHARACTERS = 80
_WORDS = ("text", "input_text")


def may_name(draft: Draft) -> bool:
    """Whether a user says something in it; `name_session` looks closer."""
    return draft.role == "user" and bool(draft.text) and draft.through_sequence is None


def name_session(session: Session, drafts: Sequence[Draft]) -> None:
    """Give a session without a title that of its first user message (row locked, touched).

    It gets no entry of its own in the index of words: it is found by the message.
    """
    titles = (title_in(draft.body.value) for draft in drafts if may_name(draft))
    if title := next(filter(None, titles), None):
        _set_title(session, title)


def forget_title(session: Session, messages: Iterable[Message]) -> None:
    """Take the title away with a message that says the same: what is purged may not live on in it,
    whoever gave the title."""
    if not session.title:
        return
    if any(m.role == "user" and title_in(m.body.value) == session.title for m in messages):
        _set_title(session, None)
        reindex_title(session)


def title_in(body: Mapping[str, Any]) -> str:
    """The title that a message gives; "": it says nothing in words."""
    return first_words(said_in(body))


def _set_title(session: Session, title: str | None) -> None:
    session.title, session.title_is_said = title, title is not None
    index_text(session)
    note_session(session, version=session.version)


def said_in(body: Mapping[str, Any]) -> str:
    """A message's words, without what is no text or a tool's."""
    content = body.get("content") or (body.get("item") or {}).get("content")
    if isinstance(content, list):
        content = [part for part in content if _is_words(part)]
    return plain_text(content)


def _is_words(part: Any) -> bool:
    """Of an item's content nothing was checked when it was stored."""
    return isinstance(part, Mapping) and part.get("type") in _WORDS


def first_words(text: str) -> str:
    """The first line that says something, each space in it one; of a long one the beginning."""
    line = " ".join(next(filter(str.strip, text.splitlines()), "").split())
    return line if len(line) <= MAX_CHARACTERS else f"{line[: MAX_CHARACTERS - 1].rstrip()}…"
