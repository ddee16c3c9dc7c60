"""The window: the newest messages of a session that form a transcript a model will accept.

Newest first, in units: a call and all results that answer its message's calls are one unit, in
the window whole or not at all, at the place of the unit's newest message. So no result stands
without its call, and no answered call without its result; a result that came late brings its old
call with it. System and developer messages that open the session stay, beyond the budget.
Source: contract, "Resume packet"; report PAIR-01. Everything read is bounded by the window.
"""

from dataclasses import dataclass
from typing import cast

from django.conf import settings
from django.db.models import Q

from ..models import Message, Session, ToolCall
from ..querysets import MessageQuerySet


@dataclass(frozen=True, slots=True)
class Window:
    """Messages oldest first.

    ``first_sequence`` and ``last_sequence`` bound what was chosen by budget: earlier messages are
    those before ``first_sequence``. Both are null when nothing was.
    """

    messages: list[Message]
    first_sequence: int | None
    last_sequence: int | None
    omitted_before: int
    estimated_tokens: int


# A rough and stable measure: English and code run at about four bytes of JSON a token.
BYTES_PER_TOKEN = 4


def read_window(session: Session, *, last_n: int) -> Window:
    """Read the window of at most ``last_n`` messages, besides those that open the session.

    ``session`` was read first: what was appended since is not part of it.
    """
    visible = Message.objects.filter(session=session, sequence__lte=session.last_sequence).live()
    head = list(visible.filter(sequence__lte=session.head_sequence).values_list("sequence", "size"))
    body = visible.filter(sequence__gt=session.head_sequence).order_by("-sequence")
    sizes = dict(body.values_list("sequence", "size")[:last_n])
    budget = settings.MAX_PAGE_BYTES - sum(size for _, size in head)
    chosen = _choose(_units(session, visible, sizes), last_n=last_n, budget=budget)
    sequences = [sequence for sequence, _ in head] + sorted(chosen)
    messages = list(visible.filter(sequence__in=sequences).order_by("sequence"))
    return Window(
        messages=messages,
        first_sequence=min(chosen, default=None),
        last_sequence=max(chosen, default=None),
        omitted_before=session.message_count - len(messages),
        estimated_tokens=sum(message.size for message in messages) // BYTES_PER_TOKEN,
    )


def _units(
    session: Session, visible: MessageQuerySet, sizes: dict[int, int]
) -> list[dict[int, int]]:
    """The candidates' units as {sequence: size}, newest first."""
    root = _roots(session, sizes)
    missing = set(root) - set(sizes)
    older = visible.filter(sequence__in=missing).values_list("sequence", "size")
    known = sizes | (dict(older) if missing else {})
    units: dict[int, dict[int, int]] = {}
    for sequence in sorted(known, reverse=True):
        units.setdefault(root.get(sequence, sequence), {})[sequence] = known[sequence]
    return list(units.values())


def _roots(session: Session, sizes: dict[int, int]) -> dict[int, int]:
    """For each message that makes or answers calls: the call message that its unit is named by."""
    answered = ToolCall.objects.filter(session=session, result_sequence__isnull=False)
    mine = Q(message_sequence__in=sizes) | Q(result_sequence__in=sizes)
    callers = set(answered.filter(mine).values_list("message_sequence", flat=True))
    links = answered.filter(message_sequence__in=callers).order_by("message_sequence", "id")
    root: dict[int, int] = {}
    for link in links.only("message_sequence", "result_sequence"):
        _join(root, cast(int, link.message_sequence), cast(int, link.result_sequence))
    return root


def _join(root: dict[int, int], call: int, result: int) -> None:
    """Put a call and its result into one unit; a message that answers several joins theirs."""
    name = root.setdefault(call, root.get(result, call))
    if (other := root.get(result, name)) != name:
        root |= {key: name for key, value in root.items() if value == other}
    root[result] = name


def _choose(units: list[dict[int, int]], *, last_n: int, budget: int) -> set[int]:
    chosen: set[int] = set()
    for unit in units:
        fits = len(chosen) + len(unit) <= last_n
        budget -= sum(unit.values())
        if not fits or (chosen and budget < 0):
            break
        chosen |= set(unit)
    return chosen
