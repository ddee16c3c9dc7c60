"""Where a session's messages and tool calls mention some words, newest first.

No index knows the words: messages are walked through, so many and so large at most that an answer
comes in a moment, and the answer says how far back it has looked.
"""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Case, F, Q, QuerySet, Value, When
from django.db.models.functions import Greatest, StrIndex, Substr

from ..fields import JSONTextField
from ..folding import fold
from ..jsontext import JSONText
from ..models import Message, Session, ToolCall
from ..querysets import how_many_fit
from .transcript import with_small_values

PAGE_HITS = 30
REACH_MESSAGES = 20_000
REACH_BYTES = 32 * 1024 * 1024
MOST_CHARACTERS = 200
# Of a message up to this size, its words are shown as they are spelt.
_WHOLE_BYTES = 16 * 1024
_BEFORE, _AROUND = 80, 400
_CALLS_AT_ONCE = 200
# Characters by their numbers, two for one where it is large; or what else a backslash begins.
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[^u]")


@dataclass(frozen=True, slots=True)
class Mentions:
    """Each message has ``around``, its folded text near the first place where the words stand, and
    ``whole``, its body if that is small. ``calls`` are those of these messages that have the words
    in their name or arguments. ``earlier`` is the sequence before which to look on; None: all has
    been looked through.
    """

    messages: Sequence[Message]
    calls: Sequence[ToolCall]
    earlier: int | None


def find_mentions(
    session: Session, *, words: str, before: int | None = None, role: str | None = None
) -> Mentions:
    """``words`` are compared without case, at most `MOST_CHARACTERS` of them."""
    folded = fold(words[:MOST_CHARACTERS])
    begin, is_more = _reach(session, before)
    span = Message.objects.filter(session=session, sequence__gte=begin)
    span = span.matching(before=before, role=role)
    calls = _calls(session, span, folded)
    wanted = Q(text__contains=folded) | Q(sequence__in=list(calls))
    hits = list(_near(span.filter(wanted), folded).order_by("-sequence")[: PAGE_HITS + 1])
    if len(hits) > PAGE_HITS:
        begin, is_more = hits[PAGE_HITS - 1].sequence, True
    shown = hits[:PAGE_HITS]
    named = [pk for message in shown for pk in calls.get(message.sequence, ())]
    made = ToolCall.objects.filter(pk__in=named)
    return Mentions(shown, list(with_small_values(made)), begin if is_more else None)


def _reach(session: Session, before: int | None) -> tuple[int, bool]:
    """The first message that one answer looks at, and whether there is any before it."""
    found = Message.objects.filter(session=session).matching(before=before).order_by("-sequence")
    rows = list(found.values_list("sequence", "size")[: REACH_MESSAGES + 1])
    fitting = how_many_fit([size for _, size in rows[:REACH_MESSAGES]], REACH_BYTES)
    return (rows[fitting - 1][0], fitting < len(rows)) if rows else (1, False)


def _near(messages: QuerySet[Message], folded: str) -> QuerySet[Message]:
    first = Greatest(StrIndex("text", Value(folded)) - _BEFORE, 1)
    small = When(size__lte=_WHOLE_BYTES, then=F("body"))
    return messages.defer("body", "text").annotate(
        around=Substr("text", first, _AROUND),
        whole=Case(small, output_field=JSONTextField(null=True)),
    )


def _calls(session: Session, span: QuerySet[Message], folded: str) -> dict[int | None, list[str]]:
    """By message, the calls whose name or arguments have the words: newest messages first, one more
    than a page has.

    They are folded here, as text is when it is stored: no database folds as Unicode says.
    """
    made = ToolCall.objects.filter(session=session, message_sequence__in=span.values("sequence"))
    newest = made.order_by("-message_sequence")
    rows = newest.values_list("pk", "message_sequence", "name", "arguments")
    spelt = {folded, json.dumps(folded, ensure_ascii=False)[1:-1]}
    found: defaultdict[int | None, list[str]] = defaultdict(list)
    for pk, sequence, name, arguments in rows.iterator(chunk_size=_CALLS_AT_ONCE):
        if len(found) > PAGE_HITS and sequence not in found:
            break
        given = fold(f"{name}\n{_as_spelt(arguments)}")
        if any(each in given for each in spelt):
            found[sequence].append(pk)
    return found


def _as_spelt(arguments: JSONText | None) -> str:
    """The JSON of the arguments, also where it came in a string; characters are not escaped."""
    text = arguments.text if arguments else ""
    if text.startswith('"'):
        text = json.loads(text)
    return _ESCAPES.sub(_character, text) if r"\u" in text else text


def _character(escape: re.Match[str]) -> str:
    is_character = escape[0].startswith(r"\u")
    return json.loads(f'"{escape[0]}"') if is_character else escape[0]
