import re
from typing import Any

import pytest
import time_machine

from runs_app.models import Run
from sessions_app.ids import MAX_ID_LENGTH, new_id
from sessions_app.models import Message, Session, SessionEvent, ToolCall
from tests.domain import NOON, calling, row, user

FORM = r"[0-9abcdefghjkmnpqrstvwxyz]{26}"


class TestNewId:
    @pytest.mark.parametrize("prefix", ["sess", "msg", "run", "call", "evt"])
    def test_is_a_prefix_and_crockford_base32(self, prefix):
        made = new_id(prefix)
        assert re.fullmatch(f"{prefix}_{FORM}", made)
        assert len(made) <= MAX_ID_LENGTH

    def test_is_greater_than_every_earlier_one(self):
        ids = [new_id("sess") for _ in range(5_000)]
        assert ids == sorted(set(ids))

    def test_is_greater_than_earlier_ones_when_the_clock_stands(self):
        with time_machine.travel(NOON, tick=False):
            ids = [new_id("sess") for _ in range(500)]
        assert ids == sorted(set(ids))

    def test_cannot_be_guessed_from_its_neighbour(self):
        first, second = new_id("sess"), new_id("sess")
        assert first[-8:] != second[-8:]


class TestPrimaryKeys:
    def test_are_public_ids_with_their_prefix(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        desk.append(session_id, user(), calling("c1"), run_id=run.run_id)
        keys: dict[Any, Any] = {
            model: model.objects.values_list("pk", flat=True).first()
            for model in (Session, Message, Run, ToolCall, SessionEvent)
        }
        prefixes = {model.__name__: key.split("_")[0] for model, key in keys.items()}
        assert prefixes == {
            "Session": "sess",
            "Message": "msg",
            "Run": "run",
            "ToolCall": "call",
            "SessionEvent": "evt",
        }
        assert row(session_id).pk == session_id
