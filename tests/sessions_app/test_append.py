from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.db import OperationalError, transaction

from sessions_app.errors import (
    InvalidJSON,
    InvalidRequest,
    NotFound,
    OrphanToolResult,
    PayloadTooLarge,
    SequenceMismatch,
)
from sessions_app.models import Message
from sessions_app.services.window import read_window
from tests.domain import Desk, assistant, calling, dump, later, result, row, user

SHAPES = [
    user("Hello"),
    user(""),
    user(None),
    user([]),
    user(
        [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "data:,x"}}]
    ),
    {"role": "user"},
    {"role": "system", "content": "Be kind."},
    {"role": "developer", "content": "Be brief."},
    assistant(None, tool_calls=[]),
    assistant("Both", reasoning_content="…", annotations=[], refusal=None),
    assistant([{"type": "thinking", "thinking": "hm", "signature": "x"}]),
    assistant(None, audio={"id": "a", "expires_at": 1}),
    assistant("Half", status="incomplete"),
    user("Named", name="ann", metadata={"a": [1, None, "", [], {}]}, model="m"),
    {"item": {"type": "reasoning", "summary": []}},
    {"role": "assistant", "item": {"type": "web_search_call", "id": "ws"}},
    {"role": "model", "parts": [{"text": "Hi"}]} | {"role": "assistant", "content": None},
    user("😀 \u2028 \\u0000 é ü 问题 \ufeff"),
    user("x", big=2**64 + 1, small=-(2**63), float=0.1, whole=1.0, minus=-0.0),
]


class TestOfOneMessage:
    @pytest.mark.parametrize("message", SHAPES, ids=range(len(SHAPES)))
    def test_keeps_it_as_it_was_sent(self, desk, message):
        session_id = desk.open()
        stored = desk.append(session_id, message).messages[0]
        stored.refresh_from_db()
        assert stored.body.value == message
        assert list(stored.body.value) == list(message)
        assert repr(stored.body.value) == repr(message)

    def test_ignores_names_that_the_server_owns(self, desk):
        session_id = desk.open()
        theirs = {
            "message_id": "msg_1",
            "sequence": 99,
            "session_id": "sess_1",
            "type": "compaction",
            "object": "message",
            "session_version": 7,
            "removed_at": "2026-01-01T00:00:00Z",
            "superseded_at": "2026-01-01T00:00:00Z",
            "run_id": "run_1",
        }
        message = desk.append(session_id, user("Hello", **theirs)).messages[0]
        assert message.body.value == user("Hello")
        assert (message.sequence, message.type) == (1, "message")
        assert message.message_id != "msg_1"
        assert (message.removed_at, message.superseded_at, message.run_id) == (None, None, None)

    def test_keeps_the_clients_time_beside_the_servers(self, desk):
        session_id = desk.open()
        sent = user("Hello", created_at="2001-02-03T05:30:00+05:30")
        message = desk.append(session_id, sent, now=later(5)).messages[0]
        assert message.body.value["client_created_at"] == "2001-02-03T00:00:00.000000Z"
        assert message.created_at == later(5)

    @pytest.mark.parametrize("time", ["2001-02-03", "2001-02-03T04:05:06", 5, {}, True])
    def test_refuses_a_time_without_an_offset(self, desk, time):
        with pytest.raises(InvalidRequest) as caught:
            desk.append(desk.open(), user("Hello", created_at=time))
        assert list(caught.value.pointers) == ["/messages/0/created_at"]

    @pytest.mark.parametrize(
        ("message", "pointer"),
        [
            ("Hello", ""),
            (None, ""),
            ([], ""),
            ({}, "/role"),
            ({"role": None}, "/role"),
            ({"role": "User"}, "/role"),
            ({"role": []}, "/role"),
            ({"role": "function", "content": ""}, "/role"),
            (user(5), "/content"),
            (user({"type": "text"}), "/content"),
            (user(["Hello"]), "/content/0"),
            (user([{"type": "text"}, {"text": "x"}]), "/content/1"),
            (user([{"type": 5}]), "/content/0"),
            (user(status="done"), "/status"),
            (user(status=None), "/status"),
            (user(status=[]), "/status"),
            (user(is_error="yes"), "/is_error"),
            (user(is_error=1), "/is_error"),
            (user(metadata=[]), "/metadata"),
            (user(name=5), "/name"),
            (user(name="x" * 256), "/name"),
            (user(model="x" * 256), "/model"),
            (user(client_message_id="x" * 256), "/client_message_id"),
            (user(client_message_id=5), "/client_message_id"),
            (user(usage=[]), "/usage"),
            (user(usage={"input_tokens": -1}), "/usage/input_tokens"),
            ({"item": {}}, "/item"),
            ({"item": []}, "/item"),
            ({"item": False}, "/item"),
            ({"item": {"type": None}}, "/item"),
            ({"item": {"type": "x" * 65}}, "/item/type"),
        ],
    )
    def test_refuses_another_shape_by_its_pointer(self, desk, message, pointer):
        session_id = desk.open()
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            desk.append(session_id, user(), message)
        assert list(caught.value.pointers) == [f"/messages/1{pointer}"]
        assert dump() == before

    @pytest.mark.parametrize("length", [255])
    def test_takes_names_of_full_length(self, desk, length):
        names = dict.fromkeys(("name", "model", "client_message_id"), "ä" * length)
        message = desk.append(desk.open(), user(**names)).messages[0]
        message.refresh_from_db()
        assert message.client_message_id == "ä" * length

    def test_replaces_nul_everywhere(self, desk):
        sent = user("a\x00b", client_message_id="m\x00", **{"k\x00": ["\x00"]})
        message = desk.append(desk.open(), sent).messages[0]
        message.refresh_from_db()
        assert message.body.value == user(
            "a\ufffdb", client_message_id="m\ufffd", **{"k\ufffd": ["\ufffd"]}
        )
        assert message.client_message_id == "m\ufffd"
        assert message.text == "a\ufffdb"

    @pytest.mark.parametrize("content", ["abc \ud83d", [{"type": "text", "text": "\udc00"}]])
    def test_refuses_a_lone_surrogate(self, desk, content):
        session_id = desk.open()
        before = dump()
        with pytest.raises(InvalidJSON):
            desk.append(session_id, user(content))
        assert dump() == before

    @pytest.mark.parametrize(
        "value", [float("nan"), float("inf"), {1, 2}, b"bytes", object(), lambda: None, 1j]
    )
    def test_refuses_what_json_cannot_say_by_its_path(self, desk, value):
        session_id = desk.open()
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            desk.append(session_id, user(), user([{"type": "x"}, {"type": "x", "data": value}]))
        assert list(caught.value.pointers) == ["/messages/1/content/1/data"]
        assert dump() == before

    def test_writes_times_uuids_and_enums_as_their_strings(self, desk):
        values = {"at": later(), "id": UUID(int=1)}
        message = desk.append(desk.open(), user(**values)).messages[0]
        assert message.body.value["at"] == "2026-03-01T12:00:00+00:00"
        assert message.body.value["id"] == "00000000-0000-0000-0000-000000000001"

    @pytest.mark.parametrize(("levels", "fits"), [(100, True), (101, False)])
    def test_takes_a_hundred_levels_in_one_field(self, desk, levels, fits):
        deep: list[Any] = []
        for _ in range(levels - 1):
            deep = [deep]
        session_id = desk.open()
        if fits:
            message = desk.append(session_id, user(thing=deep)).messages[0]
            message.refresh_from_db()
            assert message.body.value["thing"] == deep
            return
        with pytest.raises(InvalidRequest) as caught:
            desk.append(session_id, user(thing=deep))
        assert list(caught.value.pointers) == ["/messages/0"]


