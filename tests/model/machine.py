"""What may happen, in any order: each rule does the same to the server's managers and to the model.

A write that dies at any of its statements, or at its COMMIT, has not happened at all.
"""

import itertools
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from runs_app.services.sweep import sweep
from sessions_app.errors import DossierError
from sessions_app.services import Outcome, SessionChanges
from sessions_app.states import ToolCallStatus
from tests.domain import Desk, later
from tests.model import reference
from tests.model.comparison import assert_same
from tests.model.dying import Died, dying_before
from tests.model.events import (
    ATTEMPT,
    BATCH,
    BESIDE,
    DEATH,
    EVENTS,
    FENCE,
    GIVEN,
    IDLE,
    MOST_SESSIONS,
    MOVES,
    NAMES,
    PATCH,
    TIME,
    WHICH,
    Fence,
    attempt_of,
    batch_of,
    event,
    have,
    message_of,
)

_numbers = itertools.count(1)


class Machine(RuleBasedStateMachine):
    """One account with a few sessions; ``ids`` has the server's id of each thing of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(User.objects.create_user(f"model-{next(_numbers)}"))
        self.clock = 0
        self.sessions: list[reference.Session] = []
        self.ids: dict[Any, str] = {}

    @rule(data=st.data())
    def something_happens(self, data: st.DataObject) -> None:
        """One rule for all, since hypothesis would leave some of several out of each history."""
        possible = [each for each in EVENTS if each.when(self)]
        names = [each.method.__name__ for each in possible for _ in range(each.weight)]
        name = data.draw(st.sampled_from(names))
        chosen = next(each for each in possible if each.method.__name__ == name)
        chosen.method(self, **{key: data.draw(value, key) for key, value in chosen.given.items()})

    # --- time ----------------------------------------------------------------------------------

    @event(weight=3, time=TIME)
    def time_passes(self, time: int | str) -> None:
        if isinstance(time, str):
            deadlines = [each for session in self.sessions for each in session.deadlines()]
            self.clock = max(self.clock, min(deadlines, default=0) + BESIDE[time])
        else:
            self.clock += time
        for session in self.sessions:
            session.pass_to(self.clock)

    @event(death=DEATH)
    def the_sweep_comes_by(self, death: int | None) -> None:
        """It only writes down what is true already, also where it dies on its way."""
        died = False
        try:
            with dying_before(death):
                died = bool(sweep(batch=2, now=later(self.clock)).failed)
        except Died:
            died = True
        for session in self.sessions:
            assert_same(session, self.ids, self.clock, settled=not died)

    # --- sessions ------------------------------------------------------------------------------

    @initialize(idle=IDLE)
    def it_begins_with_a_session(self, idle: int | None) -> None:
        self.a_session_is_created(idle, None)

    @event(when=lambda self: len(self.sessions) < MOST_SESSIONS, idle=IDLE, death=DEATH)
    def a_session_is_created(self, idle: int | None, death: int | None) -> None:
        try:
            with dying_before(death):
                made = self.desk.open(idle_timeout_seconds=idle, now=later(self.clock))
        except Died:
            return
        session = reference.Session(self.clock, idle)
        self.sessions.append(session)
        self.ids[session] = made
        assert_same(session, self.ids, self.clock)

    @event(
        weight=2,
        which=WHICH,
        verb=MOVES,
        death=DEATH,
    )
    def a_session_is_moved(self, which: int, verb: str, death: int | None) -> None:
        session = self._session(which)
        when = (self.clock,) if verb == "resume" else ()
        self._both(
            session,
            getattr(self.desk.sessions, verb),
            lambda: getattr(session, verb)(*when),
            death,
        )

    @event(which=WHICH, death=DEATH)
    def a_session_is_retitled(self, which: int, death: int | None) -> None:
        session = self._session(which)
        changes = SessionChanges(title="another")
        self._both(
            session,
            lambda **at: self.desk.sessions.update(changes=changes, **at),
            session.require_active,
            death,
        )

    # --- what they hold ------------------------------------------------------------------------

    @event(
        weight=6,
        which=WHICH,
        drawn=BATCH,
        fence=FENCE,
        behind=st.sampled_from([None, None, None, 0, 0, 1]),
        death=DEATH,
    )
    def messages_are_appended(
        self,
        which: int,
        drawn: list[tuple[str, list[str]]],
        fence: Fence,
        behind: int | None,
        death: int | None,
    ) -> None:
        session = self._session(which)
        said, really = self._fence(session, fence)
        expected = None if behind is None else len(session.messages) - behind
        if expected is not None:
            really["expected_last_sequence"] = expected
        batch = batch_of(session, drawn)
        messages = [message_of(*each) for each in batch]
        self._both(
            session,
            lambda **at: self.desk.sessions.append(messages=messages, **really, **at),
            lambda: session.append(batch, self.clock, expected=expected, **said),
            death,
        )

    @event(which=WHICH, patch=PATCH, fence=FENCE, death=DEATH)
    def the_memory_is_patched(
        self, which: int, patch: Any, fence: Fence, death: int | None
    ) -> None:
        session = self._session(which)
        said, really = self._fence(session, fence)
        self._both(
            session,
            lambda **at: self.desk.sessions.patch_memory(patch={"extra": patch}, **really, **at),
            lambda: session.patch_memory(patch, self.clock, **said),
            death,
        )

    # --- tool calls ----------------------------------------------------------------------------

    @event(weight=2, which=WHICH, name=st.one_of(st.none(), NAMES), fence=FENCE, death=DEATH)
    def a_tool_starts(
        self,
        which: int,
        name: str | None,
        fence: Fence,
        death: int | None,
    ) -> None:
        session = self._session(which)
        said, really = self._fence(session, fence)
        self._both(
            session,
            lambda **at: self.desk.sessions.start_tool_call(
                name="ls", tool_call_id=name, **really, **at
            ),
            lambda: session.start_call(name, self.clock, **said),
            death,
        )

    @event(
        weight=2,
        when=have("calls"),
        which=WHICH,
        status=st.sampled_from(["SUCCEEDED", "FAILED", "CANCELLED"]),
        has_result=st.booleans(),
        death=DEATH,
    )
    def a_tool_finishes(self, which: int, status: str, has_result: bool, death: int | None) -> None:
        session, call = self._one_of("calls", which)
        outcome = Outcome(ToolCallStatus(status), result=1, has_result=has_result)
        self._both(
            session,
            lambda **at: self.desk.sessions.finish_tool_call(outcome=outcome, **at),
            lambda: session.finish_call(call, status, self.clock, has_result=has_result),
            death,
            id=self.ids[call],
        )

    @event(
        when=have("calls"),
        which=WHICH,
        death=DEATH,
    )
    def a_call_is_settled(self, which: int, death: int | None) -> None:
        session, call = self._one_of("calls", which)
        self._both(
            session,
            self.desk.sessions.settle_tool_call,
            lambda: session.settle_call(call, self.clock),
            death,
            id=self.ids[call],
        )

    # --- runs ----------------------------------------------------------------------------------

    @event(
        weight=3,
        which=WHICH,
        lease=st.sampled_from([10, 300, 3600]),
        if_active=st.sampled_from(["reject", "cancel", "queue"]),
        start=st.sampled_from([True, True, False]),
        death=DEATH,
    )
    def a_run_is_created(
        self, which: int, lease: int, if_active: str, start: bool, death: int | None
    ) -> None:
        session = self._session(which)
        self._both(
            session,
            lambda session_id, now: self.desk.run(
                session_id, now=now, lease_seconds=lease, if_active=if_active, start=start
            ),
            lambda: session.create_run(self.clock, lease=lease, if_active=if_active, start=start),
            death,
        )

    @event(
        weight=5,
        when=have("runs"),
        which=WHICH,
        verb=st.sampled_from(
            ["start", "resume", "wait", "heartbeat", "complete", "fail", "cancel"]
        ),
        attempt=ATTEMPT,
        seconds=st.sampled_from([1, 60, 3600]),
        death=DEATH,
    )
    def a_run_is_moved(
        self, which: int, verb: str, attempt: str | None, seconds: int, death: int | None
    ) -> None:
        session, run = self._one_of("runs", which)
        given = GIVEN.get(verb, {}) | ({"timeout_seconds": seconds} if verb == "wait" else {})
        fence = attempt_of(run, attempt)
        self._both(
            session,
            lambda **at: getattr(self.desk.runs, verb)(attempt=fence, **given, **at),
            lambda: session.move_run(run, verb, fence, self.clock, seconds=seconds),
            death,
            run_id=self.ids[run],
        )

    # --- inside --------------------------------------------------------------------------------

    def _session(self, which: int) -> reference.Session:
        """One that can be written to, most often."""
        active = [session for session in self.sessions if session.status == "ACTIVE"]
        found = active if active and which < 3 else self.sessions
        return found[-1 - which % len(found)]

    def _one_of(self, kind: str, which: int) -> tuple[reference.Session, Any]:
        found = [(session, each) for session in self.sessions for each in getattr(session, kind)]
        return found[-1 - which % len(found)]

    def _fence(
        self, session: reference.Session, fence: Fence
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The run that a write names, to the model and to the server."""
        if fence is None or not session.runs:
            return {}, {}
        run = session.runs[-1 - fence[0] % len(session.runs)]
        attempt = attempt_of(run, fence[1])
        return {"run": run, "attempt": attempt}, {"run_id": self.ids[run], "attempt": attempt}

    def _both(
        self,
        session: reference.Session,
        really: Callable[..., Any],
        said: Callable[[], Any],
        death: int | None,
        **named: str,
    ) -> None:
        """Do it to the server and, unless that died, to the model: both must say the same, and then
        be the same. ``named`` is what is addressed, if that is not the session."""
        at = named or {"session_id": self.ids[session]}
        outcome: str | None = None
        try:
            with dying_before(death):
                really(now=later(self.clock), **at)
        except DossierError as error:
            outcome = type(error).__name__
        except Died:
            outcome = "Died"
        if outcome != "Died":
            assert outcome == _refusal(session, said, by_own_id=bool(named))
        assert_same(session, self.ids, self.clock)


def _refusal(session: reference.Session, said: Callable[[], Any], *, by_own_id: bool) -> str | None:
    """What the model says of it; nothing of a deleted session is known by an id of its own."""
    if by_own_id and session.status == "DELETED":
        return "NotFound"
    try:
        said()
    except reference.Refused as refused:
        return str(refused)
    return None
