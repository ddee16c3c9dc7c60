"""A write that dies at any of its statements, or at its COMMIT, has stored nothing.

Reports CMP-01 (a history that was cleared before its replacement failed), PAIR-03 and IMP-01 (parts
of what was sent), DUP-01 (an effect without its key): their whole kind, for every write that the
router knows.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User

from sessions_app.services import SessionManager
from tests.domain import Desk, calling, calls_of, dump, later, result, user
from tests.factories import make_token
from tests.hostile.attack import Attacker, Operation, operations
from tests.isolation.things import furnish
from tests.model.dying import Died, dying_before

WRITES = [operation for operation in operations() if operation.route.writes]
_MOST_STATEMENTS = 100


def each_statement() -> Iterator[int]:
    yield from range(_MOST_STATEMENTS)
    raise AssertionError("it dies again and again")


@pytest.mark.parametrize("operation", WRITES, ids=str)
def test_a_request_that_dies_is_put_off_and_then_done_once(
    account: User, operation: Operation
) -> None:
    attacker = Attacker(make_token(account=account), furnish(account, marker="own"))
    headers = {"Idempotency-Key": "once"}
    send = partial(attacker.send, operation, operation.sample, headers=headers)
    before = dump()
    for statement in each_statement():
        with dying_before(statement):
            answer = send()
        if answer.status_code != 503:
            break
        assert int(answer.headers["Retry-After"]) >= 1
        assert dump() == before, f"it died before statement {statement}"
    assert answer.status_code < 300, answer.content
    after = dump()
    assert after != before
    assert send().headers["Idempotency-Replayed"] == "true"
    assert dump() == after


class TestADeath:
    @pytest.fixture
    def desk(self, account: User) -> Desk:
        return Desk(account)

    @pytest.fixture
    def session_id(self, desk: Desk) -> str:
        """With a little of everything, and a run that has lapsed."""
        made = desk.open(idle_timeout_seconds=60, working_memory={"goal": "g"})
        desk.append(made, user(), calling("a"), result("a"), user(), calling("b"), user())
        desk.run(made, lease_seconds=10)
        return made

    def test_of_who_settles_leaves_nothing_half_settled(self, desk: Desk, session_id: str) -> None:
        before = dump()
        for statement in each_statement():
            try:
                with dying_before(statement):
                    desk.sessions.settle(session_id=session_id, now=later(300))
                break
            except Died:
                assert dump() == before
        assert dump() != before

    def test_of_who_purges_leaves_the_rest_to_the_next(
        self, desk: Desk, session_id: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as left_alone:
            left_alone.setattr(SessionManager, "purge", lambda *_, **__: False)
            desk.sessions.delete(session_id=session_id, now=later(1))
        done: Any = None
        for statement in each_statement():
            try:
                with dying_before(statement):
                    done = desk.sessions.purge(session_id=session_id, batch=1, batches=100)
                break
            except Died:
                pass
        assert done
        assert not calls_of(session_id)
