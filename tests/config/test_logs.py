import logging
import threading
from typing import Any

import pytest

from config.logs import LineHandler


def log(message: str, *values: Any) -> None:
    LineHandler().handle(logging.makeLogRecord({"msg": message, "args": values}))


class TestALine:
    def test_goes_to_stderr_at_once(self, capfd: pytest.CaptureFixture[str]) -> None:
        log("%s of %s", 1, "ä\udcff")
        assert capfd.readouterr().err == "1 of ä?\n"

    def test_waits_for_no_other_thread(self, capfd: pytest.CaptureFixture[str]) -> None:
        handler = LineHandler()
        other = threading.Thread(
            target=handler.handle, args=[logging.makeLogRecord({"msg": "at once"})]
        )
        with handler.lock:  # type: ignore[union-attr]
            other.start()
            other.join(5)
        assert not other.is_alive()
        assert capfd.readouterr().err == "at once\n"

    def test_that_cannot_be_written_fails_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        failed = []
        monkeypatch.setattr("config.logs.os.write", lambda *_: 1 / 0)
        monkeypatch.setattr(LineHandler, "handleError", lambda _, record: failed.append(record))
        log("lost")
        assert [record.getMessage() for record in failed] == ["lost"]
