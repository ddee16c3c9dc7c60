"""An append that needs no decision: it stores what every append would, or nothing at all."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from sessions_app.actors import Actor
from sessions_app.models import IdempotencyRecord, Message, SearchEntry, Session
from sessions_app.services import NewSession, SessionManager
from sessions_app.services.idempotency import Write
from sessions_app.services.locking import write_transaction
from sessions_app.services.messages import draft_messages
from sessions_app.turns import in_line
from tests.api_client import APIClient
from tests.domain import NOON, later
from tests.factories import make_token
from tests.handing_over import threads

pytestmark = pytest.mark.usefixtures("consistent")

HELLO = {"role": "user", "content": "hello"}
SYSTEM = {"role": "system", "content": "Be brief."}
BATCHES: dict[str, list[dict[str, Any]]] = {
    "one": [HELLO],
    "several": [HELLO, {"role": "assistant", "content": "hi", "model": "m"}, HELLO],
    "a head": [SYSTEM, {"role": "developer", "content": "x"}, HELLO, SYSTEM],
    "parts": [{"role": "user", "content": [{"type": "text", "text": 'a "quoted" \\ word'}]}],
    "nothing": [{"role": "assistant", "content": None}, {"role": "assistant", "content": ""}],
    "an item": [{"item": {"type": "reasoning", "summary": []}}],
    "an item of no type": [{"item": {"type": ""}}],
    "texts and none": [{"role": "assistant", "content": ""}, HELLO, {"item": {"type": "x"}}],
    "spaces": [{"role": "user", "content": " "}, {"role": "user", "content": ""}],
    "NUL": [{"role": "user", "content": "a\x00b", "metadata": {"k": "\x00"}}],
    "scripts": [{"role": "user", "content": "中文 🙂 %1$s %s {} \u202e"}],
    "large": [{"role": "user", "content": "x" * 100_000}],
}


@pytest.fixture
def manager(account: User) -> Iterator[SessionManager]:
    with time_machine.travel(NOON, tick=False):
        yield SessionManager(Actor.account(account))


def opened(manager: SessionManager, **new: Any) -> str:
    return manager.create(NewSession(**{"title": "Titled", **new}))[0].session_id


def plainly(manager: SessionManager, session_id: str, messages: Any = (HELLO,), **more: Any) -> Any:
    drafts = draft_messages(messages, pointer="/messages")
    return manager.append_plainly(session_id=session_id, messages=drafts, **more)


def nothing(*_: Any) -> str:
    return "{}"


def rows(session_id: str) -> dict[str, list[Any]]:
    """The session with its messages, whole, but for what names them."""
    found = {
        "session": Session.objects.filter(pk=session_id),
        "messages": Message.objects.filter(session=session_id).order_by("sequence"),
    }
    names = {"session_id", "message_id", "event_digest"}  # a digest holds ids
    stored: dict[str, list[Any]] = {
        kind: [{k: v for k, v in row.items() if k not in names} for row in of_kind.values()]
        for kind, of_kind in found.items()
    }
    entries = SearchEntry.objects.filter(session=session_id).order_by("pk")
    return stored | {"entries": [*entries.values("kind", "account_id", "terms")]}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("timeout", [None, 60])
def test_stores_what_every_append_does(manager: SessionManager, batch: str, timeout: int) -> None:
    usual, plain = (opened(manager, idle_timeout_seconds=timeout) for _ in range(2))
    for _ in range(2):
        with time_machine.travel(later(5), tick=False):
            expected = manager.append(session_id=usual, messages=BATCHES[batch])
            appended = plainly(manager, plain, BATCHES[batch])
        assert rows(plain) == rows(usual)
        assert (appended.created_count, appended.last_sequence, appended.version) == (
            expected.created_count,
            expected.last_sequence,
            expected.version,
        )
        stored = Message.objects.filter(pk__in=[each.pk for each in appended.messages])
        assert [*stored.order_by("sequence").values()] == [
            {name: getattr(each, name) for name in row}
            for each, row in zip(appended.messages, stored.values(), strict=True)
        ]


def test_beside_an_active_run_expires_with_it(manager: SessionManager) -> None:
    usual, plain = (opened(manager, idle_timeout_seconds=60) for _ in range(2))
    Session.objects.filter(pk__in=[usual, plain]).update(active_run_deadline=later(300))
    manager.append(session_id=usual, messages=[HELLO])
    plainly(manager, plain)
    assert rows(plain) == rows(usual)
    assert rows(plain)["session"][0]["expires_at"] == later(300)


def test_is_one_statement_or_few(manager: SessionManager, account: User) -> None:
    session_id = opened(manager)
    write = Write(account=account, method="POST", path="/x", key="k")
    with CaptureQueriesContext(connection) as captured:
        assert plainly(manager, session_id, write=write, kept=nothing)
    # SQLite: BEGIN, a look at the session, three tables, COMMIT.
    assert len(captured) == (1 if connection.vendor == "postgresql" else 6)
    assert IdempotencyRecord.objects.get(account=account).session_id == session_id


@pytest.mark.skipif(connection.vendor != "sqlite", reason="writers of PostgreSQL do not wait")
def test_of_several_threads_in_one_transaction(manager: SessionManager, account: User) -> None:
    """Two to one session under keys of their own, and one under a key that is taken already: the
    group is taken back for that one, and the others are stored once."""
    session_id = opened(manager)
    taken, *fresh = (Write(account=account, method="POST", path="/x", key=k) for k in "tab")
    assert plainly(manager, session_id, write=taken, kept=nothing)

    def append(write: Write) -> Any:
        return plainly(manager, session_id, [HELLO, HELLO], write=write, kept=nothing)

    with threads() as hand_over:
        with in_line(time.monotonic() + 5):
            writes = hand_over(*(partial(append, write) for write in (fresh[0], taken, fresh[1])))
        done = [write.result() for write in writes]
    assert done[1] is None
    ends = [(each.last_sequence, each.version) for each in (done[0], done[2])]
    assert sorted(ends) == [(3, 3), (5, 4)]
    assert [*Message.objects.filter(session=session_id).values_list("sequence", flat=True)] == [
        *range(1, 6)
    ]
    assert IdempotencyRecord.objects.filter(account=account).count() == 3


class TestDoesNothing:
    @pytest.fixture
    def session_id(self, manager: SessionManager) -> Iterator[str]:
        """A session of which nothing may be changed by the test."""
        session_id = opened(manager, idle_timeout_seconds=60)
        self.before: Any = None
        yield session_id
        assert rows(session_id) == self.before

    def refused(self, session_id: str, attempt: Callable[[], Any]) -> None:
        self.before = rows(session_id)
        assert attempt() is None

    @pytest.mark.parametrize("end", ["close", "expire", "delete"])
    def test_in_a_session_that_has_ended(
        self, manager: SessionManager, session_id: str, end: str
    ) -> None:
        getattr(manager, end)(session_id=session_id)
        self.refused(session_id, lambda: plainly(manager, session_id))

    @pytest.mark.parametrize(
        "deadline", ["expires_at", "active_run_deadline", "other_run_deadline"]
    )
    def test_after_a_deadline(
        self, manager: SessionManager, session_id: str, deadline: str
    ) -> None:
        Session.objects.filter(pk=session_id).update(**{deadline: NOON})
        self.refused(session_id, lambda: plainly(manager, session_id))
        Session.objects.filter(pk=session_id).update(**{deadline: NOON + timedelta(microseconds=1)})
        assert plainly(manager, session_id)
        self.before = rows(session_id)

    def test_for_a_stranger(self, session_id: str) -> None:
        stranger = User(pk=0, username="stranger")
        self.refused(
            session_id, lambda: plainly(SessionManager(Actor.account(stranger)), session_id)
        )

    def test_for_whoever_is_bound_to_no_account(self, session_id: str, account: User) -> None:
        manager = SessionManager(Actor.operator(account))
        self.refused(session_id, lambda: plainly(manager, session_id))

    @pytest.mark.skipif(
        connection.vendor != "postgresql", reason="SQLite does not tell whose lock it is"
    )
    def test_while_another_has_the_lock(self, manager: SessionManager, session_id: str) -> None:
        def elsewhere() -> Any:
            try:
                return plainly(manager, session_id)
            finally:
                connection.close()

        with ThreadPoolExecutor(1) as pool, transaction.atomic():
            Session.objects.select_for_update().get(pk=session_id)
            self.refused(session_id, lambda: pool.submit(elsewhere).result())

    def test_where_a_title_is_still_to_be_given(
        self, manager: SessionManager, session_id: str
    ) -> None:
        Session.objects.filter(pk=session_id).update(title=None)
        self.refused(session_id, lambda: plainly(manager, session_id))
        assert plainly(manager, session_id, [SYSTEM])
        self.before = rows(session_id)

    def test_inside_a_transaction(self, manager: SessionManager, session_id: str) -> None:
        with write_transaction():
            self.refused(session_id, lambda: plainly(manager, session_id))

    def test_where_the_key_has_a_record(
        self, manager: SessionManager, session_id: str, account: User
    ) -> None:
        write = Write(account=account, method="POST", path="/x", key="k")
        assert plainly(manager, opened(manager), write=write, kept=nothing)
        self.refused(session_id, lambda: plainly(manager, session_id, write=write, kept=nothing))

    @pytest.mark.parametrize(
        "given", [{"run_id": "run_1"}, {"attempt": 1}, {"expected_last_sequence": 0}]
    )
    def test_under_a_condition(
        self, manager: SessionManager, session_id: str, given: dict[str, Any]
    ) -> None:
        self.refused(session_id, lambda: plainly(manager, session_id, **given))

    @pytest.mark.parametrize(
        "message",
        [
            HELLO | {"client_message_id": "once"},
            {"role": "assistant", "content": "hi", "usage": {"input_tokens": 1}},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
        ],
    )
    def test_with_what_has_to_do_with_another(
        self, manager: SessionManager, session_id: str, message: dict[str, Any]
    ) -> None:
        self.refused(session_id, lambda: plainly(manager, session_id, [HELLO, message]))


@pytest.mark.parametrize("text", ["\x1f", "a\x1fb", "\x1f\x1f\x1f", "\x1e\x1d\r\n\t"])
@pytest.mark.parametrize("others", [0, 2])
def test_characters_that_part_things_are_text(account: User, text: str, others: int) -> None:
    api = APIClient(make_token(account=account))
    session_id = api.post("/sessions", {"title": "Titled"}).json()["session_id"]
    path = f"/sessions/{session_id}/messages"
    item: dict[str, Any] = {"item": {"type": text, "value": text}}
    for sent in ({"role": "user", "content": text}, item):
        assert api.post(path, {"messages": [sent, *[HELLO] * others]}).status_code == 201
    kept = [{**HELLO, "type": "message"}] * others
    expected = [{"role": "user", "content": text, "type": "message"}, *kept]
    expected += [{**item, "type": text}, *kept]
    read = api.get(path).json()["data"]
    assert [{k: got[k] for k in want} for want, got in zip(expected, read, strict=True)] == expected


@pytest.mark.parametrize("prefer", [{}, {"Prefer": "return=minimal"}])
def test_is_answered_again_from_its_record(account: User, prefer: dict[str, str]) -> None:
    api = APIClient(make_token(account=account))
    session_id = api.post("/sessions", {}).json()["session_id"]
    path, headers = f"/sessions/{session_id}/messages", {"Idempotency_Key": "k", **prefer}
    api.post(path, {"messages": [SYSTEM, HELLO]})
    body = {"messages": [HELLO, HELLO]}
    first, again = (api.post(path, body, **headers) for _ in range(2))
    assert again.headers["Idempotency-Replayed"] == "true"
    assert first.headers["Location"] == again.headers["Location"] == f"/api/v1{path}/3"
    assert first.headers.get("Preference-Applied") == again.headers.get("Preference-Applied")
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert Message.objects.filter(session=session_id).count() == 4
