"""What a search shows of the texts that it found."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Case, F, TextField, Value, When

from ..fields import JSONTextField
from ..folding import call_text, message_text, values_in
from ..models import Message, Session, ToolCall, WorkingMemoryRevision
from ..models.search import SearchKind
from ..snippets import Segment, snippet_of
from ..terms import Query
from .finding import Found

# Of a larger message, the snippet is folded, as its words are stored beside it.
_WHOLE_BYTES = 64 * 1024


class Hit(NamedTuple):
    """One text; of a message its ``message``, of a recorded call its id."""

    kind: str
    session_id: str
    title: str | None
    message: Message | None
    call_id: str | None
    created_at: datetime
    snippet: list[Segment]


class _Text(NamedTuple):
    text: str
    created_at: datetime
    message: Message | None = None


def hits_of(found: Sequence[Found], query: Query) -> list[Hit]:
    """In the order in which they were found, without what was taken away meanwhile: a statement for
    each kind, and one for the sessions."""
    sessions = {each.pk: each for each in _sessions(found)}
    texts = _messages(_subjects(found, SearchKind.MESSAGE))
    texts |= _calls(_subjects(found, SearchKind.TOOL_CALL))
    memories = _memories(_subjects(found, SearchKind.MEMORY))
    titles = {pk: _Text(_title_text(each), each.created_at) for pk, each in sessions.items()}
    of_session = {SearchKind.SESSION: titles, SearchKind.MEMORY: memories}
    hits = []
    for each in found:
        text = of_session.get(SearchKind(each.kind), texts).get(each.subject_id)
        session = sessions.get(each.session_id)
        if text is not None and session is not None:
            hits.append(_hit(each, text, session, query))
    return hits


def _hit(found: Found, text: _Text, session: Session, query: Query) -> Hit:
    return Hit(
        kind=found.kind,
        session_id=found.session_id,
        title=session.title,
        message=text.message,
        call_id=found.subject_id if found.kind == SearchKind.TOOL_CALL else None,
        created_at=text.created_at,
        snippet=snippet_of(text.text, query),
    )


def _subjects(found: Iterable[Found], kind: SearchKind) -> list[str]:
    return [each.subject_id for each in found if each.kind == kind]


def _sessions(found: Iterable[Found]) -> Iterable[Session]:
    shown = Session.objects.only("session_id", "title", "external_id", "created_at")
    return shown.filter(pk__in={each.session_id for each in found})


def _title_text(session: Session) -> str:
    return "\n".join(filter(None, (session.title, session.external_id)))


def _messages(ids: Collection[str]) -> dict[str, _Text]:
    """The whole body of a small message, the text of a large one: no answer loads both."""
    is_small = When(size__lte=_WHOLE_BYTES, then=F("body"))
    is_large = When(size__gt=_WHOLE_BYTES, then=F("text"))
    rows = Message.objects.filter(pk__in=ids).live().defer("body", "text")
    rows = rows.annotate(
        whole=Case(is_small, output_field=JSONTextField(null=True)),
        folded=Case(is_large, default=Value(""), output_field=TextField()),
    )
    return {row.pk: _Text(_message_text(row), row.created_at, row) for row in (rows if ids else ())}


def _message_text(row: Any) -> str:
    return message_text(row.whole.value) if row.whole else row.folded


def _calls(ids: Collection[str]) -> dict[str, _Text]:
    rows = ToolCall.objects.filter(pk__in=ids).only("id", "name", "arguments", "created_at")
    return {
        row.pk: _Text(
            call_text(row.name, row.arguments.value if row.arguments else None), row.created_at
        )
        for row in (rows if ids else ())
    }


def _memories(session_ids: Collection[str]) -> dict[str, _Text]:
    rows = WorkingMemoryRevision.objects.filter(
        session__in=session_ids, version=F("session__working_memory_version")
    )
    return {
        row.session_id: _Text("\n".join(values_in(row.memory.value)), row.created_at)
        for row in (rows if session_ids else ())
    }
