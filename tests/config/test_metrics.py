import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from config import metrics
from runs_app.services import vitals
from runs_app.services.streams import open_streams
from sessions_app.services import Actor, SessionManager
from tests.factories import make_lapsed_session, make_run, make_session, make_token

TOKEN = "a-token-that-is-long-enough"
DASHBOARD = Path(__file__).resolve().parents[2] / "deploy" / "grafana.json"


@pytest.fixture
def measured(db: None, settings: Settings) -> Client:
    """A client of a server that counts; it reads /metrics as Prometheus does."""
    settings.METRICS_TOKEN = TOKEN
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE[:3],
        "config.metrics_middleware.MetricsMiddleware",
        *settings.MIDDLEWARE[3:],
    ]
    return Client()


def read(client: Client) -> dict[str, float]:
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    lines = answer.content.decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def grown(before: dict[str, float], after: dict[str, float], name: str) -> float:
    return after.get(name, 0) - before.get(name, 0)


class TestMetrics:
    def test_are_not_there_without_a_token_in_the_settings(self, client: Client):
        answer = client.get("/metrics", headers={"Authorization": "Bearer "})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")

    @pytest.mark.parametrize(
        "given", [None, "", "Bearer", "Bearer ", TOKEN, f"Bearer {TOKEN}x", "Bearer ä"]
    )
    def test_are_for_nobody_else(self, measured: Client, given: str | None):
        headers = {} if given is None else {"Authorization": given}
        answer = measured.get("/metrics", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")

    def test_are_not_for_the_token_of_an_account(self, measured: Client, agent: User):
        token = make_token(account=agent)
        answer = measured.get("/metrics", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 401

    def test_are_only_read(self, measured: Client):
        assert measured.post("/metrics").status_code == 405

    def test_are_read_by_address(self, measured: Client):
        headers = {"Authorization": f"Bearer {TOKEN}", "Host": "10.0.0.7:8000"}
        assert measured.get("/metrics", headers=headers).status_code == 200


class TestRequests:
    def test_are_counted_by_route_and_status(self, measured: Client):
        before = read(measured)
        for path in ("/api/v1/sessions", "/api/v1/sessions/x", "/healthz", "/nowhere"):
            measured.get(path)
        measured.generic("BREW", "/nowhere")
        after = read(measured)
        for labels in (
            'method="GET",route="sessions",status="401"',
            'method="GET",route="session",status="401"',
            'method="GET",route="none",status="200"',
            'method="GET",route="none",status="404"',
            'method="other",route="none",status="404"',
        ):
            assert grown(before, after, f"dossier_request_seconds_count{{{labels}}}") == 1, labels

    def test_that_append_are_counted_once_however_often_they_are_sent(
        self, measured: Client, agent: User
    ):
        path = f"/api/v1/sessions/{make_session(account=agent).pk}/messages"
        headers = {"Authorization": f"Bearer {make_token(account=agent)}", "Idempotency-Key": "k"}
        before = read(measured)
        for body in ({"role": "user", "content": "Hello"},) * 2 + ({"role": "nobody"},):
            measured.post(path, body, "application/json", headers=headers)
        assert grown(before, read(measured), "dossier_appends_total") == 1


class _Silent:
    session_id = "sess_0"

    def next_page(self) -> Any:
        raise NotImplementedError


class TestStreams:
    def test_are_counted_while_they_are_open(self, measured: Client):
        read(measured)
        stream = open_streams.open(_Silent())
        assert read(measured)["dossier_open_streams"] == 1
        stream.close()
        assert read(measured)["dossier_open_streams"] == 0


class TestTheDatabase:
    def test_says_what_is_due_and_for_how_long(self, measured: Client, agent: User):
        assert read(measured)["dossier_sweep_lag_seconds"] == 0
        make_lapsed_session(account=agent)
        assert 3000 < read(measured)["dossier_sweep_lag_seconds"] < 4000

    def test_says_for_how_long_a_deletion_waits(self, measured: Client, agent: User):
        session = make_session(account=agent)
        SessionManager(Actor.account(agent)).delete(
            session_id=session.pk, now=timezone.now() - timedelta(hours=2)
        )
        assert 7000 < read(measured)["dossier_sweep_lag_seconds"] < 8000

    def test_says_which_runs_are_alive_and_which_are_not(self, measured: Client, agent: User):
        session = make_session(account=agent)
        make_run(session=session)
        make_run(session=session, start=False)
        long_ago = timezone.now() - timedelta(hours=1)
        make_run(session=make_session(account=agent, now=long_ago), now=long_ago)
        found = read(measured)
        live = {
            each: found[f'dossier_live_runs{{status="{each}"}}'] for each in ("RUNNING", "PENDING")
        }
        assert live == {"RUNNING": 1, "PENDING": 1}
        assert found['dossier_attention{what="interrupted"}'] == 1

    def test_says_how_many_connections_it_has(self, measured: Client):
        found = read(measured)
        if "dossier_database_connections_most" not in found:
            pytest.skip("SQLite has no server")
        assert found['dossier_database_connections{state="active"}'] >= 1
        assert found["dossier_database_connections_most"] >= 10

    def test_that_is_gone_leaves_what_was_counted(self, measured: Client, monkeypatch):
        def gone(**_: Any) -> None:
            raise OperationalError

        monkeypatch.setattr(metrics, "take_vitals", gone)
        found = read(measured)
        assert found["dossier_database_up"] == 0
        assert "dossier_appends_total" in found


class TestTheDashboard:
    def test_shows_nothing_that_is_not_there(self, measured: Client, monkeypatch):
        monkeypatch.setattr(vitals, "_connections", lambda: ({"idle": 3}, 100))
        measured.get("/healthz")
        known = {re.sub(r"\{.*", "", name) for name in read(measured)}
        asked = set(re.findall(r"dossier_\w+", DASHBOARD.read_text()))
        assert asked <= known
        assert {name for name in known if not name.endswith(("_created", "_sum"))} <= asked

    def test_has_no_two_panels_in_one_place(self):
        panels = json.loads(DASHBOARD.read_text())["panels"]
        places = [
            (x, y)
            for place in (panel["gridPos"] for panel in panels)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        assert len(places) == len(set(places))
        assert max(x for x, _ in places) < 24
