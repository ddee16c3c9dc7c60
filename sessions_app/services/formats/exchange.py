"""Who said what after whom: results are given to their calls, wherever they were stored."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping

from .parts import Call, Result, Said
from .stored import Key, StoredMessage, take_apart

_Waiting = dict[Key, deque[Call]]


def arranged(
    messages: Iterable[StoredMessage], answers: Mapping[int, Collection[int]]
) -> list[Said]:
    """The messages, oldest first, each call with its result.

    A result answers the first unanswered call with its id in the newest message that has one
    (lifecycle page, "Tool call"); where ``answers`` knows the message's calls, one of those.
    """
    said: list[Said] = []
    waiting: _Waiting = {}
    goes_on = False
    for message in messages:
        apart = take_apart(message)
        for key, result in apart.results:
            _answer(waiting.get(key), result, answers.get(message.sequence, ()))
            goes_on = False
        for each in apart.said:
            each.continues = goes_on and each.role == "assistant"
            goes_on = each.role == "assistant"
            said.append(each)
        for key, call in reversed(apart.calls):
            waiting.setdefault(key, deque()).appendleft(call)
    return said


def _answer(waiting: deque[Call] | None, result: Result, of: Collection[int]) -> None:
    """Without a call that waits, the result is left out (report PAIR-04)."""
    if waiting:
        call = next((call for call in waiting if call.sequence in of), waiting[0])
        waiting.remove(call)
        call.result = result
