from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from sessions_app.api.etags import NO_VERSION, if_match, none_match
from sessions_app.errors import InvalidRequest
from sessions_app.models import Session
from tests.plumbing import account, api_client, bare_session

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.probe")]

URL = "/api/v1/echo"


@pytest.fixture
def user() -> User:
    return account()


@pytest.fixture
def client(user: User) -> APIClient:
    return api_client(user)


@pytest.fixture
def session(user: User) -> Session:
    return bare_session(user, version=7)


class TestAQuery:
    def refused_at(self, client: APIClient, query: str) -> str:
        answer = client.get(f"{URL}?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        (error,) = answer.json()["errors"]
        return str(error["pointer"])

    def test_gives_every_declared_parameter(self, client: APIClient) -> None:
        assert client.get(URL).json() == {
            "q": None,
            "name": None,
            "after": None,
            "deep": False,
            "since": None,
            "order": "asc",
            "status": None,
            "metadata.": {},
        }

    @pytest.mark.parametrize(
        ("query", "name", "value"),
        [
            ("q=", "q", ""),
            ("q=%20a+b%20", "q", " a b "),
            ("q=%00", "q", "\ufffd"),
            ("q=%FF", "q", "\ufffd"),
            (f"q={'a' * 255}", "q", "a" * 255),
            ("name=abcde", "name", "abcde"),
            ("after=1", "after", 1),
            (f"after={2**63 - 1}", "after", 2**63 - 1),
            ("deep=true", "deep", True),
            ("deep=false", "deep", False),
            ("since=2026-01-31T12:00:00%2B01:00", "since", "2026-01-31T11:00:00.000000Z"),
            ("order=desc", "order", "desc"),
            ("status=A", "status", ["A"]),
            ("status=B,A,B", "status", ["B", "A"]),
            ("metadata.a=1&metadata.b.c=&metadata.%00=x", "metadata.",
             {"a": "1", "b.c": "", "\ufffd": "x"}),
        ],
    )  # fmt: skip
    def test_is_read_by_type(self, client: APIClient, query: str, name: str, value: Any) -> None:
        assert client.get(f"{URL}?{query}").json()[name] == value

    @pytest.mark.parametrize(
        ("query", "pointer"),
        [
            ("unknown=1", "/unknown"),
            ("Q=1", "/Q"),
            ("q%00=1", "/q\x00"),
            ("a/b~c=1", "/a~1b~0c"),
            ("=1", "/"),
            ("limit=1", "/limit"),
            ("cursor=x", "/cursor"),
            ("format=json", "/format"),
            ("q=1&q=2", "/q"),
            (f"q={'a' * 256}", "/q"),
            ("name=", "/name"),
            ("name=abcdef", "/name"),
            *[(f"after={text}", "/after") for text in
              ("0", "-1", "", "abc", "1e3", "1.0", "01", "%2B1", "%201", "1_0", "%D9%A3", "true",
               "-0", "99999999999999999999", str(2**63), "9" * 5000)],
            *[(f"deep={text}", "/deep") for text in ("", "1", "0", "True", "yes", "null")],
            *[(f"since={text}", "/since") for text in
              ("", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31T12:00:00+01:00", "now",
               "2026-13-31T12:00:00Z", "%D9%A2026-01-31T12:00:00Z")],
            *[(f"order={text}", "/order") for text in ("", "ASC", "asc,desc")],
            *[(f"status={text}", "/status") for text in ("", "C", "A,", "A,C", "A%20,B")],
            ("metadata.=1", "/metadata."),
            ("metadata=1", "/metadata"),
            ("metadata.a=1&metadata.a=2", "/metadata.a"),
        ],
    )  # fmt: skip
    def test_is_refused_when_it_is_not_strict(
        self, client: APIClient, query: str, pointer: str
    ) -> None:
        assert self.refused_at(client, query) == pointer

    def test_with_too_many_parameters_is_refused(self, client: APIClient) -> None:
        answer = client.get(f"{URL}?" + "&".join(f"a{number}=1" for number in range(2000)))
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")

    def test_is_read_for_head_as_for_get(self, client: APIClient) -> None:
        assert client.head(f"{URL}?q=a").status_code == 200
        assert client.head(f"{URL}?x=a").status_code == 400

    def test_of_a_write_takes_nothing_undeclared(self, client: APIClient) -> None:
        assert client.post(f"{URL}?q=a", {}).status_code == 400


class TestAPath:
    @pytest.mark.parametrize("name", ["%00", "a%00b", "%FF", "%F0%9F%98%80", "x" * 5000, "%2e"])
    def test_that_names_nothing_is_404(self, client: APIClient, name: str) -> None:
        answer = client.post(f"/api/v1/sessions/{name}/counter", {})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


class TestIfMatch:
    @pytest.mark.parametrize(
        ("header", "version"),
        [
            (None, None),
            ("*", None),
            ('"7"', 7),
            (' "0" ', 0),
            ('W/"7"', NO_VERSION),
            ('"07"', NO_VERSION),
            ('"seven"', NO_VERSION),
            ('""', NO_VERSION),
            ('"-1"', NO_VERSION),
            ('"٣"'.encode().decode("latin-1"), NO_VERSION),
            (f'"{10**30}"', NO_VERSION),
        ],
    )
    def test_expects_one_version(self, header: str | None, version: int | None) -> None:
        assert if_match(header) == version

    @pytest.mark.parametrize("header", ["", "7", '"7', "w/7", '"7", "8"', '"a"b"', "**", '"a b"'])
    def test_is_refused_when_it_is_malformed(self, header: str) -> None:
        with pytest.raises(InvalidRequest):
            if_match(header)

    @pytest.mark.parametrize(
        ("header", "status"),
        [('"7"', 201), ("*", 201), ('"6"', 412), ('W/"7"', 412), ('"x"', 412), ("7", 400)],
    )
    def test_guards_a_write(
        self, client: APIClient, session: Session, header: str, status: int
    ) -> None:
        url = f"/api/v1/sessions/{session.pk}/counter"
        answer = client.post(url, {}, headers={"If-Match": header})
        assert answer.status_code == status
        if status == 412:
            assert (answer.json()["code"], answer.json()["version"]) == ("version_mismatch", 7)
            assert "ETag" in answer.json()["detail"]

    def test_is_refused_where_it_would_be_ignored(
        self, client: APIClient, session: Session
    ) -> None:
        url = f"/api/v1/sessions/{session.pk}/counter"
        answer = client.patch(url, {}, headers={"If-Match": '"7"'})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        session.refresh_from_db()
        assert session.version == 7


class TestIfNoneMatch:
    @pytest.mark.parametrize(
        ("header", "held"),
        [
            (None, False),
            ("*", True),
            ('"7"', True),
            ('W/"7"', True),
            ('"6", W/"7"', True),
            ('"6"', False),
            ('"17"', False),
            ("7", False),
            ("", False),
            ("nonsense", False),
        ],
    )
    def test_names_what_the_reader_holds(self, header: str | None, held: bool) -> None:
        assert none_match(header, 7) is held

    def test_saves_the_body(self, client: APIClient, session: Session) -> None:
        url = f"/api/v1/sessions/{session.pk}/counter"
        first = client.get(url)
        assert (first.status_code, first["ETag"]) == (200, '"7"')
        second = client.get(url, headers={"If-None-Match": first["ETag"]})
        assert (second.status_code, second.content, second["ETag"]) == (304, b"", '"7"')

    def test_saves_nothing_while_the_status_has_lapsed(
        self, client: APIClient, session: Session
    ) -> None:
        Session.objects.update(title="lapsed")
        url = f"/api/v1/sessions/{session.pk}/counter"
        assert client.get(url, headers={"If-None-Match": '"7"'}).status_code == 200


class TestAWrite:
    def test_reads_the_body_before_it_takes_a_lock(
        self, client: APIClient, session: Session, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        with django_assert_num_queries(2):  # they authenticate
            client.generic(
                "POST",
                f"/api/v1/sessions/{session.pk}/counter",
                "{",
                content_type="application/json",
                headers={"Idempotency-Key": "k"},
            )

    @pytest.mark.parametrize("method", ["options", "trace"])
    def test_has_no_other_methods(self, client: APIClient, method: str) -> None:
        answer = client.generic(method.upper(), URL)
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
