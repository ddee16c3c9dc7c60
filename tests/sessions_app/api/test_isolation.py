"""An account sees its own: another's ids answer exactly like unknown ones (report SEC-01)."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import URLPattern

from sessions_app.api.urls import urlpatterns
from sessions_app.ids import new_id
from sessions_app.models import Session
from tests.api_client import APIClient
from tests.domain import dump_of
from tests.factories import make_messages, make_session, make_tool_call

BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "messages"): {"role": "user", "content": "x"},
    ("POST", "tool-calls"): {"name": "ls"},
    ("POST", "tool-call-finish"): {"status": "SUCCEEDED"},
    ("POST", "tool-call-settle"): {"reason": "r"},
    ("PUT", "working-memory"): {},
    ("PATCH", "working-memory"): {},
    ("PATCH", "session"): {},
}


def operations() -> Iterator[tuple[str, str, str]]:
    """Method, name and path of everything below a session: a new route is tested by itself."""
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        path = "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern))
        view = pattern.callback.view_class  # type: ignore[attr-defined]
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            if "{" in path and hasattr(view, method.lower()):
                yield method, str(pattern.name), path


@pytest.fixture
def session(agent: User) -> Session:
    session = make_session(account=agent, working_memory={"goal": "G"}, external_id="e")
    make_messages(session=session)
    return session


@pytest.fixture
def ids(session: Session) -> dict[str, str]:
    call = make_tool_call(session=session)
    fixed = {"sequence": "1", "version": "1"}
    return {"session_id": session.session_id, "id": call.id, **fixed}


@pytest.mark.parametrize(("method", "name", "path"), list(operations()))
class TestAnotherAccountsSession:
    def test_answers_like_an_unknown_one(
        self,
        stranger: APIClient,
        session: Session,
        ids: dict[str, str],
        *,
        method: str,
        name: str,
        path: str,
    ) -> None:
        unknown = {**ids, "session_id": new_id("sess"), "id": new_id("call")}
        before = dump_of(session.session_id)
        body = BODIES.get((method, name))
        foreign = stranger.send(method, path.format(**ids), body)
        nobody = stranger.send(method, path.format(**unknown), body)
        assert foreign.status_code == nobody.status_code == 404
        assert told(foreign.json(), ids) == told(nobody.json(), unknown)
        assert dump_of(session.session_id) == before

    def test_is_read_and_not_written_by_an_auditor(
        self,
        auditor: APIClient,
        session: Session,
        ids: dict[str, str],
        *,
        method: str,
        name: str,
        path: str,
    ) -> None:
        before = dump_of(session.session_id)
        answer = auditor.send(method, path.format(**ids), BODIES.get((method, name)))
        if method == "GET":
            assert answer.status_code == 200
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
        assert dump_of(session.session_id) == before

    def test_is_not_there_without_a_token(
        self,
        ids: dict[str, str],
        *,
        method: str,
        name: str,
        path: str,
    ) -> None:
        for token in (None, "x", "é"):
            answer = APIClient(token).send(method, path.format(**ids), BODIES.get((method, name)))
            assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")
            assert answer.headers["WWW-Authenticate"] == "Bearer"


def told(problem: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """What the answer tells beside the ids that were asked for."""
    text = problem["detail"]
    for name in ids.values():
        text = text.replace(name, "…")
    return {**problem, "detail": text, "request_id": None}


class TestAnIdInABody:
    def test_of_another_account_is_unknown(
        self, api: APIClient, stranger: APIClient, session: Session
    ) -> None:
        mine = stranger.post("/sessions").json()["session_id"]
        run = api.post(f"/sessions/{session.session_id}/runs", {}).json()["run_id"]
        message = {"role": "user", "content": "x"}
        for name in (run, new_id("run")):
            answers = [
                stranger.post(f"/sessions/{mine}/messages", {**message, "run_id": name}),
                stranger.post(f"/sessions/{mine}/tool-calls", {"name": "ls", "run_id": name}),
                stranger.put(f"/sessions/{mine}/working-memory", {}, {"run_id": name}),
            ]
            assert {answer.status_code for answer in answers} == {404}
