import inspect
import json
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from django.test import Client, RequestFactory
from rest_framework import exceptions
from rest_framework.test import APIClient

from config import problems
from sessions_app import errors
from tests import probe
from tests.plumbing import api_client

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.probe")]

NEEDS_A_NEXT_STEP = (409, 410, 412, 413, 422, 429, 503)
HOSTILE = "\ud83d <script>alert(1)</script> \x00 " + "x" * 10_000


def every_domain_error() -> list[type[errors.DossierError]]:
    found, queue = [], [errors.DossierError]
    while queue:
        queue += (children := queue.pop().__subclasses__())
        found += children
    return found


def raised(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Any:
    monkeypatch.setitem(probe.RAISES, "it", error)
    return api_client().get("/api/v1/raise/it")


class TestTheTableOfAnswers:
    @pytest.mark.parametrize("kind", every_domain_error())
    def test_maps_every_domain_error(self, kind: type[errors.DossierError]) -> None:
        assert kind in problems.ANSWERS

    def test_maps_nothing_that_does_not_exist(self) -> None:
        assert set(problems.ANSWERS) == set(every_domain_error())

    def test_gives_each_code_to_one_error(self) -> None:
        codes = [kind.code for kind in problems.ANSWERS]
        assert len(codes) == len(set(codes))

    @pytest.mark.parametrize("kind", list(problems.ANSWERS))
    def test_has_a_next_step_for_each_conflict(self, kind: type[errors.DossierError]) -> None:
        status, hint = problems.ANSWERS[kind]
        assert hint or status not in NEEDS_A_NEXT_STEP
        assert not hint or hint.endswith(".")


class TestADomainError:
    def test_of_one_place_in_the_body_points_at_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        error = errors.OrphanToolResult("None waits.", pointer="/messages/1/tool_call_id")
        found = raised(monkeypatch, error).json()["errors"]
        assert [place["pointer"] for place in found] == ["/messages/1/tool_call_id"]

    @pytest.mark.parametrize("kind", list(problems.ANSWERS))
    def test_answers_with_its_own_status_code_and_next_step(
        self, monkeypatch: pytest.MonkeyPatch, kind: type[errors.DossierError]
    ) -> None:
        answer = raised(monkeypatch, kind("Something is wrong."))
        status, hint = problems.ANSWERS[kind]
        assert answer.status_code == status
        assert answer["Content-Type"] == "application/problem+json"
        body = answer.json()
        assert body["status"] == status
        assert body["code"] == kind.code
        assert body["title"] == kind.title
        assert body["type"] == f"urn:dossier:problem:{kind.code}"
        assert body["detail"] == f"Something is wrong. {hint}".strip()
        assert body["errors"] == []

    def test_carries_its_data_beside_the_fixed_members(
        self, monkeypatch: pytest.MonkeyPatch, django_user_model: Any
    ) -> None:
        error = errors.RunActive(
            "Busy.", active_run_id="run_1", version=7, status="mine", big=2**80
        )
        body = raised(monkeypatch, error).json()
        assert (body["active_run_id"], body["version"], body["big"]) == ("run_1", 7, 2**80)
        assert body["status"] == 409

    def test_lists_its_pointers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        body = raised(monkeypatch, errors.InvalidRequest.at("/a~1b/0", "too long")).json()
        assert body["errors"] == [{"pointer": "/a~1b/0", "detail": "too long"}]

    def test_says_the_request_id_of_the_header(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answer = raised(monkeypatch, errors.NotFound("No."))
        assert answer.json()["request_id"] == answer["X-Request-Id"]

    @pytest.mark.parametrize(
        "error",
        [
            errors.InvalidJSON(HOSTILE),
            errors.NotFound(HOSTILE),
            errors.InvalidRequest.at(f"/{HOSTILE}", HOSTILE),
            errors.AlreadyExists("It is there.", external_id=HOSTILE),
            exceptions.ValidationError({HOSTILE: [HOSTILE]}),
            exceptions.UnsupportedMediaType(HOSTILE),
        ],
    )
    def test_can_echo_hostile_values(
        self, monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        answer = raised(monkeypatch, error)
        assert 400 <= answer.status_code < 500
        assert len(answer.json()["detail"]) <= 1000
        answer.content.decode()

    def test_lists_no_more_than_a_hundred_errors(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pointers = {f"/{number}": "wrong" for number in range(5000)}
        error = errors.InvalidRequest("Much is wrong.", pointers=pointers)
        assert len(raised(monkeypatch, error).json()["errors"]) == 100


class TestAnErrorOfTheFramework:
    @pytest.mark.parametrize(
        ("error", "status", "code"),
        [
            (exceptions.ParseError(), 400, "invalid_request"),
            (exceptions.ValidationError({"a": ["no"]}), 400, "invalid_request"),
            (exceptions.NotAuthenticated(), 401, "not_authenticated"),
            (exceptions.AuthenticationFailed(), 401, "not_authenticated"),
            (exceptions.PermissionDenied(), 403, "permission_denied"),
            (PermissionDenied(), 403, "permission_denied"),
            (exceptions.NotFound(), 404, "not_found"),
            (Http404("secret"), 404, "not_found"),
            (exceptions.MethodNotAllowed("PUT"), 405, "method_not_allowed"),
            (exceptions.NotAcceptable(), 406, "not_acceptable"),
            (RequestDataTooBig(), 413, "payload_too_large"),
            (exceptions.UnsupportedMediaType("text/plain"), 415, "unsupported_media_type"),
            (UnreadablePostError(), 400, "invalid_request"),
            (exceptions.Throttled(wait=7), 429, "rate_limited"),
        ],
    )
    def test_is_a_problem_too(
        self, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str
    ) -> None:
        answer = raised(monkeypatch, error)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert answer["Content-Type"] == "application/problem+json"
        assert "secret" not in answer.json()["detail"]

    def test_names_the_scheme_when_authentication_is_missing(self) -> None:
        answer = APIClient().get("/api/v1/echo")
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == "Bearer"

    def test_names_the_methods_when_one_is_not_allowed(self) -> None:
        answer = api_client().delete("/api/v1/echo")
        assert answer.status_code == 405
        assert set(answer["Allow"].split(", ")) == {"GET", "POST", "PUT", "PATCH", "HEAD"}

    def test_says_when_to_come_back_after_too_many_requests(self) -> None:
        answer = api_client().get("/api/v1/raise/throttled")
        assert answer["Retry-After"] == "7"
        assert "Retry-After" in answer.json()["detail"]

    def test_points_at_each_wrong_value(self, monkeypatch: pytest.MonkeyPatch) -> None:
        error = exceptions.ValidationError(
            {
                "a/b~c": ["first", "second"],
                "list": {"1": ["in an element"]},
                "nested": [{}, {"x": ["deep"]}],
                "non_field_errors": ["all of it"],
            }
        )
        assert raised(monkeypatch, error).json()["errors"] == [
            {"pointer": "/a~1b~0c", "detail": "first"},
            {"pointer": "/a~1b~0c", "detail": "second"},
            {"pointer": "/list/1", "detail": "in an element"},
            {"pointer": "/nested/1/x", "detail": "deep"},
            {"pointer": "", "detail": "all of it"},
        ]


class SQLState(Exception):  # a driver's error, as Django wraps it
    def __init__(self, *, sqlstate: str | None = None, sqlite_errorcode: int | None = None) -> None:
        super().__init__("UPDATE … SET secret = 'what a person wrote'")
        self.sqlstate, self.sqlite_errorcode = sqlstate, sqlite_errorcode


def wrapped(kind: type[Exception], cause: Exception) -> Exception:
    error = kind(str(cause))
    error.__cause__ = cause
    return error


class TestADatabaseThatCannotNow:
    @pytest.mark.parametrize(
        "error",
        [
            wrapped(OperationalError, SQLState(sqlite_errorcode=5)),  # locked
            wrapped(OperationalError, SQLState(sqlite_errorcode=517)),  # a stale snapshot
            wrapped(OperationalError, SQLState(sqlstate="55P03")),  # lock timeout
            wrapped(OperationalError, SQLState(sqlstate="40P01")),  # deadlock
            wrapped(OperationalError, SQLState(sqlstate="57014")),  # statement timeout
            wrapped(OperationalError, SQLState()),  # connection gone
            wrapped(InterfaceError, SQLState()),
        ],
    )
    def test_is_busy_and_says_when_to_come_back(
        self,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        error: Exception,
    ) -> None:
        answer = raised(monkeypatch, error)
        assert (answer.status_code, answer.json()["code"]) == (503, "database_busy")
        assert int(answer["Retry-After"]) >= 1
        assert "secret" not in answer.content.decode() + caplog.text
        assert "database busy" in caplog.text

    def test_is_not_blamed_for_a_statement_that_can_never_work(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(
            probe.RAISES, "it", wrapped(OperationalError, SQLState(sqlite_errorcode=1))
        )
        client = api_client(raise_request_exception=False)
        assert client.get("/api/v1/raise/it").status_code == 500


class TestAnUnexpectedError:
    def test_is_logged_and_says_nothing_of_the_inside(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setitem(probe.RAISES, "it", RuntimeError("a secret"))
        answer = api_client(raise_request_exception=False).get("/api/v1/raise/it")
        assert answer.status_code == 500
        assert answer["Content-Type"] == "application/problem+json"
        assert json.loads(answer.content)["code"] == "internal_error"
        assert "secret" not in answer.content.decode()
        assert "a secret" in caplog.text


class TestAPathThatLeadsNowhere:
    @pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/", "/openapi.json"])
    def test_is_a_problem_where_programs_ask(self, path: str) -> None:
        answer = Client().get(path)
        assert answer.status_code == 404
        assert answer.json()["code"] == "not_found"
        assert answer.json()["request_id"] == answer["X-Request-Id"]

    def test_says_which_setting_refuses_a_host(self) -> None:
        for path in ("/api/v1/nothing", "/nothing"):
            answer = Client(headers={"host": "elsewhere.example"}).get(path)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
            assert "ALLOWED_HOSTS" in answer.json()["detail"]

    def test_is_a_page_elsewhere(self) -> None:
        answer = Client().get("/nothing")
        assert answer.status_code == 404
        assert answer["Content-Type"].startswith("text/html")


class TestTheHandlers:
    @pytest.mark.parametrize(
        ("handler", "arguments", "status", "code"),
        [
            (problems.handler400, [SuspiciousOperation()], 400, "invalid_request"),
            (problems.handler400, [RequestDataTooBig()], 413, "payload_too_large"),
            (problems.handler403, [PermissionDenied()], 403, "permission_denied"),
            (problems.handler404, [Http404()], 404, "not_found"),
            (problems.handler500, [], 500, "internal_error"),
        ],
    )
    def test_answer_programs_and_people_each_in_their_way(
        self, handler: Any, arguments: list[Exception], status: int, code: str
    ) -> None:
        for_programs = handler(RequestFactory().get("/api/v1/x"), *arguments)
        assert (for_programs.status_code, json.loads(for_programs.content)["code"]) == (
            status,
            code,
        )
        page = handler(RequestFactory().get("/x"), *arguments)
        assert page["Content-Type"].startswith("text/html")

    def test_take_what_django_passes(self) -> None:
        assert list(inspect.signature(problems.handler500).parameters) == ["request"]
