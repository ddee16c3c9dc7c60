import signal
from io import StringIO

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import OperationalError

from runs_app.management.commands import expire_sessions
from runs_app.services.sweep import Swept
from tests.domain import dump, later, row


def run(**options):
    out, err = StringIO(), StringIO()
    call_command("expire_sessions", stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


@pytest.fixture
def lapsed(desk):
    """A session whose time is over by the clock."""
    session_id = desk.open(idle_timeout_seconds=60)
    with time_machine.travel(later(61), tick=False):
        yield session_id


class TestOnce:
    def test_settles_and_says_so(self, lapsed):
        out, _ = run()
        assert "1 sessions were settled" in out
        assert row(lapsed).status == "EXPIRED"

    def test_again_settles_nothing(self, lapsed):
        run()
        before = dump()
        assert "0 sessions were settled" in run()[0]
        assert dump() == before

    def test_fails_when_something_was_left(self, lapsed, monkeypatch):
        monkeypatch.setattr(expire_sessions, "sweep", lambda **_: Swept(settled=1, failed=2))
        with pytest.raises(CommandError, match="2 sessions were left"):
            run()

    @pytest.mark.parametrize("batch", [1, 5])
    def test_takes_the_size_of_a_batch(self, lapsed, batch, monkeypatch):
        seen = []

        def sweep(*, batch):
            seen.append(batch)
            return Swept()

        monkeypatch.setattr(expire_sessions, "sweep", sweep)
        run(batch=batch)
        assert seen == [batch]


class TestDryRun:
    def test_says_what_is_due_and_changes_nothing(self, lapsed):
        before = dump()
        out, _ = run(dry_run=True)
        assert "1 sessions would be settled" in out
        assert dump() == before


class TestOptions:
    @pytest.mark.parametrize(
        "options", [{"batch": 0}, {"batch": -1}, {"loop": 0.0}, {"loop": -1.0}]
    )
    def test_must_be_greater_than_zero(self, db, options):
        with pytest.raises(CommandError):
            run(**options)


class TestLoop:
    @pytest.fixture(autouse=True)
    def signals(self):
        """The loop takes them over: give them back."""
        kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        yield
        for number, handler in kept.items():
            signal.signal(number, handler)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_ends_in_good_order_when_it_is_told_to(self, db, monkeypatch, number):
        rounds = []

        def sweep(*, batch):
            rounds.append(batch)
            if len(rounds) == 3:
                signal.raise_signal(number)
            return Swept()

        monkeypatch.setattr(expire_sessions, "sweep", sweep)
        monkeypatch.setattr(expire_sessions, "close_old_connections", lambda: None)
        assert run(loop=0.001) == ("", "")
        assert rounds == [100, 100, 100]

    def test_outlives_a_database_that_is_busy_or_gone(self, db, monkeypatch, caplog):
        rounds = []

        def sweep(*, batch):
            rounds.append(batch)
            if len(rounds) == 1:
                raise OperationalError("database is locked")
            signal.raise_signal(signal.SIGTERM)
            return Swept(settled=2)

        monkeypatch.setattr(expire_sessions, "sweep", sweep)
        monkeypatch.setattr(expire_sessions, "close_old_connections", lambda: None)
        with caplog.at_level("INFO", logger="dossier.sweep"):
            assert run(loop=0.001) == ("", "")
        first, second = caplog.messages
        assert first == "The sweep will try again: OperationalError"
        assert second.startswith("2 sessions were settled")
