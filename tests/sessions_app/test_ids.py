import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from runs_app.models import Run
from sessions_app.ids import MAX_ID_LENGTH, id_at, new_id
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


class TestIdAt:
    def test_is_no_greater_than_any_of_its_moment(self):
        before = datetime.now(UTC)
        made = new_id("sess")
        assert id_at("sess", before) <= made < id_at("sess", before + timedelta(minutes=1))

    def test_is_made_of_the_moment_and_the_tail(self):
        assert id_at("x", datetime(1970, 1, 1, 0, 0, 0, 33_000, UTC), 1) == "x_0000000011" + (
            "0" * 15 + "1"
        )

    @pytest.mark.parametrize("year", [1, 1969, 9999])
    def test_of_any_year_has_the_form(self, year):
        assert re.fullmatch(f"x_{FORM}", id_at("x", datetime(year, 6, 1, tzinfo=UTC)))


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