class TestOfABatch:
    def test_is_one_range_of_sequences_in_one_version(self, desk):
        session_id = desk.open()
        first = desk.append(session_id, user())
        second = desk.append(session_id, *[user(str(number)) for number in range(50)])
        assert [message.sequence for message in second.messages] == [*range(2, 52)]
        assert {message.session_version for message in second.messages} == {3}
        assert (first.created_count, second.created_count) == (1, 50)
        session = row(session_id)
        assert (session.last_sequence, session.message_count, session.version) == (51, 51, 3)

    def test_keeps_its_order_although_all_times_are_equal(self, desk):
        session_id = desk.open()
        mixed = [user(str(n)) if n % 2 else assistant(str(n)) for n in range(50)]
        desk.append(session_id, *mixed)
        for _ in range(3):
            read = desk.sessions.read_page(session_id=session_id, limit=100).messages
            assert [message.body.value for message in read] == mixed
            window = read_window(row(session_id), last_n=10)
            assert [message.sequence for message in window.messages] == [*range(41, 51)]
        assert Message.objects.values("created_at").distinct().count() == 1

    def test_is_stored_whole_or_not_at_all(self, desk):
        session_id = desk.open()
        before = dump()
        refused: list[Any] = [(result("ghost"), OrphanToolResult), ({}, InvalidRequest)]
        for bad, error in refused:
            with pytest.raises(error):
                desk.append(session_id, user(), calling("c1"), result("c1"), bad)
            assert dump() == before

    def test_that_fails_in_the_database_leaves_nothing_and_may_be_sent_again(
        self, desk, monkeypatch
    ):
        session_id = desk.open()
        batch = [user(client_message_id="u"), calling("c1"), result("c1")]
        before = dump()

        def fail(*args, **kwargs):
            raise OperationalError("gone")

        with monkeypatch.context() as patched:
            patched.setattr("sessions_app.services.messages.Linker.store", fail)
            with pytest.raises(OperationalError):
                desk.append(session_id, *batch)
        assert dump() == before
        assert [message.sequence for message in desk.append(session_id, *batch).messages] == [
            1,
            2,
            3,
        ]

    def test_inside_a_foreign_transaction_leaves_that_usable_after_a_refusal(self, desk):
        session_id = desk.open()
        with transaction.atomic():
            with pytest.raises(OrphanToolResult):
                desk.append(session_id, result("ghost"))
            desk.append(session_id, user())
        assert row(session_id).message_count == 1

    def test_must_hold_a_message(self, desk):
        session_id = desk.open()
        with pytest.raises(InvalidRequest) as caught:
            desk.append(session_id)
        assert list(caught.value.pointers) == ["/messages"]

    def test_names_what_is_wrong_below_the_pointer_that_it_was_given(self, desk):
        with pytest.raises(InvalidRequest) as caught:
            desk.append(desk.open(), user(5), pointer="")
        assert list(caught.value.pointers) == ["/0/content"]

    def test_holds_as_many_messages_as_the_setting_says(self, desk, settings):
        settings.MAX_MESSAGES_PER_BATCH = 3
        session_id = desk.open()
        desk.append(session_id, *[user()] * 3)
        before = dump()
        with pytest.raises(PayloadTooLarge):
            desk.append(session_id, *[user()] * 4)
        assert dump() == before

    def test_holds_as_many_tool_calls_and_results_as_the_setting_says(self, desk, settings):
        settings.MAX_TOOL_CALLS_PER_BATCH = 3
        session_id = desk.open()
        desk.append(session_id, calling("c1", "c2"), result("c1"))
        before = dump()
        with pytest.raises(PayloadTooLarge):
            desk.append(session_id, result("c2"), calling("c3", "c4", "c5"))
        assert dump() == before

    def test_costs_the_same_number_of_queries_for_one_and_for_a_thousand(
        self, desk, django_assert_max_num_queries
    ):
        session_id = desk.open()
        assert settings.MAX_MESSAGES_PER_BATCH == 1000
        with django_assert_max_num_queries(5):
            desk.append(session_id, user())
        with django_assert_max_num_queries(5):
            desk.append(session_id, *[user()] * 1000)


