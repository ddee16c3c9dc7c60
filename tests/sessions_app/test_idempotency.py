import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings
from rest_framework.test import APIClient

from sessions_app import errors
from sessions_app.jsontext import JSONText
from sessions_app.models import IdempotencyRecord, Session
from sessions_app.services import Actor
from sessions_app.services.idempotency import Answer, Write, once
from sessions_app.services.locking import locked_session
from tests.plumbing import account, api_client, bare_session, client_with, token_for

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.probe")]


@pytest.fixture
def user() -> User:
    return account()


@pytest.fixture
def client(user: User) -> APIClient:
    return api_client(user)


@pytest.fixture
def session(user: User) -> Session:
    return bare_session(user)


def url_of(session: Session) -> str:
    return f"/api/v1/sessions/{session.pk}/counter"


def write(
    client: APIClient, url: str, body: Any = None, *, key: str | None = "k", method: str = "post"
) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return getattr(client, method)(url, {} if body is None else body, headers=headers)


def version_of(session: Session) -> int:
    return int(Session.objects.values_list("version", flat=True).get(pk=session.pk))


def replayed(answer: Any) -> bool:
    return bool(answer.headers.get("Idempotency-Replayed") == "true")


class TestTheSameKeyAgain:
    def test_answers_the_first_result_and_does_nothing(
        self, client: APIClient, session: Session
    ) -> None:
        body = {"a": 1, "b": [None, "", 10**30, 1.0]}
        first, second = (write(client, url_of(session), body) for _ in range(2))
        assert (first.status_code, second.status_code) == (201, 201)
        assert second.content == first.content
        assert (replayed(first), replayed(second)) == (False, True)
        assert version_of(session) == 2

    def test_repeats_the_headers(self, client: APIClient, session: Session) -> None:
        first, second = (write(client, url_of(session)) for _ in range(2))
        for name in ("ETag", "Location", "Content-Type"):
            assert first[name] == second[name]

    def test_has_a_request_id_of_its_own(self, client: APIClient, session: Session) -> None:
        first, second = (write(client, url_of(session)) for _ in range(2))
        assert first["X-Request-Id"] != second["X-Request-Id"]

    def test_may_order_its_keys_otherwise(self, client: APIClient, session: Session) -> None:
        write(client, url_of(session), {"a": {"x": 1, "y": 2}, "b": 3})
        assert replayed(write(client, url_of(session), {"b": 3, "a": {"y": 2, "x": 1}}))

    def test_may_end_the_path_with_a_slash(self, client: APIClient, session: Session) -> None:
        write(client, url_of(session))
        assert replayed(write(client, f"{url_of(session)}/"))

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ({"a": 1}, {"a": 2}),
            ({"a": 1}, {"a": 1, "b": 2}),
            ({"a": 1}, {"a": 1.0}),
            ({"a": 1}, {"a": True}),
            ({"a": 1}, {"a": "1"}),
            ({"a": None}, {}),
            ({"a": 0.0}, {"a": -0.0}),
            ({"a": [1, 2]}, {"a": [2, 1]}),
            ({"a": 10**30}, {"a": 10**30 + 1}),
            ({"a": 2**53}, {"a": 2**53 + 1}),
            ({"a": "é"}, {"a": "e\u0301"}),
        ],
    )
    def test_with_another_body_is_422(
        self, client: APIClient, session: Session, first: Any, second: Any
    ) -> None:
        write(client, url_of(session), first)
        answer = write(client, url_of(session), second)
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
        assert version_of(session) == 2

    def test_is_answered_after_the_session_was_closed(
        self, client: APIClient, session: Session
    ) -> None:
        first = write(client, url_of(session))
        Session.objects.update(status="CLOSED", closed_at=timezone.now())
        assert write(client, url_of(session)).content == first.content

    def test_costs_one_query_beside_the_write_that_it_takes_back(
        self, client: APIClient, session: Session, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        write(client, url_of(session))
        # The lock, and the change with its record, which PostgreSQL refuses in one statement.
        written = 2 if connection.vendor == "postgresql" else 3
        # Authentication; that in a transaction (here a savepoint, which is made, left and
        # released); the record.
        with django_assert_num_queries(2 + written + 3 + 1):
            write(client, url_of(session))


class TestAnotherRequest:
    def test_without_a_key_is_another_write(self, client: APIClient, session: Session) -> None:
        for _ in range(2):
            assert not replayed(write(client, url_of(session), key=None))
        assert version_of(session) == 3
        assert not IdempotencyRecord.objects.exists()

    def test_with_another_key_is_independent(self, client: APIClient, session: Session) -> None:
        for key in ("k", "K", "k ", "k2"):
            assert not replayed(write(client, url_of(session), key=key))
        assert version_of(session) == 5

    def test_to_another_session_is_independent(
        self, client: APIClient, user: User, session: Session
    ) -> None:
        other = bare_session(user)
        assert not replayed(write(client, url_of(session)))
        assert not replayed(write(client, url_of(other)))

    def test_with_another_method_is_independent(self, client: APIClient, session: Session) -> None:
        assert not replayed(write(client, url_of(session)))
        assert not replayed(write(client, url_of(session), method="patch"))

    def test_of_another_account_is_independent(self, client: APIClient, session: Session) -> None:
        write(client, url_of(session))
        stranger = api_client(account("stranger"))
        answer = write(stranger, url_of(session))
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert IdempotencyRecord.objects.count() == 1

    def test_by_another_token_of_the_account_is_the_same(
        self, client: APIClient, user: User, session: Session
    ) -> None:
        write(client, url_of(session))
        assert replayed(write(client_with(token_for(user)), url_of(session)))


class TestAKey:
    @pytest.mark.parametrize("key", ["x" * 255, "é" * 255, " inner space ", '"quoted"', "a/b\\c"])
    def test_may_be_any_text(self, client: APIClient, session: Session, key: str) -> None:
        assert write(client, url_of(session), key=key).status_code == 201
        assert replayed(write(client, url_of(session), key=key))

    @pytest.mark.parametrize("key", ["", "x" * 256])
    def test_has_from_1_to_255_characters(
        self, client: APIClient, session: Session, key: str
    ) -> None:
        answer = write(client, url_of(session), key=key)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        assert answer.json()["errors"][0]["pointer"] == "/Idempotency-Key"
        assert version_of(session) == 1

    def test_may_hold_a_nul(self, client: APIClient, session: Session) -> None:
        assert write(client, url_of(session), key="a\x00b").status_code == 201
        assert replayed(write(client, url_of(session), key="a\x00b"))

    def test_is_not_read_on_a_get(self, client: APIClient, session: Session) -> None:
        answer = client.get(url_of(session), headers={"Idempotency-Key": "x" * 300})
        assert answer.status_code == 200


class TestAFailure:
    def test_takes_the_write_back_and_leaves_no_record(
        self, client: APIClient, session: Session
    ) -> None:
        answer = write(client, url_of(session), {"fail": True})
        assert (answer.status_code, answer.json()["code"]) == (409, "session_closed")
        assert version_of(session) == 1
        assert not IdempotencyRecord.objects.exists()

    def test_frees_the_key_for_another_request(self, client: APIClient, session: Session) -> None:
        write(client, url_of(session), {"fail": True})
        assert write(client, url_of(session), {"a": 1}).status_code == 201

    def test_that_nobody_expected_takes_both_back_too(
        self, user: User, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*args: Any) -> None:
            raise RuntimeError("broken")

        monkeypatch.setattr("sessions_app.services.idempotency._wrapped", broken)
        answer = write(api_client(user, raise_request_exception=False), url_of(session))
        assert answer.status_code == 500
        assert version_of(session) == 1
        assert not IdempotencyRecord.objects.exists()

    def test_of_the_precondition_is_not_recorded(self, client: APIClient, session: Session) -> None:
        headers = {"If-Match": '"9"', "Idempotency-Key": "k"}
        assert client.post(url_of(session), {}, headers=headers).status_code == 412
        headers["If-Match"] = '"1"'
        assert client.post(url_of(session), {}, headers=headers).status_code == 201
        assert replayed(client.post(url_of(session), {}, headers=headers))

    def test_that_is_answered_as_a_result_is_not_recorded(
        self, client: APIClient, session: Session
    ) -> None:
        for _ in range(2):
            answer = write(client, url_of(session), {"status": 303})
            assert (answer.status_code, replayed(answer)) == (303, False)
        assert not IdempotencyRecord.objects.exists()


class TestARecord:
    def test_belongs_to_the_session(self, client: APIClient, session: Session) -> None:
        write(client, url_of(session))
        record = IdempotencyRecord.objects.get()
        assert (record.session_id, record.status_code) == (session.pk, 201)

    def test_must_belong_to_a_session(self, user: User) -> None:
        client = api_client(user)
        with pytest.raises(NotImplementedError, match="keep_session"):
            write(client, "/api/v1/forgetful")

    def test_may_keep_less_than_the_answer(self, client: APIClient, session: Session) -> None:
        write(client, url_of(session), method="patch")
        record = IdempotencyRecord.objects.get()
        assert record.answer == JSONText('{"kept":{"version":2}}')

    def test_rebuilds_what_it_does_not_keep(self, client: APIClient, session: Session) -> None:
        first = write(client, url_of(session), method="patch")
        assert first.json() == {"title": None, "version": 2}
        Session.objects.update(title="later")
        second = write(client, url_of(session), method="patch")
        assert second.json() == {"title": "later", "version": 2}
        assert (second.status_code, replayed(second), version_of(session)) == (200, True, 2)

    def test_holds_for_a_day_and_not_longer(
        self, client: APIClient, session: Session, settings: Settings
    ) -> None:
        settings.IDEMPOTENCY_TTL_HOURS = 24
        write(client, url_of(session), {"a": 1})
        IdempotencyRecord.objects.update(
            created_at=timezone.now() - timedelta(hours=23, minutes=59)
        )
        assert replayed(write(client, url_of(session), {"a": 1}))
        IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(hours=24))
        answer = write(client, url_of(session), {"a": 2})
        assert (answer.status_code, replayed(answer)) == (201, False)
        assert replayed(write(client, url_of(session), {"a": 2}))
        assert version_of(session) == 3


