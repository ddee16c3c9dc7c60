import json
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.test import Client, RequestFactory
from django.utils.functional import SimpleLazyObject
from pytest_django import Settings

from config import middleware
from config.logs import (
    LineHandler,
    current_request,
    log_if_slow,
    make_formatter,
    watch_statements,
)
from tests.api_client import APIClient
from tests.factories import make_run, make_session

SECRET = "sesame"


@pytest.fixture
def handler() -> LineHandler:
    handler = LineHandler()
    handler.setFormatter(make_formatter())
    return handler


def record(message: str, *values: Any, **more: Any) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": message, "args": values, "levelname": "ERROR", **more})


class Read:
    """What was written to stderr."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    @property
    def text(self) -> str:
        return self._capfd.readouterr().err

    @property
    def line(self) -> dict[str, Any]:
        (line,) = self.text.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found


@pytest.fixture
def read(capfd: pytest.CaptureFixture[str]) -> Read:
    return Read(capfd)


@pytest.fixture
def requests_are_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """As LOG_LEVEL=INFO does."""
    loud = structlog.make_filtering_bound_logger(logging.INFO)
    logger = structlog.get_config()["logger_factory"]()
    monkeypatch.setattr(middleware, "access_log", structlog.wrap_logger(logger, wrapper_class=loud))


class TestALine:
    def test_is_an_object_with_time_level_and_logger(self, handler: LineHandler, read: Read):
        handler.handle(record("%s of %s", 1, "ä\nb", name="dossier.x"))
        line = read.line
        assert line.pop("timestamp").endswith("Z")
        assert line == {"event": "1 of ä\nb", "level": "error", "logger": "dossier.x"}

    def test_can_say_what_no_encoding_knows(self, handler: LineHandler, read: Read):
        handler.handle(record("\udcff"))
        assert read.line["event"] == "\udcff"

    def test_waits_for_no_other_thread(self, handler: LineHandler, read: Read):
        other = threading.Thread(target=handler.handle, args=[record("at once")])
        with handler.lock:  # type: ignore[union-attr]
            other.start()
            other.join(5)
        assert not other.is_alive()
        assert read.line["event"] == "at once"

    def test_that_cannot_be_written_fails_nothing(
        self, handler: LineHandler, monkeypatch: pytest.MonkeyPatch
    ):
        failed = []
        monkeypatch.setattr("config.logs.os.write", lambda *_: 1 / 0)
        monkeypatch.setattr(LineHandler, "handleError", lambda _, record: failed.append(record))
        handler.handle(record("lost"))
        assert [record.getMessage() for record in failed] == ["lost"]


class TestAnException:
    def told(self, handler: LineHandler, read: Read, error: BaseException) -> list[dict[str, Any]]:
        handler.handle(record("failed", exc_info=(type(error), error, error.__traceback__)))
        text = read.text
        assert SECRET not in text
        told: list[dict[str, Any]] = json.loads(text)["exception"]
        return told

    def test_is_told_by_kind_and_place(self, handler: LineHandler, read: Read):
        with pytest.raises(ValueError, match=SECRET) as raised:
            int(SECRET)
        (told,) = self.told(handler, read, raised.value)
        assert told["type"] == "builtins.ValueError"
        assert told["at"][-1].startswith(__file__)
        assert told["at"][-1].endswith(" TestAnException.test_is_told_by_kind_and_place")

    def test_is_told_with_what_it_came_from(self, handler: LineHandler, read: Read):
        class DriverError(Exception):
            sqlstate = "22P02"

        error = RuntimeError(SECRET)
        error.__cause__ = DriverError(SECRET)
        error.__cause__.__context__ = KeyError(SECRET)
        first, second, third = self.told(handler, read, error)
        assert (first["type"], third["type"]) == ("builtins.RuntimeError", "builtins.KeyError")
        assert second["code"] == "22P02"

    def test_that_comes_from_itself_has_an_end(self, handler: LineHandler, read: Read):
        error = RuntimeError(SECRET)
        error.__cause__ = error
        assert 1 <= len(self.told(handler, read, error)) <= 5


@pytest.mark.usefixtures("requests_are_logged")
class TestTheLineOfARequest:
    def test_has_no_query(self, client: Client, read: Read):
        client.get("/healthz%0Aforged", {"q": "private"}, headers={"X-Request-Id": "id-1"})
        line = read.line
        assert line.pop("timestamp")
        assert line.pop("duration_ms") >= 0
        assert line == {
            "event": "request",
            "level": "info",
            "method": "GET",
            "path": "/healthz\nforged",
            "status": 404,
            "request_id": "id-1",
        }

    def test_says_who_asked_of_which_session(self, api: APIClient, agent: User, read: Read):
        session = make_session(account=agent)
        api.get(f"/sessions/{session.pk}")
        line = read.line
        assert (line["account"], line["session_id"]) == ("agent", session.pk)

    def test_says_no_more_of_a_session_than_an_id_has(self, api: APIClient, read: Read):
        api.get(f"/sessions/{'x' * 5_000}")
        assert read.line["session_id"] == "x" * 31

    def test_says_which_session_a_request_made(self, api: APIClient, read: Read):
        made = api.post("/sessions", {}).json()
        assert read.line["session_id"] == made["session_id"]

    def test_says_whose_run_was_written(self, api: APIClient, agent: User, read: Read):
        run = make_run(session=make_session(account=agent))
        api.post(f"/runs/{run.pk}/heartbeat", {})
        assert read.line["session_id"] == run.session_id

    @pytest.mark.django_db
    def test_names_nobody_where_nobody_is_known(self, client: Client, read: Read):
        client.get("/api/v1/sessions")
        line = read.line
        assert line["status"] == 401
        assert not {"account", "session_id"} & set(line)

    @pytest.mark.django_db
    def test_names_who_uses_the_console(self, client: Client, read: Read):
        client.force_login(User.objects.create_superuser("maria"))
        client.get("/admin/")
        assert read.line["account"] == "maria"


class TestALineWithinARequest:
    def test_says_whose_request_it_is(self, handler: LineHandler, read: Read):
        request = RequestFactory().get("/")
        request.request_id = "id-1"  # type: ignore[attr-defined]
        request.user = SimpleLazyObject(lambda: pytest.fail("it was looked up"))  # type: ignore[assignment]
        token = current_request.set(request)
        handler.handle(record("meanwhile"))
        current_request.reset(token)
        assert read.line["request_id"] == "id-1"


@pytest.mark.django_db
class TestASlowStatement:
    def test_is_told_without_its_values(self, settings: Settings, read: Read):
        settings.SLOW_QUERY_MS = 0.001
        assert not User.objects.filter(username=SECRET).exists()
        text = read.text
        assert SECRET not in text
        line = json.loads(text)
        assert (line["event"], line["level"]) == ("slow query", "warning")
        assert '"auth_user"."username" = %s' in line["sql"]
        assert line["duration_ms"] >= 0

    def test_is_told_when_it_fails_too(self, settings: Settings, read: Read):
        settings.SLOW_QUERY_MS = 0.001
        with pytest.raises(DatabaseError), connection.cursor() as cursor, transaction.atomic():
            cursor.execute("SELECT * FROM nowhere WHERE x = %s", [SECRET])
        assert '"sql":"SELECT * FROM nowhere' in (text := read.text)
        assert SECRET not in text

    def test_that_is_quick_is_not_told(self, settings: Settings, read: Read):
        settings.SLOW_QUERY_MS = 3_600_000
        assert not User.objects.exists()
        assert read.text == ""


class TestAConnection:
    def test_is_watched_once_however_often_it_is_made(self):
        made = SimpleNamespace(execute_wrappers=["another"])
        for _ in range(2):
            watch_statements(connection=made)
        assert made.execute_wrappers == [log_if_slow, "another"]

    def test_is_not_watched_where_nothing_is_slow(self, settings: Settings):
        settings.SLOW_QUERY_MS = 0
        made = SimpleNamespace(execute_wrappers=[])
        watch_statements(connection=made)
        assert made.execute_wrappers == []
