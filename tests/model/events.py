"""What may happen, how often, and what is drawn for it."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st

from tests.domain import calling, result, user
from tests.model import reference

# Few writes die; the longest have some more statements than this.
DEATH = st.one_of(st.none(), st.none(), st.none(), st.integers(0, 12))
# What is newest, most often.
WHICH = st.sampled_from([0, 0, 0, 1, 2, 3])
ATTEMPT = st.sampled_from([None, None, "current", "current", "current", "older"])
# The run that a write names, and the attempt.
FENCE = st.sampled_from([True, True, False]).flatmap(
    lambda named: st.tuples(WHICH, ATTEMPT) if named else st.none()
)
Fence = tuple[int, str | None] | None
NAMES = st.sampled_from(["a", "b"])
MOST_CALLS = 3
CALLED = st.lists(NAMES, min_size=1, max_size=MOST_CALLS)
KINDS = st.sampled_from(["text", "calls", "calls", "result", "result", "error"])
BATCH = st.lists(st.tuples(KINDS, CALLED), min_size=1, max_size=3)
PATCH = st.dictionaries(NAMES, st.sampled_from([None, 1, "two"]), min_size=1)
# So many seconds, or to a second beside the next deadline.
TIME = st.sampled_from([1, 5, 5, 5, 59, 3600, 8 * 86_400, "before", "at", "at", "after"])
BESIDE = {"before": -1, "at": 0, "after": 1}
IDLE = st.sampled_from([None, None, 60, 600])
MOVES = st.sampled_from(["close", "expire", "delete", *["resume"] * 6])
MOST_SESSIONS = 2
GIVEN: dict[str, dict[str, Any]] = {"wait": {"reason": "approval"}, "fail": {"error": {}}}


def have(kind: str) -> Callable[[Any], bool]:
    return lambda machine: any(getattr(session, kind) for session in machine.sessions)


Machines = TypeVar("Machines", bound=Callable[..., None])


class Event(NamedTuple):
    """What may happen: how often beside the others, when at all, and what is drawn for it."""

    method: Callable[..., None]
    weight: int
    when: Callable[[Any], Any]
    given: dict[str, Any]


EVENTS: list[Event] = []


def event(
    weight: int = 1, when: Callable[[Any], Any] = lambda _: True, **given: Any
) -> Callable[[Machines], Machines]:
    def noted(method: Machines) -> Machines:
        EVENTS.append(Event(method, weight, when, given))
        return method

    return noted


def attempt_of(run: reference.Run, which: str | None) -> int | None:
    """One that was never given out is no part of the model."""
    if which == "older" and run.attempt:
        return run.attempt - 1
    return run.attempt if which == "current" else None


def batch_of(
    session: reference.Session, drawn: list[tuple[str, list[str]]]
) -> list[tuple[str, list[str]]]:
    """As it was drawn, but that few results find no call: one that finds none takes all with it."""
    waiting = session.waiting()
    batch: list[tuple[str, list[str]]] = []
    for kind, names in drawn:
        if kind == "calls":
            waiting += names
            batch.append((kind, names))
        elif kind != "text" and (waiting or len(names) == MOST_CALLS):
            batch.append((kind, [waiting.pop() if waiting else names[0]]))
        else:
            batch.append(("text", []))
    return batch


def message_of(kind: str, names: list[str]) -> dict[str, Any]:
    if kind == "text":
        return user("text")
    return calling(*names) if kind == "calls" else result(names[0], kind, is_error=kind == "error")
