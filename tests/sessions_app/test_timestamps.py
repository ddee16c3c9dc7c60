import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.conf import settings

from sessions_app.timestamps import parse_rfc3339, rfc3339
from tests.live_server import fresh_database


class TestParse:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2026-03-01T12:00:00Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
            ("2026-03-01t12:00:00z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
            ("2026-03-01 12:00:00Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
            ("2026-03-01T17:30:00+05:30", datetime(2026, 3, 1, 12, tzinfo=UTC)),
            ("2026-03-01T08:00:00.5-04:00", datetime(2026, 3, 1, 12, 0, 0, 500_000, UTC)),
            ("2026-03-01T12:00:00.123456789Z", datetime(2026, 3, 1, 12, 0, 0, 123_456, UTC)),
            ("2028-02-29T00:00:00Z", datetime(2028, 2, 29, tzinfo=UTC)),
            # The hour that New York skips in spring, and the one that it has twice in autumn.
            ("2026-03-08T02:30:00-05:00", datetime(2026, 3, 8, 7, 30, tzinfo=UTC)),
            ("2026-11-01T01:30:00-04:00", datetime(2026, 11, 1, 5, 30, tzinfo=UTC)),
            ("2026-11-01T01:30:00-05:00", datetime(2026, 11, 1, 6, 30, tzinfo=UTC)),
        ],
    )
    def test_reads_an_instant_in_utc(self, text, expected):
        parsed = parse_rfc3339(text)
        assert parsed == expected
        assert parsed.utcoffset() == timedelta(0)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "now",
            "2026-03-01",
            "2026-03-01T12:00:00",
            "2026-03-01T12:00Z",
            "2026-03-01T12:00:00.Z",
            "2026-03-01T12:00:00+0530",
            "2026-03-01T12:00:00+05",
            "2026-03-01T12:00:00 Z",
            "2026-02-29T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-03-01T12:00:60Z",
            "2026-03-01T12:00:00+99:99",
            "0000-01-01T00:00:00Z",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "٢٠٢٦-03-01T12:00:00Z",
            "2026-03-01T12:00:00Z\n",
            "20260301T120000Z",
            "2026-W09-7T12:00:00Z",
        ],
    )
    def test_refuses_what_is_no_rfc_3339_with_an_offset(self, text):
        with pytest.raises(ValueError, match=r"."):
            parse_rfc3339(text)


class TestWrite:
    def test_is_utc_with_microseconds_and_z(self):
        kolkata = timezone(timedelta(hours=5, minutes=30))
        moment = datetime(2026, 3, 1, 17, 30, tzinfo=kolkata)
        assert rfc3339(moment) == "2026-03-01T12:00:00.000000Z"

    @pytest.mark.parametrize("year", [1, 99, 999, 2026, 9999])
    def test_comes_back_as_the_same_instant(self, year):
        moment = datetime(year, 6, 7, 8, 9, 10, 11, UTC)
        assert parse_rfc3339(rfc3339(moment)) == moment
        assert len(rfc3339(moment)) == 27

    @pytest.mark.parametrize("offset", ["", "+00"])
    @pytest.mark.parametrize(
        ("column", "expected"),
        [
            ("", "000000"),
            (".1", "100000"),
            (".12", "120000"),
            (".123", "123000"),
            (".1234", "123400"),
            (".12345", "123450"),
            (".123456", "123456"),
        ],
    )
    def test_reads_a_column_with_any_number_of_digits(self, column, expected, offset):
        written = rfc3339(f"2026-03-01 12:00:00{column}{offset}")
        assert written == f"2026-03-01T12:00:00.{expected}Z"


_STORE_AND_READ = """
import os
from datetime import UTC, datetime, timedelta
import django
django.setup()
from django.contrib.auth.models import User
from sessions_app.models import Session
from sessions_app.services import Actor, NewSession, SessionManager
from sessions_app.timestamps import rfc3339
user = User.objects.create_user("agent")
manager = SessionManager(Actor.account(user))
session_id = manager.create(NewSession(idle_timeout_seconds=60))[0].session_id
manager.append(session_id=session_id, messages=[{"role": "user", "content": "Hello"}])
session = manager.get(session_id=session_id)
now = datetime.now(UTC)
for moment in (session.created_at, session.updated_at, session.last_activity_at):
    assert moment.utcoffset() == timedelta(0)
    assert abs(now - moment) < timedelta(seconds=20)
assert session.expires_at - session.last_activity_at == timedelta(seconds=60)
assert Session.objects.with_status({"ACTIVE"}, now=now).count() == 1
assert Session.objects.due(now=now).count() == 0
assert Session.objects.due(now=session.expires_at).count() == 1
print(rfc3339(session.created_at))
"""


class TestServerZone:
    @pytest.mark.parametrize(
        ("zone", "setting"),
        [("America/New_York", "Asia/Kolkata"), ("Asia/Kolkata", "America/New_York")],
    )
    def test_shifts_no_instant(self, tmp_path, zone, setting):
        """A process of its own: the zone of a process is set before it begins."""
        with fresh_database(tmp_path) as url:
            environment = os.environ | {
                "TZ": zone,
                "TIME_ZONE": setting,
                "DATABASE_URL": url,
                "DJANGO_SETTINGS_MODULE": "tests.settings",
            }
            done = subprocess.run(
                [sys.executable, "-c", _STORE_AND_READ],
                cwd=settings.BASE_DIR,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        assert parse_rfc3339(done.stdout.strip()) is not None
