from io import BytesIO

import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.utils import translation

from config.middleware import (
    APIMiddleware,
    RequestIdMiddleware,
    TrailingSlashMiddleware,
    WholeBodies,
)


class TestRequestId:
    def test_is_made_where_none_came(self, client: Client):
        first, second = (client.get("/healthz").headers["X-Request-Id"] for _ in range(2))
        assert first.startswith("req_")
        assert first != second

    @pytest.mark.parametrize("given", ["a", "4bf92f35-77b3", "trace:1.2_3", "x" * 128])
    def test_keeps_a_sane_one(self, client: Client, given):
        response = client.get("/healthz", headers={"X-Request-Id": given})
        assert response.headers["X-Request-Id"] == given

    @pytest.mark.parametrize("given", ["", " ", "a b", "a\x7f", "ä", "<b>", "x" * 129, 'a"b'])
    def test_replaces_one_that_could_do_harm(self, client: Client, given):
        response = client.get("/healthz", headers={"X-Request-Id": given})
        assert response.headers["X-Request-Id"].startswith("req_")

    def test_reaches_the_view(self):
        seen = []

        def view(request: HttpRequest) -> HttpResponse:
            seen.append(getattr(request, "request_id", None))
            return HttpResponse()

        request = RequestFactory().get("/", headers={"X-Request-Id": "mine"})
        assert RequestIdMiddleware(view)(request).headers["X-Request-Id"] == "mine"
        assert seen == ["mine"]

    def test_is_on_errors_too(self, client: Client):
        assert client.get("/no/such/page").headers["X-Request-Id"]


class TestTrailingSlash:
    @pytest.mark.parametrize(
        ("asked", "answered"),
        [
            ("/api/v1/sessions/", "/api/v1/sessions"),
            ("/api/v1/sessions", "/api/v1/sessions"),
            ("/api/v1/sessions//", "/api/v1/sessions/"),
            ("/docs/", "/docs"),
            ("/admin/", "/admin/"),
            ("/", "/"),
        ],
    )
    def test_one_is_dropped_outside_the_admin(self, asked, answered):
        seen = []

        def view(request: HttpRequest) -> HttpResponse:
            seen.append((request.path, request.path_info))
            return HttpResponse()

        TrailingSlashMiddleware(view)(RequestFactory().post(asked))
        assert seen == [(answered, answered)]

    def test_a_post_is_answered_in_place(self, client: Client):
        assert client.get("/api/v1/healthz/").status_code == 200
        assert client.post("/api/v1/healthz/").status_code == 405


@pytest.mark.parametrize("path", ["/", "/admin"])
def test_the_addresses_that_people_type_lead_to_the_console(client: Client, path):
    assert client.get(path).headers["Location"] == "/admin/"


class TestAPI:
    @pytest.mark.parametrize("host", ["testserver", "elsewhere.example"])
    @pytest.mark.parametrize("path", ["/api/v1/openapi.json", "/api/v1/nothing"])
    def test_answers_have_their_headers_whatever_they_are(self, client: Client, path, host):
        response = client.get(path, headers={"Host": host})
        assert response.headers["X-Frame-Options"] == "DENY"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert int(response.headers["Content-Length"]) == len(response.content)


class TestWholeBodies:
    @staticmethod
    def pass_through(environ: dict) -> tuple[str | None, bytes]:
        """What the application behind it would read."""
        seen = {}

        def application(environ, start_response):
            seen.update(environ)
            return []

        WholeBodies(application)(environ, lambda *_: lambda _data: None)
        return seen.get("CONTENT_LENGTH"), seen["wsgi.input"].read()

    def test_without_a_length_get_one(self):
        environ = {"wsgi.input": BytesIO(b'{"a":1}'), "wsgi.input_terminated": True}
        assert self.pass_through(environ) == ("7", b'{"a":1}')

    def test_over_the_limit_show_that_they_are(self):
        body = BytesIO(b"x" * (settings.MAX_BODY_BYTES + 1000))
        length, _ = self.pass_through({"wsgi.input": body, "wsgi.input_terminated": True})
        assert length == str(settings.MAX_BODY_BYTES + 1)

    def test_with_a_length_are_read_if_they_are_short(self):
        environ = {"wsgi.input": BytesIO(b"abcdef"), "CONTENT_LENGTH": "3"}
        assert self.pass_through(environ) == ("3", b"abc")

    def test_that_are_long_stay_on_their_way(self):
        body = BytesIO(b"abcdef")
        environ = {"wsgi.input": body, "CONTENT_LENGTH": str(64 * 1024 + 1)}
        assert self.pass_through(environ) == ("65537", b"abcdef")
        assert body.tell() == len(b"abcdef")

    def test_a_server_that_cannot_end_a_body_is_not_read_from(self):
        assert self.pass_through({"wsgi.input": BytesIO(b"abc")}) == (None, b"abc")


class TestAnAPIRequest:
    """Is answered before what follows in MIDDLEWARE."""

    def test_goes_no_further(self):
        further = []

        def following(request: HttpRequest) -> HttpResponse:
            further.append(request.path)
            return HttpResponse()

        for path in ("/api/v1/sessions", "/docs", "/admin/"):
            APIMiddleware(following)(RequestFactory().get(path))
        assert further == ["/docs", "/admin/"]

    def test_needs_no_csrf_token(self):
        strict = Client(enforce_csrf_checks=True)
        assert strict.post("/api/v1/sessions", {}).status_code == 401

    def test_for_an_unknown_path_is_a_problem(self, client: Client):
        response = client.get("/api/v1/nothing")
        assert (response.status_code, response.json()["code"]) == (404, "not_found")

    def test_for_another_host_is_refused(self, client: Client, settings):
        settings.ALLOWED_HOSTS = ["here.example"]
        response = client.get("/api/v1/sessions", headers={"Host": "elsewhere.example"})
        assert response.status_code == 400

    def test_is_answered_in_one_language_after_any_page(self, client: Client):
        chinese = {"Accept-Language": "zh-CN"}
        page = client.get("/admin/login/", headers=chinese)
        assert page.headers["Content-Language"] == "zh-hans"
        assert translation.get_language() == settings.LANGUAGE_CODE