class TestAfterTheDeletion:
    def delete(self, client: APIClient, session: Session, key: str = "d") -> Any:
        return write(client, url_of(session), key=key, method="delete")

    def test_every_other_key_is_410(self, client: APIClient, session: Session) -> None:
        write(client, url_of(session), {"a": 1})
        write(client, url_of(session), method="patch", key="p")
        self.delete(client, session)
        for answer in (
            write(client, url_of(session), {"a": 1}),
            write(client, url_of(session), method="patch", key="p"),
            write(client, url_of(session), key="new"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (410, "session_deleted")

    def test_the_key_of_the_delete_is_still_204(self, client: APIClient, session: Session) -> None:
        first, second = (self.delete(client, session) for _ in range(2))
        assert (first.status_code, second.status_code) == (204, 204)
        assert (first.content, second.content) == (b"", b"")
        assert (replayed(first), replayed(second)) == (False, True)

    def test_it_is_so_when_the_records_are_emptied(
        self, client: APIClient, session: Session
    ) -> None:
        write(client, url_of(session))
        self.delete(client, session)
        IdempotencyRecord.objects.update(answer=None, headers=None)
        assert self.delete(client, session).status_code == 204
        assert write(client, url_of(session)).status_code == 410

    def test_another_delete_is_410(self, client: APIClient, session: Session) -> None:
        self.delete(client, session)
        assert self.delete(client, session, key="other").status_code == 410


def together(count: int, call: Callable[[int], Any]) -> list[Any]:
    """What ``count`` threads got that began at the same moment."""
    gate = threading.Barrier(count)

    def one(number: int) -> Any:
        gate.wait()
        try:
            return call(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


@pytest.mark.django_db(transaction=True)
class TestParallelRequests:
    def test_with_one_key_have_one_effect(self, user: User, session: Session) -> None:
        clients = [client_with(token_for(user)) for _ in range(10)]
        answers = together(10, lambda n: write(clients[n], url_of(session), {"a": 1}))
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.content for answer in answers}) == 1
        assert [replayed(answer) for answer in answers].count(False) == 1
        assert version_of(session) == 2

    def test_with_one_key_and_many_bodies_have_one_effect(
        self, user: User, session: Session
    ) -> None:
        clients = [client_with(token_for(user)) for _ in range(10)]
        answers = together(10, lambda n: write(clients[n], url_of(session), {"a": n}))
        codes = sorted(answer.status_code for answer in answers)
        assert codes == [201] + [422] * 9
        assert version_of(session) == 2

    def test_with_keys_of_their_own_have_an_effect_each(self, user: User, session: Session) -> None:
        clients = [client_with(token_for(user)) for _ in range(10)]
        answers = together(10, lambda n: write(clients[n], url_of(session), key=str(n)))
        assert {answer.status_code for answer in answers} == {201}
        assert version_of(session) == 11

    def test_with_a_lapsed_key_have_one_effect(self, user: User, session: Session) -> None:
        clients = [client_with(token_for(user)) for _ in range(10)]
        write(clients[0], url_of(session), {"a": 1})
        IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(days=30))
        answers = together(10, lambda n: write(clients[n], url_of(session), {"a": 1}))
        assert {answer.status_code for answer in answers} == {201}
        assert version_of(session) == 3

    def test_wait_for_one_that_fails_and_then_do_it(self, user: User, session: Session) -> None:
        """What the one that fails has done goes with it; another takes its place.

        The one that failed answers as it found it, or, when the other is through before it looks
        for a record, as that one did.
        """
        first_holds, may_fail = threading.Event(), threading.Event()
        actor = Actor.account(user)

        def failing() -> Answer:
            with locked_session(session.pk, actor=actor):
                first_holds.set()
                may_fail.wait(5)
                raise errors.SessionClosed("It failed.")

        def working() -> Answer:
            with locked_session(session.pk, actor=actor):
                assert may_fail.is_set()
            return Answer(status=201, session_id=session.pk)

        def first() -> Answer | None:
            try:
                return once(keyed(user), failing)
            except errors.SessionClosed:
                return Answer(status=409)

        def second() -> Answer | None:
            first_holds.wait(5)
            threading.Timer(0.2, may_fail.set).start()
            return once(keyed(user), working)

        failed, worked = together(2, lambda n: (first, second)[n]())
        assert worked is None
        assert failed in (Answer(status=409), Answer(status=201, session_id=session.pk))
        assert IdempotencyRecord.objects.get().status_code == 201

    def test_give_up_at_the_lock_timeout(self, user: User, session: Session) -> None:
        first_holds, may_end = threading.Event(), threading.Event()

        def first() -> None:
            with transaction.atomic():
                IdempotencyRecord.objects.create(
                    digest=keyed(user).digest, account=user, created_at=timezone.now()
                )
                first_holds.set()
                may_end.wait(10)

        def second() -> Exception:
            first_holds.wait(5)
            answer = Answer(status=201, session_id=session.pk)
            with short_lock_timeout(), pytest.raises(Exception) as caught:  # noqa: PT011
                once(keyed(user), lambda: answer)
            may_end.set()
            return caught.value

        _, error = together(2, lambda n: (first, second)[n]())
        if connection.vendor == "postgresql":
            assert isinstance(error, errors.IdempotencyInProgress)
        else:  # the one write lock does not tell what it is held for
            assert isinstance(error, OperationalError)


