"""Races that need a fixed clock or the inside of a transaction: managers in threads that commit."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from runs_app.models import Run
from runs_app.services import RunManager
from runs_app.services.creation import NewRun
from runs_app.services.sweep import sweep
from sessions_app.actors import Actor
from sessions_app.errors import (
    AlreadyExists,
    DossierError,
    RunActive,
    RunEnded,
    RunInterrupted,
    SessionExpired,
)
from sessions_app.models import Message, Session, SessionEvent
from sessions_app.services import SessionManager, creation
from sessions_app.services.conversations import ConversationManager
from sessions_app.services.creation import NewSession
from sessions_app.services.items.incoming import draft_items
from sessions_app.services.locking import lock_named
from sessions_app.states import SessionStatus
from tests.races.load import together

pytestmark = pytest.mark.usefixtures("consistent")

ROUNDS = 25
HELLO = [{"role": "user", "content": "hello"}]
INSTANT = timedelta(microseconds=1)


@pytest.fixture
def manager(account: User) -> SessionManager:
    return SessionManager(Actor.account(account))


@pytest.fixture
def runs(account: User) -> RunManager:
    return RunManager(Actor.account(account))


def race(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls returned, or how they were refused; each on a connection of its own."""

    def outcome(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except DossierError as refusal:
            return refusal
        finally:
            connection.close()

    return together([partial(outcome, call) for call in calls])


class TestAnItem:
    def test_is_taken_by_one_of_those_that_take_it_at_once(self, account):
        manager = ConversationManager(Actor.account(account))
        for _ in range(ROUNDS):
            session = manager.begin(NewSession(), items=draft_items(HELLO, pointer="/items"))
            page = manager.read_items(session_id=session.pk, limit=1, descending=True)
            item_id = page.data[0].id
            take = partial(manager.remove_item, session_id=session.pk, item_id=item_id)
            outcomes = race(take, take, take)
            assert sorted(type(outcome).__name__ for outcome in outcomes) == [
                "NotFound",
                "NotFound",
                "Session",
            ]


class TestADeadline:
    """Report TTL-01: the sweep against an append, at the very deadline."""

    @pytest.fixture
    def start(self) -> datetime:
        return timezone.now()

    def test_either_the_append_comes_first_or_it_is_refused(self, manager, start):
        outcomes = set()
        for number in range(ROUNDS):
            session_id = _idle_session(manager, start)
            deadline = start + timedelta(seconds=60)
            append = partial(
                manager.append, session_id=session_id, messages=HELLO, now=deadline - INSTANT
            )
            settle = partial(manager.settle, session_id=session_id, now=deadline)
            # Whoever is called first has a little start: both outcomes are to be seen.
            appended = race(append, settle)[0] if number % 2 else race(settle, append)[1]
            outcomes.add(_judge(session_id, appended, deadline))
        assert outcomes == {SessionStatus.ACTIVE, SessionStatus.EXPIRED}

    def test_an_append_after_the_deadline_is_refused_before_any_sweep(self, manager, start):
        session_id = _idle_session(manager, start)
        late = start + timedelta(seconds=60)
        append = partial(manager.append, session_id=session_id, messages=HELLO, now=late)
        refusals = race(*[append] * 5)
        assert [type(refusal) for refusal in refusals] == [SessionExpired] * 5
        assert not Message.objects.filter(session=session_id).exists()

    def test_several_sweeps_settle_a_session_once(self, manager, runs, start):
        ids = [_idle_session(manager, start) for _ in range(10)]
        for session_id in ids:
            runs.create(session_id=session_id, new=NewRun(lease_seconds=10), now=start)
        swept = race(*[partial(sweep, batch=3, now=start + timedelta(hours=1))] * 4)
        assert not any(isinstance(result, Exception) for result in swept)
        for session_id in ids:
            events = SessionEvent.objects.filter(session=session_id).order_by("sequence")
            assert [event.to_status for event in events] == [
                "ACTIVE",
                "PENDING",
                "RUNNING",
                "INTERRUPTED",
                "EXPIRED",
            ]

    def test_a_lapsed_lease_against_the_end_of_its_run(self, manager, runs, start):
        deadline = start + timedelta(seconds=10)
        for _ in range(ROUNDS):
            session, _created = manager.create(NewSession(), now=start)
            run = runs.create(
                session_id=session.session_id, new=NewRun(lease_seconds=10), now=start
            )
            completed, cancelled, _ = race(
                partial(runs.complete, run_id=run.run_id, now=deadline - INSTANT),
                partial(runs.cancel, run_id=run.run_id, now=deadline),
                partial(manager.settle, session_id=session.session_id, now=deadline),
            )
            ended = Run.objects.get(pk=run.run_id)
            if isinstance(completed, Run):
                assert ended.status == "COMPLETED"
                assert isinstance(cancelled, RunEnded)
            else:
                assert isinstance(completed, RunInterrupted | RunEnded)
                assert isinstance(cancelled, Run)
                assert ended.status == "CANCELLED"

    def test_two_new_runs_at_the_end_of_a_lease(self, manager, runs, start):
        """The lapsed run makes way for one of them, whether or not a sweep was there first."""
        deadline = start + timedelta(seconds=10)
        for _ in range(ROUNDS):
            session, _created = manager.create(NewSession(), now=start)
            begin = partial(
                runs.create,
                session_id=session.session_id,
                new=NewRun(lease_seconds=10),
                now=deadline,
            )
            lapsed = runs.create(
                session_id=session.session_id, new=NewRun(lease_seconds=10), now=start
            )
            settle = partial(manager.settle, session_id=session.session_id, now=deadline)
            *outcomes, _ = race(begin, begin, settle)
            assert {type(outcome) for outcome in outcomes} == {Run, RunActive}
            assert Run.objects.get(pk=lapsed.run_id).status == "INTERRUPTED"


def _idle_session(manager: SessionManager, start: datetime) -> str:
    session, _ = manager.create(NewSession(idle_timeout_seconds=60), now=start)
    return session.session_id


def _judge(session_id: str, appended: Any, deadline: datetime) -> SessionStatus:
    session = Session.objects.get(pk=session_id)
    if isinstance(appended, SessionExpired):
        assert session.status == SessionStatus.EXPIRED
        assert session.expired_at == deadline
        assert session.last_sequence == 0
    else:
        assert session.status == SessionStatus.ACTIVE
        assert session.expires_at == deadline - INSTANT + timedelta(seconds=60)
        assert session.last_sequence == 1
    return SessionStatus(session.status)


class TestOneExternalId:
    """Report CON-04."""

    def test_create_or_get_and_append_inside_an_outer_transaction(self, manager):
        def work() -> int:
            with transaction.atomic():
                session, _ = manager.create(NewSession(external_id="one", if_exists="return"))
                manager.append(session_id=session.session_id, messages=HELLO)
                return Session.objects.filter(pk=session.session_id).count()

        assert race(*[work] * 10) == [1] * 10
        (session,) = Session.objects.filter(account=manager.actor.user)
        assert session.last_sequence == 10

    def test_a_refusal_leaves_the_outer_transaction_usable(self, manager):
        def work() -> str:
            with transaction.atomic():
                mine, _ = manager.create(NewSession(title="before"))
                try:
                    manager.create(NewSession(external_id="taken"))
                except AlreadyExists as refusal:
                    manager.append(session_id=refusal.data["session_id"], messages=HELLO)
                return mine.session_id

        ids = race(*[work] * 10)
        assert Session.objects.filter(pk__in=ids).count() == 10
        assert (
            Session.objects.get(external_id="taken", account=manager.actor.user).last_sequence == 9
        )

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="one writer at a time: no gap")
    def test_whoever_had_it_is_gone_by_the_time_of_the_look(self, manager, monkeypatch):
        """The loser of the unique constraint looks for the winner, which was just deleted."""
        winner, _ = manager.create(NewSession(external_id="fleeting"))
        looks = []

        def existing(account_id: int, external_id: str) -> Session | None:
            looks.append(external_id)
            if len(looks) == 2:
                race(partial(manager.delete, session_id=winner.session_id))
            return None if len(looks) <= 2 else lock_named(account_id, external_id)

        monkeypatch.setattr(creation, "lock_named", existing)
        session, created = manager.create(NewSession(external_id="fleeting", if_exists="return"))
        assert created
        assert session.session_id != winner.session_id


