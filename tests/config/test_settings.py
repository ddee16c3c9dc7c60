import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from environs import EnvError

ROOT = Path(__file__).resolve().parents[2]
SECRET = "a-secret-of-at-least-fifty-characters-and-many-different-ones-0123"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    """Read the settings file anew, in an environment of these variables alone."""

    def load(**variables: str | None) -> dict[str, Any]:
        for name in set(os.environ) - {"PATH", "HOME", "LANG"}:
            monkeypatch.delenv(name)
        for name, value in {"ENV_FILE": "", "SECRET_KEY": SECRET, **variables}.items():
            if value is not None:
                monkeypatch.setenv(name, value)
        return runpy.run_path(str(ROOT / "config" / "settings.py"))

    return load


class TestWhatCannotBeRight:
    @pytest.mark.parametrize("value", [None, ""])
    def test_no_secret_key_stops_the_start_outside_debug(self, load, value):
        with pytest.raises(EnvError, match="SECRET_KEY"):
            load(SECRET_KEY=value)

    def test_debug_needs_no_secret_key(self, load):
        assert load(DEBUG="true", SECRET_KEY=None)["SECRET_KEY"]

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("SECRET_KEY", "short"),
            ("DEBUG", "perhaps"),
            ("PORT", "80000"),
            ("PORT", "http"),
            ("WORKERS", "0"),
            ("MAX_STREAMS", "0"),
            ("THREADS", "-1"),
            ("SQLITE_SYNCHRONOUS", "OFF"),
            ("DEFAULT_LEASE_SECONDS", "5"),
            ("DB_LOCK_TIMEOUT", "0"),
            ("LOG_LEVEL", "LOUD"),
            ("SLOW_QUERY_MS", "-1"),
            ("PROXIES", "-1"),
            ("LOGIN_ATTEMPTS", "-1"),
            ("LOGIN_HOURS", "0"),
            ("REQUESTS_PER_MINUTE", "many"),
            ("CACHE_URL", "memcached://127.0.0.1"),
            ("METRICS_TOKEN", "short"),
            ("LANGUAGE_CODE", "tlh"),
            ("DATABASE_URL", "not a url"),
            ("TOKENIZER", "o200k_base"),
            ("TOKENIZER", "os:o200k_base"),
            ("TOKENIZER", "tiktoken:"),
        ],
    )
    def test_a_wrong_value_stops_the_start_and_is_named(self, load, name, value):
        with pytest.raises(EnvError, match=name):
            load(**{name: value})

    def test_a_tokenizer_that_is_not_installed_stops_the_start(self, load, monkeypatch):
        monkeypatch.setattr("config.validators.find_spec", lambda _name: None)
        with pytest.raises(EnvError, match="requirements-tokenizer"):
            load(TOKENIZER="tiktoken:o200k_base")

    def test_a_cache_whose_library_is_missing_stops_the_start(self, load, monkeypatch):
        monkeypatch.setattr("config.caches.find_spec", lambda _name: None)
        with pytest.raises(EnvError, match="requirements-redis"):
            load(CACHE_URL="redis://127.0.0.1:6379/0")

    def test_another_database_than_the_two_is_refused(self, load):
        with pytest.raises(EnvError, match="sqlite:// or postgres://"):
            load(DATABASE_URL="mysql://root@127.0.0.1/dossier")

    def test_the_command_says_it_in_one_line(self):
        finished = subprocess.run(
            [sys.executable, "manage.py", "check"],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "ENV_FILE": "", "SECRET_KEY": SECRET, "PORT": "x"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 1
        assert finished.stderr.startswith("Configuration error: ")
        assert "PORT" in finished.stderr
        assert "Traceback" not in finished.stderr


class TestTheEnvironmentFile:
    def test_is_read(self, load, tmp_path):
        (tmp_path / "env").write_text("PORT=9000\n")
        assert load(ENV_FILE=str(tmp_path / "env"))["PORT"] == 9000

    def test_gives_way_to_the_environment(self, load, tmp_path):
        (tmp_path / "env").write_text("PORT=9000\n")
        assert load(ENV_FILE=str(tmp_path / "env"), PORT="9001")["PORT"] == 9001


class TestDatabases:
    def test_a_relative_file_lies_beside_manage_py(self, load):
        database = load()["DATABASES"]["default"]
        assert database["NAME"] == str(ROOT / "var" / "dossier.sqlite3")

    def test_the_folder_of_a_file_is_made(self, load, tmp_path):
        load(DATABASE_URL=f"sqlite:///{tmp_path}/new/deep/dossier.sqlite3")
        assert (tmp_path / "new" / "deep").is_dir()

    def test_sqlite_overwrites_what_is_deleted(self, load):
        """Debian's library does so by itself, most others do not: asked for, not assumed."""
        options = load()["DATABASES"]["default"]["OPTIONS"]
        assert "PRAGMA secure_delete=ON" in options["init_command"]

    def test_postgresql_waits_and_runs_within_bounds(self, load):
        database = load(
            DATABASE_URL="postgres://me:p%40ss@db:5433/dossier?sslmode=require&options=-c%20a.b%3D1",
            DB_LOCK_TIMEOUT="3",
        )["DATABASES"]["default"]
        assert database["PASSWORD"] == "p@ss"
        assert database["OPTIONS"]["sslmode"] == "require"
        assert "-c lock_timeout=3s -c statement_timeout=30s" in database["OPTIONS"]["options"]
        assert database["OPTIONS"]["options"].endswith("-c a.b=1")

    def test_postgresql_by_socket(self, load):
        database = load(DATABASE_URL="postgres://%2Fvar%2Frun%2Fpostgresql/dossier")
        assert database["DATABASES"]["default"]["HOST"] == "/var/run/postgresql"

    def test_connections_are_kept_unless_told_otherwise(self, load):
        assert load()["DATABASES"]["default"]["CONN_MAX_AGE"] is None
        assert load(DB_CONN_MAX_AGE="60")["DATABASES"]["default"]["CONN_MAX_AGE"] == 60

    @pytest.mark.django_db
    def test_the_connection_has_what_was_set(self):
        with connection.cursor() as cursor:
            shown = {name: _show(cursor, name) for name in EXPECTED[connection.vendor]}
        assert shown == EXPECTED[connection.vendor]


EXPECTED: dict[str, dict[str, Any]] = {
    "sqlite": {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 10_000,
        "cache_size": -2_000,
        "mmap_size": 0,
        "wal_autocheckpoint": 4_000,
    },
    "postgresql": {"lock_timeout": "10s", "statement_timeout": "30s", "timezone": "UTC"},
}


def _show(cursor: Any, name: str) -> Any:
    cursor.execute(f"{'PRAGMA' if connection.vendor == 'sqlite' else 'SHOW'} {name}")
    return cursor.fetchone()[0]


class TestHTTPS:
    def test_plain_http_has_no_secure_cookies(self, load):
        settings = load()
        assert not settings["SESSION_COOKIE_SECURE"]
        assert not settings["SECURE_SSL_REDIRECT"]
        assert settings["SECURE_PROXY_SSL_HEADER"] is None

    def test_https_sends_cookies_over_it_only_and_has_browsers_keep_to_it(self, load):
        settings = load(HTTPS="true")
        for name in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT"):
            assert settings[name], name
        assert settings["SECURE_HSTS_SECONDS"] == 365 * 24 * 3600
        assert settings["SECURE_HSTS_INCLUDE_SUBDOMAINS"]

    def test_https_leaves_nothing_for_the_deployment_check_to_say(self):
        finished = subprocess.run(
            [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
            cwd=ROOT,
            env=os.environ
            | {
                "DJANGO_SETTINGS_MODULE": "config.settings",
                "ENV_FILE": "",
                "SECRET_KEY": SECRET,
                "HTTPS": "true",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