class TestSequences:
    def test_are_never_used_again(self, desk):
        session_id = desk.open()
        desk.append(session_id, *[user()] * 5)
        desk.sessions.pop_messages(session_id=session_id)
        desk.sessions.remove_message(session_id=session_id, sequence=4)
        with pytest.raises(OrphanToolResult):
            desk.append(session_id, result("ghost"))
        assert desk.append(session_id, user()).messages[0].sequence == 6
        assert (row(session_id).last_sequence, row(session_id).message_count) == (6, 4)

    def test_begin_at_one_in_every_session(self, desk):
        for _ in range(2):
            assert desk.append(desk.open(), user()).messages[0].sequence == 1


class TestExpectedLastSequence:
    def test_lets_the_right_one_through(self, desk):
        session_id = desk.open()
        for expected in range(3):
            desk.append(session_id, user(), expected_last_sequence=expected)

    @pytest.mark.parametrize("expected", [-1, 0, 2, 10**20])
    def test_refuses_another_with_the_current_one(self, desk, expected):
        session_id = desk.open()
        desk.append(session_id, user())
        before = dump()
        with pytest.raises(SequenceMismatch) as caught:
            desk.append(session_id, user(), expected_last_sequence=expected)
        assert caught.value.data == {"last_sequence": 1, "version": 2}
        assert dump() == before


class TestUnknownRun:
    def test_is_refused(self, desk):
        session_id, other = desk.open(), Desk()
        foreign = other.run(other.open())
        elsewhere = desk.run(desk.open())
        before = dump()
        for run_id in ("run_unknown", foreign.run_id, elsewhere.run_id):
            with pytest.raises(NotFound):
                desk.append(session_id, user(), run_id=run_id)
        assert dump() == before

    def test_has_no_attempt(self, desk):
        with pytest.raises(InvalidRequest) as caught:
            desk.append(desk.open(), user(), attempt=1)
        assert list(caught.value.pointers) == ["/attempt"]


class TestHead:
    def test_is_the_system_and_developer_messages_that_open_the_session(self, desk):
        session_id = desk.open()
        system = {"role": "system", "content": "s"}
        developer = {"role": "developer", "content": "d"}
        desk.append(session_id, system)
        desk.append(session_id, developer, user(), system)
        desk.append(session_id, system)
        assert row(session_id).head_sequence == 2

    def test_grows_again_after_its_messages_were_popped(self, desk):
        session_id = desk.open()
        system = {"role": "system", "content": "s"}
        desk.append(session_id, system)
        desk.sessions.pop_messages(session_id=session_id)
        desk.append(session_id, system, user())
        assert row(session_id).head_sequence == 2
        window = read_window(row(session_id), last_n=1)
        assert [message.sequence for message in window.messages] == [2, 3]
