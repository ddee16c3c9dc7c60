"""The window: the newest messages of a session that form a transcript a model will accept.

Newest first, in units: a call and all results that answer its message's calls are one unit, in
the window whole or not at all, at the place of the unit's newest message. So no result stands
without its call, and no answered call without its result; a result that came late brings its old
call with it. System and developer messages that open the session stay, beyond the budget.

A compaction stays with them, and before all else: what it stands for is left out, and so is every
compaction before it. Only a call that is answered after that comes back, with its result.
Source: contract, "Resume packet"; report PAIR-01. Everything read is bounded by the window.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import attrgetter
from typing import Any

from django.conf import settings
from django.db.models import BigIntegerField, F, Q, QuerySet, Subquery, Sum
from django.db.models import Window as RunningWindow
from django.db.models.functions import Cast, Coalesce

from ..models import Message, Session, ToolCall
from ..prepared import GIVEN_LIMIT, Given, GivenList, Prepared
from ..querysets import MessageQuerySet
from ..rows import MessageRow
from .estimating import bytes_for, tokens_of
from .survey import Survey, by_part, part, union
from .units import Body, apart, choose, members, within


@dataclass(frozen=True, slots=True)
class Window:
    """Messages oldest first, but for the compaction, which stands where what it covers would.

    From ``first_sequence`` to ``last_sequence`` nothing is missing, so whoever wants more reads
    what is before ``first_sequence``. Of that, the window holds only what opens the session, and
    calls that late results brought along. Both are null when not even the newest unit fits.
    ``truncated`` tells that bytes, neither ``last_n`` nor ``max_tokens``, ended it. ``answers``
    says which messages' calls a message's results answer, by sequences.
    """

    messages: list[MessageRow]
    first_sequence: int | None
    last_sequence: int | None
    omitted_before: int
    estimated_tokens: int
    truncated: bool
    answers: Mapping[int, Collection[int]] = field(default_factory=dict)


# A session that is opened by more than this is cut there: a packet has an end.
MAX_HEAD = 1000
# Sizes and links of so many more messages are read at once, so that a unit that begins before
# the newest ``last_n`` costs no further query unless it is longer than that.
_MARGIN = 64

_SIZE = {"number": F("sequence"), "other": F("size")}
_PAIR = {"number": F("message_sequence"), "other": F("result_sequence")}
_SEQUENCE = attrgetter("sequence")


def read_window(
    session: Session,
    *,
    last_n: int,
    max_tokens: int | None = None,
    budget: int | None = None,
    survey: Survey | None = None,
) -> Window:
    """Read the window of at most ``last_n`` messages, besides those that open the session.

    ``session`` was read first: what was appended since is not part of it. ``max_tokens`` bounds
    the same messages, and ``budget``, in bytes (``MAX_PAGE_BYTES``), all of them; the newest unit
    may exceed both. ``survey`` is what a larger one found of `window_parts`.
    """
    room = settings.MAX_PAGE_BYTES if budget is None else budget
    compacted = session.compaction_sequence is not None
    if not (session.head_sequence or session.tool_call_count or compacted):
        return _read_plain(session, last_n, max_tokens, room)
    if survey is None:
        shape = (head_length(session), session.tool_call_count > 0, compacted)
        survey = by_part(_survey.all(*shape, **window_values(session, last_n)))
    head, head_size, head_was_cut = _fit_head(survey, room)
    body = Body(session, survey, _links_of)
    newest = body.newest[:last_n]
    most = bytes_for(max_tokens)
    units, was_cut = choose(body, newest, last_n=last_n, budget=room - head_size, wanted=most)
    compaction = [sequence for _, sequence, *_ in survey["compaction"]]
    messages = _load(session, head, *apart(newest, units), compaction)
    kept = within(units, messages, max_tokens)
    dropped = members(units[len(kept) :])
    messages = [message for message in messages if message.sequence not in dropped]
    gapless, _ = apart(newest, kept)
    if not newest or (compaction and compaction[0] > newest[0]):
        gapless += compaction  # the newest of all
    was_cut = head_was_cut or (was_cut and not dropped)
    window = _window(session, messages, gapless, truncated=was_cut)
    return replace(window, answers=body.answers(messages))


def _read_plain(session: Session, last_n: int, max_tokens: int | None, budget: int) -> Window:
    """Where each message is a unit, the database can tell which fit: one statement."""
    wanted = bytes_for(max_tokens)
    most = {"limit": last_n - 1, "budget": int(min(budget, wanted))}
    values = window_values(session, last_n) | most
    rows = _fitting.all(**values) if session.message_count else []
    messages = sorted(rows, key=_SEQUENCE)
    units = [{message.sequence} for message in reversed(messages)]
    kept = len(within(units, messages, max_tokens))
    expected = min(last_n, session.message_count)
    was_cut = budget <= wanted and kept == len(rows) < expected
    messages = messages[len(rows) - kept :]
    found = [message.sequence for message in messages]
    return _window(session, messages, found, truncated=was_cut)


def _window(
    session: Session, messages: list[MessageRow], gapless: Collection[int], *, truncated: bool
) -> Window:
    omitted = session.message_count - len(messages)
    covered = gapless if omitted else [message.sequence for message in messages]
    return Window(
        messages=messages,
        first_sequence=min(covered, default=None),
        last_sequence=max(covered, default=None),
        omitted_before=omitted,
        estimated_tokens=tokens_of(messages),
        truncated=truncated,
    )


def head_length(session: Session) -> int:
    """How many of the messages that open the session a survey has, at most; 0: there are none."""
    return MAX_HEAD + 1 if session.head_sequence else 0


def window_values(session: Session, last_n: int) -> dict[str, Any]:
    """What `window_parts` are given."""
    return {
        "session_id": session.session_id,
        "head": session.head_sequence,
        "compaction": session.compaction_sequence,
        "body": max(session.head_sequence, session.compacted_through or 0) + 1,
        "last": session.last_sequence,
        "limit": last_n + _MARGIN - 1,
    }


def window_parts(
    given: type[Given], head_length: int, has_calls: bool, compacted: bool
) -> list[QuerySet[Any, Any]]:
    """What a window is chosen by: sizes of messages, and which answers what. None, where each
    message is a unit of its own.

    The pairs are those whose result is in the range: then the call is, too, or it comes before.
    """
    if not (head_length or has_calls or compacted):
        return []
    live = _said(given)
    newest = _newest(live, given)
    parts = [part("body", live.filter(sequence__range=newest), **_SIZE)]
    if head_length:
        opening = live.filter(sequence__range=(1, given("head")))
        end = opening.order_by("sequence").values("sequence")[head_length - 1 : head_length]
        first = (1, Coalesce(Subquery(end), given("head")))
        parts.append(part("head", live.filter(sequence__range=first), **_SIZE))
    if compacted:
        parts.append(part("compaction", _compaction(given), **_SIZE))
    if has_calls:
        calls = ToolCall.objects.filter(session=given("session_id"), result_sequence__range=newest)
        parts.append(part("pair", calls, **_PAIR))
    return parts


def _said(given: type[Given]) -> MessageQuerySet:
    """The messages that a window is made of; compactions are none of them."""
    mine = Message.objects.filter(session=given("session_id"), through_sequence__isnull=True)
    return mine.live()


def _compaction(given: type[Given]) -> MessageQuerySet:
    mine = Message.objects.filter(session=given("session_id"), sequence=given("compaction"))
    return mine.live()


def _newest(live: MessageQuerySet, given: type[Given]) -> tuple[Any, Any]:
    """The range of the newest messages, the row behind ``limit`` others the first of them.

    It has two ends: PostgreSQL takes half a range whose end it does not know for a third of the
    table.
    """
    body = live.filter(sequence__range=(given("body"), given("last")))
    lowest = body.order_by("-sequence").values("sequence")[GIVEN_LIMIT : GIVEN_LIMIT + 1]
    return Coalesce(Subquery(lowest), given("body")), given("last")


@Prepared
def _fitting(given: type[Given]) -> QuerySet[Message, MessageRow]:
    """The newest messages whose sizes add up to no more than the budget, but one in any case."""
    live = _said(given)
    total = RunningWindow(Sum("size"), order_by=F("sequence").desc())
    newest = live.filter(sequence__range=_newest(live, given)).annotate(total=total)
    budget = Cast(given("budget"), BigIntegerField())
    return newest.filter(Q(total__lte=budget) | Q(total=F("size"))).rows()


@Prepared
def _links(given: type[Given]) -> QuerySet[Any, Any]:
    """Sizes and pairs of some messages. What is asked of sequences by ``IN`` is asked by nothing
    else of that column: beside ``IS NOT NULL`` SQLite walks through the whole session instead."""
    among: Any = [GivenList("sequences")]
    live = _said(given)
    calls = ToolCall.objects.filter(session=given("session_id"))
    return union(
        [
            part("body", live.filter(sequence__in=among), **_SIZE),
            part("pair", calls.filter(message_sequence__in=among), **_PAIR),
            part("pair", calls.filter(result_sequence__in=among), **_PAIR),
        ]
    )


def _links_of(session: Session, sequences: Collection[int]) -> Survey:
    return by_part(_links.all(session_id=session.session_id, sequences=sequences))


@Prepared
def _survey(given: type[Given], *shape: Any) -> QuerySet[Any, Any]:
    return union(window_parts(given, *shape))


def _fit_head(survey: Survey, budget: int) -> tuple[list[int], int, bool]:
    """The sequences that open the session, their size with a compaction's, which is there in any
    case, and whether some were left out."""
    sizes = dict(sorted((sequence, size) for _, sequence, size, _ in survey["head"]))
    fixed = sum(size for _, _, size, _ in survey["compaction"])
    totals = [total for total in accumulate(sizes.values()) if total + fixed <= budget][:MAX_HEAD]
    head_size = max(totals, default=0) + fixed
    return list(sizes)[: len(totals)], head_size, len(totals) < len(sizes)


def _load(
    session: Session,
    head: Collection[int],
    gapless: Collection[int],
    strays: Collection[int],
    compaction: Collection[int],
) -> list[MessageRow]:
    """These messages in their order: all up to the head's end, the compaction, all of a range, and
    some between."""
    if not (head or gapless or compaction):
        return []
    rows = _rows.all(
        bool(head),
        bool(strays),
        bool(compaction),
        session_id=session.session_id,
        head=max(head, default=0),
        first=min(gapless, default=0),
        last=max(gapless, default=0),
        strays=strays,
        compaction=max(compaction, default=0),
    )
    found = sorted(rows, key=_SEQUENCE)
    if not compaction:
        return found
    opens = {*head, *compaction}
    after = [message for message in found if message.sequence not in opens]
    return [*(message for message in found if message.sequence in opens), *after]


@Prepared
def _rows(
    given: type[Given], head: bool, strays: bool, compacted: bool
) -> QuerySet[Message, MessageRow]:
    live = _said(given)
    parts = [live.filter(sequence__range=(given("first"), given("last")))]
    if head:
        parts.append(live.filter(sequence__range=(1, given("head"))))
    if strays:
        parts.append(live.filter(sequence__in=[GivenList("strays")]))
    if compacted:
        parts.append(_compaction(given))
    return union([rows.rows() for rows in parts])
