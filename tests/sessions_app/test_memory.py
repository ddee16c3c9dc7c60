from typing import Any

import pytest

from sessions_app.errors import (
    InvalidRequest,
    PayloadTooLarge,
    RunEnded,
    RunSuperseded,
    VersionMismatch,
)
from sessions_app.services.memory import FIELDS, empty_memory
from tests.domain import Desk, dump, later, row, user

FULL: dict[str, Any] = {
    "goal": "g",
    "plan": ["a", "b"],
    "completed": ["a"],
    "errors": ["e"],
    "important_files": ["f"],
    "next_action": "n",
    "extra": {"z": 1, "a": {"x": None}, "big": 2**64},
}


def put(desk, session_id, document, **more):
    return desk.sessions.replace_memory(session_id=session_id, document=document, **more)


def patch(desk, session_id, changes, **more):
    return desk.sessions.patch_memory(session_id=session_id, patch=changes, **more)


WRITES: dict[str, Any] = {"put": put, "patch": patch}


class TestPut:
    def test_replaces_the_whole(self, desk):
        session_id = desk.open(working_memory=FULL)
        _, memory = put(desk, session_id, {"goal": "other"})
        assert memory.value == empty_memory() | {"goal": "other"}

    def test_keeps_what_it_was_given(self, desk):
        session_id = desk.open()
        put(desk, session_id, FULL)
        stored = desk.sessions.read_memory(session_id=session_id)[1].value
        assert repr(stored) == repr(FULL)

    def test_takes_missing_and_null_for_empty(self, desk):
        session_id = desk.open()
        assert put(desk, session_id, {})[1].value == empty_memory()
        assert put(desk, session_id, dict.fromkeys(FIELDS))[1].value == empty_memory()

    def test_gives_its_fields_in_one_order(self, desk):
        _, memory = put(desk, desk.open(), dict(reversed(FULL.items())))
        assert tuple(memory.value) == FIELDS


