import ast
import re
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest
from django.conf import settings

from sessions_app.states import (
    FINAL_TOOL_CALLS,
    OPEN_TOOL_CALLS,
    SESSION_TRANSITIONS,
    TOOL_CALL_TRANSITIONS,
    SessionStatus,
    ToolCallStatus,
    effective_status,
)
from tests.domain import NOON

SESSION_ARROWS = {
    ("ACTIVE", "CLOSED"),
    ("ACTIVE", "EXPIRED"),
    ("ACTIVE", "DELETED"),
    ("CLOSED", "ACTIVE"),
    ("CLOSED", "DELETED"),
    ("EXPIRED", "ACTIVE"),
    ("EXPIRED", "DELETED"),
}
TOOL_CALL_ARROWS = {
    ("PENDING", "RUNNING"),
    ("PENDING", "SUCCEEDED"),
    ("PENDING", "FAILED"),
    ("PENDING", "CANCELLED"),
    ("RUNNING", "SUCCEEDED"),
    ("RUNNING", "FAILED"),
    ("RUNNING", "CANCELLED"),
}
SOURCES = sorted(
    path
    for folder in ("config", "runs_app", "sessions_app")
    for path in (Path(settings.BASE_DIR) / folder).rglob("*.py")
    # Demo data is written past the managers, into a database that holds nothing else.
    if not {"migrations", "demo"} & set(path.parts)
)


class TestSessionTransitions:
    @pytest.mark.parametrize(("origin", "to"), [*product(SessionStatus, repeat=2)])
    def test_are_those_of_the_lifecycle_and_no_others(self, origin, to):
        assert (to in SESSION_TRANSITIONS[origin]) == ((origin, to) in SESSION_ARROWS)

    def test_never_leave_deleted(self):
        assert not SESSION_TRANSITIONS[SessionStatus.DELETED]


class TestToolCallTransitions:
    @pytest.mark.parametrize(("origin", "to"), [*product(ToolCallStatus, repeat=2)])
    def test_are_those_of_the_lifecycle_and_no_others(self, origin, to):
        assert (to in TOOL_CALL_TRANSITIONS[origin]) == ((origin, to) in TOOL_CALL_ARROWS)

    @pytest.mark.parametrize("final", sorted(FINAL_TOOL_CALLS))
    def test_never_leave_a_final_status(self, final):
        assert not TOOL_CALL_TRANSITIONS[final]

    def test_divide_the_statuses_into_open_and_final(self):
        assert set(ToolCallStatus) == OPEN_TOOL_CALLS | FINAL_TOOL_CALLS
        assert not OPEN_TOOL_CALLS & FINAL_TOOL_CALLS


class TestEffectiveStatus:
    @pytest.mark.parametrize(
        ("microseconds", "expected"), [(-1, "EXPIRED"), (0, "EXPIRED"), (1, "ACTIVE")]
    )
    def test_is_expired_at_the_deadline_itself(self, microseconds, expected):
        deadline = NOON + timedelta(microseconds=microseconds)
        assert effective_status("ACTIVE", expires_at=deadline, now=NOON) == expected

    def test_stays_active_without_a_deadline(self):
        assert effective_status("ACTIVE", expires_at=None, now=NOON) == "ACTIVE"

    @pytest.mark.parametrize("status", ["CLOSED", "EXPIRED", "DELETED"])
    def test_is_the_stored_one_of_a_session_that_left_active(self, status):
        past = NOON - timedelta(days=1)
        assert effective_status(status, expires_at=past, now=NOON) == status


class TestSource:
    def test_sets_a_status_in_services_only(self):
        writing = {path for path in SOURCES if [*_status_writes(ast.parse(path.read_text()))]}
        assert {path.name for path in writing if "services" not in path.parts} == set()
        assert {path.name for path in writing} >= {"lifecycle.py", "transitions.py"}

    def test_locks_rows_in_one_place_only(self):
        locking = [path for path in SOURCES if "select_for_update(" in path.read_text()]
        assert [path.name for path in locking] == ["locking.py"]
        # The lock of a statement that writes, too.
        by_hand = [path for path in SOURCES if re.search(r"FOR (NO KEY )?UPDATE", path.read_text())]
        assert [path.name for path in by_hand] == ["plain_append.py"]

    def test_writes_events_in_one_place_only(self):
        """Append-only for everyone: nothing else makes, changes or removes one. (An import reads
        those of its file.)"""
        assert {
            (path.name, name)
            for path in SOURCES
            for name in _event_writes(ast.parse(path.read_text()))
        } == {("lifecycle.py", "new_row"), ("parts.py", "new_row")}


def _status_writes(tree):
    """Assignments to ``.status``, and ``update(status=…)``."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        yield from (
            target
            for target in targets
            if isinstance(target, ast.Attribute)
            and target.attr == "status"
            and not _is_self(target)
        )
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"update", "create"}:
            yield from (keyword for keyword in node.keywords if keyword.arg == "status")


def _is_self(target):
    """An exception's or a response's own ``status`` is none of a session's."""
    return isinstance(target.value, ast.Name) and target.value.id == "self"


def _event_writes(tree):
    """Events that are made, and the writing methods of ``SessionEvent.objects`` and ``.events``."""
    writing = {"create", "bulk_create", "update", "bulk_update", "delete", "get_or_create"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in writing:
            source = ast.unparse(node.func)
            if "SessionEvent" in source or ".events." in source:
                yield source.rpartition(".")[2]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            of = ast.unparse(node.args[0]) if node.args else ""
            if node.func.id == "SessionEvent" or (
                node.func.id == "new_row" and of == "SessionEvent"
            ):
                yield node.func.id