def keyed(user: User) -> Write:
    return Write(account=user, method="POST", path="/api/v1/x", key="k")


class short_lock_timeout:  # noqa: N801 (used like a function)
    """Waits for locks of this connection end after a tenth of a second."""

    def __enter__(self) -> None:
        sql = "SET lock_timeout = '100ms'"
        if connection.vendor == "sqlite":
            sql = "PRAGMA busy_timeout = 100"
        with connection.cursor() as cursor:
            cursor.execute(sql)

    def __exit__(self, *_: object) -> None:
        connection.close()


class TestAWrite:
    def test_tells_its_parts_apart(self, user: User) -> None:
        parts: dict[str, Any] = {"method": "POST", "path": "/a", "key": "b"}
        base = Write(account=user, **parts)
        for name, value in {"method": "PUT", "path": "/ab", "key": ""}.items():
            assert Write(account=user, **{**parts, name: value}).digest != base.digest
        swapped = Write(account=user, method="POST", path='/a","b', key="")
        assert swapped.digest != base.digest
        assert len(base.digest) == 64

    def test_counts_the_query_in_but_not_its_order(self, user: User) -> None:
        def with_query(*query: tuple[str, list[str]]) -> str:
            return Write(account=user, method="DELETE", path="/", key="k", query=query).fingerprint

        assert with_query(("a", ["1"]), ("b", ["2"])) == with_query(("b", ["2"]), ("a", ["1"]))
        assert with_query(("a", ["1"])) != with_query(("a", ["2"]))
        assert with_query() != with_query(("a", ["1"]))

    def test_is_usable_inside_a_foreign_transaction(self, user: User, session: Session) -> None:
        done = Answer(status=201, session_id=session.pk, body=JSONText('{"a":1}'))
        with transaction.atomic():
            assert once(keyed(user), lambda: done) is None
            again = once(keyed(user), lambda: done)
            assert IdempotencyRecord.objects.count() == 1
        assert again is not None
        assert again.body == done.body