class TestPatch:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"goal": "new"}, FULL | {"goal": "new"}),
            ({"goal": None}, FULL | {"goal": ""}),
            ({"plan": None}, FULL | {"plan": []}),
            ({"plan": ["c"]}, FULL | {"plan": ["c"]}),
            ({"plan": []}, FULL | {"plan": []}),
            ({"extra": None}, FULL | {"extra": {}}),
            (
                {"extra": {"z": None, "n": 1}},
                FULL | {"extra": {"a": {"x": None}, "big": 2**64, "n": 1}},
            ),
            (
                {"extra": {"a": {"y": 2}}},
                FULL | {"extra": FULL["extra"] | {"a": {"x": None, "y": 2}}},
            ),
        ],
    )
    def test_merges(self, desk, changes, expected):
        _, memory = patch(desk, desk.open(working_memory=FULL), changes)
        assert memory.value == expected

    def test_of_a_session_without_a_memory_begins_one(self, desk):
        session, memory = patch(desk, desk.open(), {"goal": "g"})
        assert memory.value == empty_memory() | {"goal": "g"}
        assert session.working_memory_version == 1

    def test_of_different_keys_keeps_both(self, desk):
        session_id = desk.open()
        for number in range(5):
            patch(desk, session_id, {"extra": {f"left{number}": number}})
            patch(desk, session_id, {"extra": {f"right{number}": number}})
        extra = desk.sessions.read_memory(session_id=session_id)[1].value["extra"]
        assert len(extra) == row(session_id).working_memory_version == 10


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
class TestEveryWrite:
    @pytest.mark.parametrize(
        ("document", "pointer"),
        [
            ([], ""),
            (None, ""),
            ("x", ""),
            ({"goals": ""}, "/goals"),
            ({"a/b": 1}, "/a~1b"),
            ({"goal": []}, "/goal"),
            ({"goal": 5}, "/goal"),
            ({"next_action": {}}, "/next_action"),
            ({"plan": "x"}, "/plan"),
            ({"plan": ["a", None]}, "/plan"),
            ({"errors": [{}]}, "/errors"),
            ({"completed": {}}, "/completed"),
            ({"important_files": [1]}, "/important_files"),
            ({"extra": []}, "/extra"),
            ({"extra": {"a": {1}}}, "/extra/a"),
            ({"extra": {"a": float("nan")}}, "/extra/a"),
        ],
    )
    def test_refuses_another_shape_by_its_pointer(self, desk, write, document, pointer):
        session_id = desk.open(working_memory=FULL)
        before = dump()
        with pytest.raises(InvalidRequest) as caught:
            write(desk, session_id, document)
        assert list(caught.value.pointers) == [pointer]
        assert dump() == before

    def test_is_limited_in_bytes(self, desk, write, settings):
        session_id = desk.open()
        settings.MAX_WORKING_MEMORY_BYTES = 200
        before = dump()
        with pytest.raises(PayloadTooLarge):
            write(desk, session_id, {"goal": "ä" * 100})
        assert dump() == before
        write(desk, session_id, {"goal": "ä" * 20})

    def test_makes_a_revision(self, desk, write):
        session_id = desk.open(working_memory={"goal": "first"})
        run = desk.run(session_id)
        desk.append(session_id, user())
        session, _ = write(
            desk, session_id, {"goal": "second"}, run_id=run.run_id, attempt=1, now=later(9)
        )
        first, second = desk.sessions.memory_revisions(session_id=session_id).order_by("version")
        assert (first.version, first.memory.value["goal"]) == (1, "first")
        assert (second.version, second.memory.value["goal"]) == (2, "second")
        assert (first.sequence, first.run_id) == (0, None)
        assert (second.sequence, second.run_id) == (1, run.run_id)
        assert (second.actor_type, second.actor_id) == ("account", desk.user.username)
        assert (second.created_at, second.session_version) == (later(9), session.version)

    def test_compares_the_memorys_own_version(self, desk, write):
        session_id = desk.open(working_memory=FULL)
        desk.append(session_id, user())
        assert (row(session_id).version, row(session_id).working_memory_version) == (2, 1)
        before = dump()
        for wrong in (0, 2):
            with pytest.raises(VersionMismatch) as caught:
                write(desk, session_id, {}, if_match=wrong)
            assert caught.value.data == {"version": 1}
        assert dump() == before
        assert write(desk, session_id, {}, if_match=1)[0].working_memory_version == 2

    def test_renews_the_runs_lease(self, desk, write):
        session_id = desk.open()
        run = desk.run(session_id, lease_seconds=10)
        write(desk, session_id, {}, run_id=run.run_id, now=later(5))
        assert row(session_id).active_run_deadline == later(15)

    def test_of_a_run_that_may_not_write_is_refused(self, desk, write):
        session_id = desk.open()
        run = desk.run(session_id)
        desk.runs.wait(run_id=run.run_id, reason="w")
        desk.runs.resume(run_id=run.run_id)
        before = dump()
        with pytest.raises(RunSuperseded):
            write(desk, session_id, {"goal": "x"}, run_id=run.run_id, attempt=1)
        assert dump() == before
        desk.runs.complete(run_id=run.run_id)
        with pytest.raises(RunEnded):
            write(desk, session_id, {"goal": "x"}, run_id=run.run_id)

    def test_replaces_nul(self, desk, write):
        _, memory = write(desk, desk.open(), {"goal": "a\x00", "extra": {"k\x00": "\x00"}})
        assert (memory.value["goal"], memory.value["extra"]) == ("a\ufffd", {"k\ufffd": "\ufffd"})

    def test_leaves_another_session_alone(self, desk, write):
        other = Desk()
        foreign = other.open(working_memory=FULL)
        write(desk, desk.open(), {"goal": "mine"})
        assert other.sessions.read_memory(session_id=foreign)[1].value == FULL