def test_several_sweeps_finish_a_deletion_that_was_interrupted(manager, interrupted_deletion):
    session = interrupted_deletion()
    swept = race(*[partial(sweep, batch=20)] * 4)
    assert not any(isinstance(result, Exception) for result in swept)
    assert_purged(session)


def test_several_purges_of_a_session_take_turns(manager, interrupted_deletion):
    """Each removes rows that point at one another, and one of them says when all were gone."""
    for _ in range(5):
        session = interrupted_deletion()
        purge = partial(manager.purge, session_id=session.pk, batch=7, batches=100)
        assert race(*[purge] * 4) == [True] * 4
        assert_purged(session)


@pytest.fixture
def interrupted_deletion(manager, runs, monkeypatch) -> Callable[[], Session]:
    def make() -> Session:
        session, _ = manager.create(NewSession())
        manager.append(session_id=session.session_id, messages=HELLO * 200)
        last = None
        for _ in range(20):
            new = NewRun(if_active="cancel", retry_of=last)
            last = runs.create(session_id=session.session_id, new=new).run_id
        with monkeypatch.context() as interrupted:
            interrupted.setattr(SessionManager, "purge", lambda *_, **__: False)
            manager.delete(session_id=session.session_id)
        assert Message.objects.filter(session=session).count() == 200
        return session

    return make


def assert_purged(session: Session) -> None:
    assert not Message.objects.filter(session=session).exists()
    assert not Run.objects.filter(session=session).exists()
    session.refresh_from_db()
    assert session.purged_at is not None
