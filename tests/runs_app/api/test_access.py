"""Whose runs, sessions and packets an account may see and move (report SEC-01)."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import URLPattern

from runs_app.api.urls import urlpatterns
from runs_app.models import Run
from sessions_app.models import Session, SessionEvent
from tests.api_client import APIClient
from tests.factories import make_account, make_run, make_session

# A body that each path takes, so that nothing but the owner is wrong.
BODIES: dict[str, Any] = {
    "run-wait": {"reason": "approval"},
    "run-fail": {"error": {"type": "t", "message": "m"}},
}


def calls() -> list[tuple[str, str, str]]:
    """Every path of runs_app with a parameter, with each method that it takes."""
    found = []
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        route = str(pattern.pattern)
        if "<" in route:
            view = pattern.callback.view_class  # type: ignore[attr-defined]
            methods = [method for method in ("get", "post") if hasattr(view, method)]
            found += [(str(pattern.name), method.upper(), f"/{route}") for method in methods]
    return found


def asked(client: APIClient, call: tuple[str, str, str], run: Any, session_id: str) -> Any:
    name, method, route = call
    path = route.replace("<str:run_id>", run).replace("<str:session_id>", session_id)
    return client.send(method, path, BODIES.get(name) if method == "POST" else None)


@pytest.fixture
def run(session: Session) -> Run:
    return make_run(session=session)


class TestAnothersSession:
    @pytest.mark.parametrize("call", calls(), ids=lambda call: f"{call[1]} {call[0]}")
    def test_answers_like_an_unknown_id(
        self, stranger: APIClient, run: Run, call: tuple[str, str, str]
    ) -> None:
        events = SessionEvent.objects.count()
        foreign = asked(stranger, call, run.pk, run.session_id)
        unknown = asked(stranger, call, f"run_{'0' * 26}", f"sess_{'0' * 26}")
        assert foreign.status_code == unknown.status_code == 404
        said = foreign.json()["detail"].replace(run.pk, "").replace(run.session_id, "")
        assert said == unknown.json()["detail"].replace(f"run_{'0' * 26}", "").replace(
            f"sess_{'0' * 26}", ""
        )
        assert SessionEvent.objects.count() == events

    @pytest.mark.parametrize("name", ["retry_of", "parent_run_id"])
    def test_is_unknown_in_bodies(self, api: APIClient, session: Session, name: str) -> None:
        foreign = make_run(session=make_session(account=make_account("stranger")))
        for run_id in (foreign.pk, "run_x", "", "\x00", "ü"):
            answer = api.post(f"/sessions/{session.pk}/runs", {name: run_id})
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")

    @pytest.mark.parametrize("name", ["retry_of", "parent_run_id"])
    def test_is_unknown_in_bodies_also_for_the_owner_of_both(
        self, api: APIClient, agent: User, session: Session, name: str
    ) -> None:
        mine = make_run(session=make_session(account=agent))
        answer = api.post(f"/sessions/{session.pk}/runs", {name: mine.pk})
        assert answer.status_code == 404


class TestAnAuditor:
    @pytest.mark.parametrize("call", calls(), ids=lambda call: f"{call[1]} {call[0]}")
    def test_reads_all_and_writes_nothing(
        self, auditor: APIClient, run: Run, call: tuple[str, str, str]
    ) -> None:
        answer = asked(auditor, call, run.pk, run.session_id)
        assert answer.status_code == (200 if call[1] == "GET" else 403)

    def test_lists_all_runs(self, auditor: APIClient, run: Run) -> None:
        assert auditor.get("/runs").json()["data"][0]["run_id"] == run.pk


class TestADeletedSession:
    @pytest.mark.parametrize("call", calls(), ids=lambda call: f"{call[1]} {call[0]}")
    def test_is_gone_and_its_runs_are_unknown(
        self, api: APIClient, run: Run, call: tuple[str, str, str]
    ) -> None:
        api.delete(f"/sessions/{run.session_id}")
        answer = asked(api, call, run.pk, run.session_id)
        assert answer.status_code == (410 if "session_id" in call[2] else 404)


class TestNobody:
    @pytest.mark.parametrize("call", calls(), ids=lambda call: f"{call[1]} {call[0]}")
    def test_is_let_in(self, run: Run, call: tuple[str, str, str]) -> None:
        answer = asked(APIClient(None), call, run.pk, run.session_id)
        assert answer.status_code == 401


class TestAnOddId:
    @pytest.mark.parametrize("odd", ["%00", "run_%00", "%F0%9F%98%80", "%ED%A0%80", "x" * 3000])
    @pytest.mark.parametrize("call", calls(), ids=lambda call: f"{call[1]} {call[0]}")
    def test_is_unknown(self, api: APIClient, call: tuple[str, str, str], odd: str) -> None:
        assert asked(api, call, odd, odd).status_code == 404
