"""The resume packet over the API, read without a transition."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from time_machine import Traveller

from sessions_app.models import Session, SessionEvent
from sessions_app.services.formats.parts import NO_RESULT
from tests.api_client import APIClient
from tests.domain import assistant, calling, later, result, user
from tests.factories import (
    add_messages,
    make_account,
    make_messages,
    make_run,
    make_session,
    make_tool_call,
)
from tests.providers import PROVIDERS, answered, check, synthetic

# The contract's, in its order; `truncated` is what its "says that there is more" is called here.
FIELDS = (
    "session working_memory working_memory_version messages window open_tool_calls tool_history "
    "runs active_run interrupted_run truncated resumed_from"
)


def numbers(packet: dict[str, Any]) -> list[int]:
    return [message["sequence"] for message in packet["messages"]]


class TestTheContext:
    def test_has_the_parts_of_the_contract(self, api: APIClient, session: Session) -> None:
        answer = api.get(f"/sessions/{session.pk}/context")
        assert answer.status_code == 200
        assert " ".join(answer.json()) == FIELDS
        assert list(answer.json()["window"]) == [
            "first_sequence",
            "last_sequence",
            "omitted_before",
            "estimated_tokens",
        ]

    def test_shows_each_part_as_its_own_path_does(self, api: APIClient, session: Session) -> None:
        path = f"/sessions/{session.pk}"
        run = make_run(session=session)
        add_messages(user(), calling("c1", "c2"), session=session, run_id=run.pk)
        add_messages(result("c1"), session=session, run_id=run.pk)
        api.patch(f"{path}/working-memory", {"goal": "G"})
        packet = api.get(f"{path}/context").json()
        calls = api.get(f"{path}/tool-calls").json()["data"]
        memory = api.get(f"{path}/working-memory").json()
        assert packet["session"] == api.get(path).json()
        assert packet["working_memory"] == {
            name: memory[name] for name in memory if name not in ("object", "session_id", "version")
        }
        assert packet["working_memory_version"] == memory["version"] == 1
        assert packet["messages"] == api.get(f"{path}/messages").json()["data"]
        assert packet["tool_history"] == calls
        assert packet["open_tool_calls"] == [call for call in calls if call["result"] is None]
        assert packet["session"]["open_tool_calls"] == [packet["open_tool_calls"][0]["id"]]
        shown = api.get(f"/runs/{run.pk}").json()
        assert (packet["runs"], packet["active_run"]) == ([shown], shown)
        assert packet["interrupted_run"] is packet["resumed_from"] is None
        assert packet["truncated"] is False

    def test_changes_nothing(self, api: APIClient, agent: User, clock: Traveller) -> None:
        session = make_session(account=agent, idle_timeout_seconds=60)
        make_run(session=session)
        clock.move_to(later(hours=1))
        events = SessionEvent.objects.count()
        packet = api.get(f"/sessions/{session.pk}/context").json()
        assert packet["session"]["status"] == "EXPIRED"
        assert packet["interrupted_run"]["status"] == "INTERRUPTED"
        assert packet["resumed_from"] is None
        assert SessionEvent.objects.count() == events

    @pytest.mark.parametrize("ending", ["close", "expire"])
    def test_stays_readable_when_the_session_has_ended(
        self, api: APIClient, session: Session, ending: str
    ) -> None:
        make_messages(session=session, count=2)
        api.post(f"/sessions/{session.pk}/{ending}")
        packet = api.get(f"/sessions/{session.pk}/context").json()
        assert numbers(packet) == [1, 2]

    def test_keeps_values_as_they_were_sent(self, api: APIClient, session: Session) -> None:
        sent = (
            '{"role":"assistant","content":"é\\t","reasoning":{"b":1e2,"a":12345678901234567890}}'
        )
        api.post(f"/sessions/{session.pk}/messages", sent.encode())
        raw = api.get(f"/sessions/{session.pk}/context").content.decode()
        assert '"reasoning":{"b":100.0,"a":12345678901234567890}' in raw


class TestTheWindow:
    def test_is_the_newest_fifty_by_default(self, api: APIClient, session: Session) -> None:
        make_messages(session=session, count=60)
        packet = api.get(f"/sessions/{session.pk}/context").json()
        assert numbers(packet) == list(range(11, 61))
        window = packet["window"]
        assert (window["first_sequence"], window["last_sequence"]) == (11, 60)
        assert window["omitted_before"] == 10
        assert 0 < window["estimated_tokens"] <= len(json.dumps(packet["messages"])) // 4

    @pytest.mark.parametrize("last_n", [1, 3, 1000])
    def test_is_as_long_as_was_asked_for(
        self, api: APIClient, session: Session, last_n: int
    ) -> None:
        make_messages(session=session, count=5)
        packet = api.get(f"/sessions/{session.pk}/context", {"last_n": last_n}).json()
        assert numbers(packet) == [1, 2, 3, 4, 5][-last_n:]

    def test_never_parts_a_result_from_its_call(self, api: APIClient, session: Session) -> None:
        add_messages(
            user(), calling("a", "b"), result("a"), result("b"), assistant(), session=session
        )
        found = {
            last_n: numbers(api.get(f"/sessions/{session.pk}/context", {"last_n": last_n}).json())
            for last_n in range(1, 6)
        }
        assert found == {1: [5], 2: [5], 3: [5], 4: [2, 3, 4, 5], 5: [1, 2, 3, 4, 5]}

    @pytest.mark.parametrize(
        ("query", "pointer"),
        [
            ("last_n=0", "/last_n"),
            ("last_n=1001", "/last_n"),
            ("last_n=-1", "/last_n"),
            ("last_n=", "/last_n"),
            ("last_n=1e2", "/last_n"),
            ("last_n=%D9%A3", "/last_n"),
            ("last_n=100000000000000000000", "/last_n"),
            ("last_n=5&last_n=6", "/last_n"),
            ("max_tokens=0", "/max_tokens"),
            ("max_tokens=1e3", "/max_tokens"),
            ("max_tokens=100000001", "/max_tokens"),
            ("format=xml", "/format"),
            ("mark_synthetic=1", "/mark_synthetic"),
            ("limit=5", "/limit"),
        ],
    )
    def test_is_asked_for_strictly(
        self, api: APIClient, session: Session, query: str, pointer: str
    ) -> None:
        for method, end in (("GET", "context"), ("POST", "resume")):
            answer = api.send(method, f"/sessions/{session.pk}/{end}", query=query)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
            assert answer.json()["errors"][0]["pointer"] == pointer

    def test_may_be_asked_for_in_the_native_format(self, api: APIClient, session: Session) -> None:
        answer = api.get(f"/sessions/{session.pk}/context", {"format": "native"})
        assert answer.status_code == 200

    def test_stops_at_the_size_of_a_page_and_says_so(
        self, api: APIClient, session: Session, settings: Any
    ) -> None:
        settings.MAX_PAGE_BYTES = 2500
        add_messages(*[user("x" * 1000)] * 4, session=session)
        packet = api.get(f"/sessions/{session.pk}/context").json()
        assert numbers(packet) == [3, 4]
        assert packet["truncated"] is True
        assert packet["window"]["omitted_before"] == 2


class TestItsETag:
    def test_is_the_version_of_the_session(self, api: APIClient, session: Session) -> None:
        first = api.get(f"/sessions/{session.pk}/context")
        assert first.headers["ETag"] == '"1"'
        answer = api.get(f"/sessions/{session.pk}/context", If_None_Match='"1"')
        assert (answer.status_code, answer.headers["ETag"]) == (304, '"1"')

    def test_changes_with_a_message(self, api: APIClient, session: Session) -> None:
        make_messages(session=session)
        answer = api.get(f"/sessions/{session.pk}/context", If_None_Match='"1"')
        assert (answer.status_code, answer.headers["ETag"]) == (200, '"2"')

    def test_answers_nothing_while_the_session_lapsed(
        self, api: APIClient, agent: User, clock: Traveller
    ) -> None:
        session = make_session(account=agent, idle_timeout_seconds=60)
        clock.move_to(later(60))
        answer = api.get(f"/sessions/{session.pk}/context", If_None_Match='"1"')
        assert answer.status_code == 200

    @pytest.mark.parametrize("start", [True, False])
    def test_answers_nothing_while_a_run_lapsed(
        self, api: APIClient, session: Session, clock: Traveller, start: bool
    ) -> None:
        make_run(session=session, start=start)
        path = f"/sessions/{session.pk}/context"
        assert api.get(path, If_None_Match='"2"').status_code == 304
        clock.move_to(later(hours=25))
        assert api.get(path, If_None_Match='"2"').status_code == 200


def asked(api: APIClient, session: Session, how: str, query: dict[str, Any]) -> dict[str, Any]:
    """A packet by either path."""
    path = f"/sessions/{session.pk}"
    in_query = {name: json.dumps(value).strip('"') for name, value in query.items()}
    if how == "context":
        answer = api.get(f"{path}/context", in_query)
    elif how == "resume":
        answer = api.post(f"{path}/resume", query=in_query)
    else:
        answer = api.post(f"{path}/resume", query)  # in the body
    assert answer.status_code == 200, answer.json()
    packet: dict[str, Any] = answer.json()
    return packet


@pytest.mark.parametrize("how", ["context", "resume", "resume by its body"])
class TestAFormat:
    TURN = (
        {"role": "system", "content": "Rules."},
        user(),
        calling("a", "b", arguments='{"n": 12345678901234567890}'),
        result("b", "found"),
    )

    @pytest.mark.parametrize("format", PROVIDERS)
    def test_is_taken_by_its_api(
        self, api: APIClient, session: Session, format: str, how: str
    ) -> None:
        add_messages(*self.TURN, session=session)
        packet = asked(api, session, how, {"format": format})
        check(format, packet["messages"], packet.get("system"))
        assert packet.get("system", "Rules.") == "Rules."
        found = answered(format, packet["messages"])
        assert [(said, mark) for _, said, mark in found] == [(NO_RESULT, True), ("found", False)]
        window = packet["window"]
        assert (window["first_sequence"], window["last_sequence"]) == (1, 4)
        assert packet["session"]["message_count"] == 4

    @pytest.mark.parametrize("format", PROVIDERS)
    def test_has_no_mark_if_none_is_wanted(
        self, api: APIClient, session: Session, format: str, how: str
    ) -> None:
        add_messages(*self.TURN, session=session)
        packet = asked(api, session, how, {"format": format, "mark_synthetic": False})
        assert synthetic(packet["messages"]) == []
        assert NO_RESULT in json.dumps(packet["messages"])

    @pytest.mark.parametrize("format", ["native", *PROVIDERS])
    def test_is_bound_by_tokens(
        self, api: APIClient, session: Session, format: str, how: str
    ) -> None:
        make_messages(session=session, count=20)
        packet = asked(api, session, how, {"format": format, "max_tokens": 50})
        assert 0 < packet["window"]["estimated_tokens"] <= 50
        assert packet["window"]["last_sequence"] == 20
        assert packet["truncated"] is False
        assert "Message 20" in json.dumps(packet["messages"])
        assert 'Message 2"' not in json.dumps(packet["messages"])


# What authenticates is kept in production; a test's transactions are savepoints.
AUTHENTICATION, TRANSACTION = 2, 2


class TestItsCost:
    def filled(self, count: int) -> Session:
        """A session with all that a packet can hold: a head, calls answered late and not at all,
        an interrupted run and an active one, working memory."""
        session = make_session(account=make_account("agent"), working_memory={"goal": "G"})
        make_run(session=session, now=timezone.now() - timedelta(hours=1))
        run = make_run(session=session)
        more: dict[str, Any] = {"session": session, "run_id": run.pk}
        add_messages({"role": "system", "content": "Rules."}, **more)
        for start in range(0, count, 400):
            turn = [user(), calling("a", "b"), result("b"), assistant()]
            add_messages(*turn * (min(400, count - start) // 4), **more)
        for number in range(40):
            make_tool_call(name=f"t{number}", **more)
        add_messages(calling("late"), *[user()] * 60, result("late"), **more)
        return session

    @pytest.mark.parametrize("count", [8, 2000])
    def test_is_five_statements_of_any_session(
        self, api: APIClient, django_assert_num_queries: Any, count: int
    ) -> None:
        session = self.filled(count)
        bound = {"format": "anthropic", "max_tokens": 500, "last_n": 1000}
        with django_assert_num_queries(AUTHENTICATION + 5):
            api.get(f"/sessions/{session.pk}/context", bound)
        with django_assert_num_queries(AUTHENTICATION + 5):  # session, survey, and three kinds
            packet = api.get(f"/sessions/{session.pk}/context").json()
        with django_assert_num_queries(AUTHENTICATION + TRANSACTION + 5):
            resumed = api.post(f"/sessions/{session.pk}/resume").json()
        assert resumed == packet | {"changed": False}
        assert [name for name, part in packet.items() if not part] == ["truncated", "resumed_from"]

    def test_is_one_statement_more_for_a_call_that_was_answered_very_late(
        self, api: APIClient, session: Session, django_assert_num_queries: Any
    ) -> None:
        add_messages(calling("c1", "c2"), *[user()] * 200, result("c1"), session=session)
        with django_assert_num_queries(AUTHENTICATION + 5):  # one is the unit
            packet = api.get(f"/sessions/{session.pk}/context").json()
        assert numbers(packet) == [1, *range(154, 203)][-50:]

    @pytest.mark.parametrize("ending", ["close", "expire"])
    @pytest.mark.parametrize("count", [8, 2000])
    def test_is_two_statements_more_of_a_resume_that_changes_something(
        self, api: APIClient, django_assert_num_queries: Any, count: int, ending: str
    ) -> None:
        session = self.filled(count)
        api.post(f"/sessions/{session.pk}/{ending}")
        written = 2 if connection.vendor == "sqlite" else 1  # event and session
        with django_assert_num_queries(AUTHENTICATION + TRANSACTION + 5 + written):
            assert api.post(f"/sessions/{session.pk}/resume").json()["changed"] is True

    def test_is_two_statements_of_a_session_of_messages(
        self, api: APIClient, session: Session, django_assert_num_queries: Any
    ) -> None:
        make_messages(session=session, count=200)
        with django_assert_num_queries(AUTHENTICATION + 2):  # session, messages
            api.get(f"/sessions/{session.pk}/context")

    def test_is_little_for_an_empty_session(
        self, api: APIClient, session: Session, django_assert_num_queries: Any
    ) -> None:
        with django_assert_num_queries(AUTHENTICATION + 1):  # session
            api.get(f"/sessions/{session.pk}/context")

    def test_is_three_queries_where_nothing_changed(
        self, api: APIClient, session: Session, django_assert_num_queries: Any
    ) -> None:
        with django_assert_num_queries(AUTHENTICATION + 1):  # session
            api.get(f"/sessions/{session.pk}/context", If_None_Match='"1"')
