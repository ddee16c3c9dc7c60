"""The shapes that are put together as text, and what makes a stored row out of date."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from sessions_app.api.representations import is_settled, represent_message
from sessions_app.models import Session
from tests.api_client import APIClient
from tests.factories import add_messages, make_messages, make_run, make_session

# Words of the server's inside what was sent, where a glance at the text would mistake them.
TRICKY: list[dict[str, Any]] = [
    {"role": "user", "content": '"status":"x","removed_at":1}'},
    {"role": "user", "content": "x", "metadata": {"status": "s", "role": "r", "content": "c"}},
    {"metadata": {"role": "r", "content": "c"}, "role": "user"},
    {"content": '{"role":"user","content":', "role": "assistant"},
    {"role": "assistant", "content": "x", "status": "incomplete"},
    {"role": "assistant", "own": {"content": 1}},
    {"role": "user", "content": "", "": {"": ""}},
    {"item": {"type": "t", "role": "r", "status": "in_progress", "content": []}},
    {"role": "user", "content": "x", "object": "mine", "sequence": 77, "removed_at": "never"},
]


@pytest.mark.parametrize("sent", TRICKY)
class TestAMessageAsText:
    def test_has_each_key_once_and_each_that_is_promised(
        self, session: Session, sent: dict[str, Any]
    ) -> None:
        (message,) = add_messages(sent, session=session)
        pairs = json.loads(represent_message(message).text, object_pairs_hook=list)
        keys = [key for key, _ in pairs]
        assert len(keys) == len(set(keys))
        assert {"role", "status", "content", "object", "sequence"} <= set(keys)

    def test_says_the_servers_words_and_the_clients(
        self, session: Session, sent: dict[str, Any]
    ) -> None:
        (message,) = add_messages(sent, session=session)
        shown = represent_message(message).value
        owned = {"object", "sequence", "removed_at"}
        expected = {"status": "completed", "content": None, "role": None, **sent}
        assert {key: shown[key] for key in expected if key not in owned} == {
            key: value for key, value in expected.items() if key not in owned
        }
        assert (shown["object"], shown["sequence"]) == ("message", 1)
        assert "removed_at" not in shown


class TestAStoredRow:
    @pytest.mark.parametrize(
        ("idle", "lease", "after", "settled"),
        [
            (None, None, 10**6, True),
            (60, None, 59, True),
            (60, None, 60, False),
            (None, 60, 59, True),
            (None, 60, 60, False),
            (30, 60, 59, True),
            (30, 60, 61, False),
        ],
    )
    def test_is_what_a_reader_sees_until_a_deadline(
        self, agent: User, *, idle: int | None, lease: int | None, after: int, settled: bool
    ) -> None:
        now = timezone.now()
        session = make_session(account=agent, now=now, idle_timeout_seconds=idle)
        if lease is not None:
            make_run(session=session, now=now, lease_seconds=lease)
        session.refresh_from_db()
        assert is_settled(session, now + timedelta(seconds=after)) is settled


class TestAHeadRequest:
    @pytest.mark.parametrize("part", ["", "/messages", "/messages/1", "/working-memory"])
    def test_answers_what_a_get_would_without_the_body(
        self, api: APIClient, session: Session, part: str
    ) -> None:
        make_messages(session=session)
        path = f"/sessions/{session.session_id}{part}"
        got, headed = api.get(path), api.send("HEAD", path)
        assert (headed.status_code, headed.content) == (200, b"")
        assert headed.headers.get("ETag") == got.headers.get("ETag")


class TestATime:
    def test_has_six_digits_and_z_everywhere(
        self, api: APIClient, session: Session, time_machine: Any
    ) -> None:
        time_machine.move_to(datetime.fromisoformat("2026-03-01T12:00:00+00:00"), tick=False)
        (message,) = api.post(
            f"/sessions/{session.session_id}/messages", {"role": "user", "content": "x"}
        ).json()["messages"]
        body = api.get(f"/sessions/{session.session_id}").json()
        assert message["created_at"] == body["updated_at"] == "2026-03-01T12:00:00.000000Z"
