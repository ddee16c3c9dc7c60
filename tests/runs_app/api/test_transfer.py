"""`GET /sessions/{id}/export` and `POST /sessions/import`: the contract around the file."""

import threading
import tracemalloc
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from config.middleware import WholeBodies
from runs_app.services.transfer import contents
from sessions_app.models import Message, Session
from sessions_app.services import Actor, SessionManager
from tests.api_client import APIClient
from tests.domain import calling, result
from tests.exports import comparable, objects
from tests.factories import add_messages, make_account, make_messages, make_run, make_session

pytestmark = pytest.mark.django_db

FILE = {"Content_Type": "application/x-ndjson"}


@pytest.fixture
def source(agent: User) -> Session:
    session = make_session(account=agent, title="Kept", external_id="ticket-7")
    make_run(session=session)
    make_messages(session=session, count=3)
    return session


def export(api: APIClient, session: Session) -> bytes:
    answer = api.get(f"/sessions/{session.session_id}/export")
    assert answer.status_code == 200
    return bytes(answer.content)


def unnamed(file: bytes) -> bytes:
    return file.replace(b'"external_id":"ticket-7"', b'"external_id":null')


class TestAnExport:
    def test_is_a_file_of_lines(self, api: APIClient, source: Session) -> None:
        answer = api.get(f"/sessions/{source.session_id}/export")
        assert answer.headers["Content-Type"] == "application/x-ndjson"
        name = f'attachment; filename="{source.session_id}.ndjson"'
        assert answer.headers["Content-Disposition"] == name
        kinds = [line["object"] for line in objects(answer.content)]
        assert kinds == [
            *("dossier.export", "session", "run"),
            *["message"] * 3,
            *["event"] * 3,
            "dossier.end",
        ]

    def test_of_what_is_gone_is_410(self, api: APIClient, source: Session, agent: User) -> None:
        SessionManager(Actor.account(agent)).delete(session_id=source.session_id)
        answer = api.get(f"/sessions/{source.session_id}/export")
        assert (answer.status_code, answer.json()["code"]) == (410, "session_deleted")

    def test_has_no_other_format(self, api: APIClient, source: Session) -> None:
        answer = api.get(f"/sessions/{source.session_id}/export", {"format": "csv"})
        assert answer.status_code == 400

    def test_takes_no_memory_that_grows_with_the_session(self, api: APIClient, agent: User) -> None:
        session = make_session(account=agent)
        for _ in range(6):
            texts = [{"role": "user", "content": "x" * 200_000} for _ in range(10)]
            add_messages(*texts, session=session)
        export(api, make_session(account=agent))  # what the first one imports is no session's
        tracemalloc.start()
        try:
            answer: Any = api.client.get(
                f"/api/v1/sessions/{session.session_id}/export",
                headers={"Authorization": f"Bearer {api.token}"},
            )
            size = sum(map(len, answer.streaming_content))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert size > 12_000_000
        assert peak < 6_000_000


class TestAnImport:
    def test_is_a_new_session(self, api: APIClient, source: Session) -> None:
        file = export(api, source)
        answer = api.post("/sessions/import", unnamed(file), **FILE)
        assert answer.status_code == 201
        body = answer.json()
        assert answer.headers["Location"] == f"/api/v1/sessions/{body['session_id']}"
        assert (body["imported_from"], body["title"]) == (source.session_id, "Kept")
        assert (body["status"], body["active_run_id"], body["run_count"]) == ("ACTIVE", None, 1)
        (run,) = api.get(f"/sessions/{body['session_id']}/runs").json()["data"]
        assert run["status"] == "INTERRUPTED"
        assert api.get(answer.headers["Location"].removeprefix("/api/v1")).status_code == 200

    def test_of_a_name_that_is_taken_is_409(self, api: APIClient, source: Session) -> None:
        answer = api.post("/sessions/import", export(api, source), **FILE)
        assert (answer.status_code, answer.json()["code"]) == (409, "already_exists")
        assert answer.json()["session_id"] == source.session_id
        assert Session.objects.count() == 1

    def test_names_the_line_that_it_refuses(self, api: APIClient, source: Session) -> None:
        broken = export(api, source).replace(b'"role":"user","content"', b'"role":"u","content"')
        answer = api.post("/sessions/import", broken, **FILE)
        problem = answer.json()
        assert (answer.status_code, problem["code"], problem["line"]) == (400, "invalid_request", 4)
        assert problem["errors"][0]["pointer"] == "/4/message/role"
        assert Session.objects.count() == 1

    def test_is_done_once_for_a_key(self, api: APIClient, source: Session) -> None:
        file = unnamed(export(api, source))
        first, again = (
            api.post("/sessions/import", file, **FILE, Idempotency_Key="k") for _ in range(2)
        )
        assert (first.status_code, again.content) == (201, first.content)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.headers["Location"] == first.headers["Location"]
        other = api.post("/sessions/import", file[:-1] + b" \n", **FILE, Idempotency_Key="k")
        assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
        assert Session.objects.count() == 2

    def test_may_be_larger_than_a_body(
        self, api: APIClient, source: Session, settings: Any
    ) -> None:
        file = unnamed(export(api, source))
        settings.MAX_BODY_BYTES = len(file) // 4
        assert api.post("/sessions/import", file, **FILE).status_code == 201
        settings.MAX_IMPORT_BYTES = len(file) - 1
        refused = api.post("/sessions/import", file, **FILE)
        assert (refused.status_code, refused.json()["limit"]) == (413, len(file) - 1)

    def test_of_another_type_is_415(self, api: APIClient, source: Session) -> None:
        file = unnamed(export(api, source))
        assert api.post("/sessions/import", file).status_code == 415
        packed = FILE | {"Content_Encoding": "gzip"}
        assert api.post("/sessions/import", file, **packed).status_code == 415

    def test_is_not_read_from_whom_it_does_not_know(self, source: Session) -> None:
        class Unreadable(BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                raise AssertionError("it was read")

        unread: Any = {"wsgi.input": Unreadable(), "CONTENT_LENGTH": 10**9}
        for token in ("", "Bearer nonsense"):
            headers = {"Authorization": token}
            kind = "application/x-ndjson"
            answer = Client().generic(
                "POST",
                "/api/v1/sessions/import",
                b"x",
                content_type=kind,
                headers=headers,
                **unread,
            )
            assert answer.status_code == 401

    def test_that_breaks_off_is_refused(self, api: APIClient, source: Session) -> None:
        file = unnamed(export(api, source))
        cut: Any = {"wsgi.input": BytesIO(file), "CONTENT_LENGTH": len(file) + 1}
        headers = {"Authorization": f"Bearer {api.token}"}
        answer: Any = Client().generic(
            "POST",
            "/api/v1/sessions/import",
            file,
            content_type="application/x-ndjson",
            headers=headers,
            **cut,
        )
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")

    def test_without_a_length_is_read_by_its_view(self, settings: Any) -> None:
        settings.MAX_BODY_BYTES = 10
        seen: dict[str, Any] = {}
        body = BytesIO(b"x" * 1000)

        def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
            seen.update(environ)
            return []

        whole: Any = WholeBodies(application)
        for path in ("/api/v1/sessions/import", "/api/v1/sessions/import/"):
            whole({"wsgi.input": body, "wsgi.input_terminated": True, "PATH_INFO": path}, None)
            assert seen["CONTENT_LENGTH"] == str(settings.MAX_IMPORT_BYTES + 1)
            assert (seen["wsgi.input"], body.tell()) == (body, 0)

    def test_without_a_length_is_whole_where_it_ends(self, api: APIClient, source: Session) -> None:
        file = unnamed(export(api, source))
        chunked: Any = {
            "wsgi.input": BytesIO(file),
            "CONTENT_LENGTH": str(10**9),
            "dossier.unannounced": True,
        }
        headers = {"Authorization": f"Bearer {api.token}"}
        answer: Any = Client().generic(
            "POST",
            "/api/v1/sessions/import",
            file,
            content_type="application/x-ndjson",
            headers=headers,
            **chunked,
        )
        assert answer.status_code == 201

    def test_of_another_accounts_file_is_ones_own(
        self, api: APIClient, stranger: APIClient, source: Session
    ) -> None:
        file = export(api, source)
        copy = stranger.post("/sessions/import", file, **FILE).json()
        assert api.get(f"/sessions/{copy['session_id']}").status_code == 404
        again = stranger.get(f"/sessions/{copy['session_id']}/export").content
        # The run that was started there is interrupted here.
        runs = [line for line in comparable(again) if '"object":"run"' not in line]
        assert runs == [line for line in comparable(file) if '"object":"run"' not in line]


class TestMarkdown:
    HOSTILE = "```\n# not a heading\n<script>alert(1)</script>\n````\n![x](http://evil/)\n\x1b[31mred\u202e"

    def test_is_for_people(self, api: APIClient, agent: User) -> None:
        session = make_session(
            account=agent,
            title="# <b>Title</b> [x](javascript:alert(1))\n---",
            working_memory={"goal": self.HOSTILE},
        )
        said = calling("c1", name="rm`-rf", arguments='{"path": "/"}', content="Let me look.")
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 9000}"}}
        add_messages(
            {"role": "user", "content": [{"type": "text", "text": self.HOSTILE}, picture]},
            said,
            result("c1", self.HOSTILE, is_error=True),
            {"role": "user", "content": "gone"},
            session=session,
        )
        SessionManager(Actor.account(agent)).remove_message(
            session_id=session.session_id, sequence=4
        )
        answer = api.get(f"/sessions/{session.session_id}/export", {"format": "markdown"})
        assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
        text = answer.content.decode()
        assert "### 2 · assistant" in text
        assert "Let me look." in text
        assert "### 3 · tool · result of c1 · error" in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "gone" not in text
        assert len(text) < 8000
        self.assert_that_nothing_of_it_is_markup(text)

    def assert_that_nothing_of_it_is_markup(self, text: str) -> None:
        from markdown_it import MarkdownIt

        tokens = MarkdownIt("commonmark").parse(text)
        kinds = {token.type for token in tokens}
        inline = {child.type for token in tokens for child in token.children or []}
        assert "html_block" not in kinds
        assert inline <= {"text", "strong_open", "strong_close", "softbreak", "text_special"}
        headings = [
            tokens[index + 1].content
            for index, token in enumerate(tokens)
            if token.type == "heading_open"
        ]
        assert not [each for each in headings if "not a heading" in each]
        # Each value stands whole in a fence of its own.
        fenced = [token.content for token in tokens if token.type == "fence"]
        assert sum("# not a heading" in each and "````" in each for each in fenced) == 3


@pytest.mark.django_db(transaction=True)
class TestASnapshot:
    """What others commit while an export goes on is no part of it, and waits for nothing."""

    def test_is_of_one_moment(self, monkeypatch: Any) -> None:
        account = make_account("agent")
        session = make_session(account=account)
        make_messages(session=session, count=2)
        read, errors = contents._by_size, list[BaseException]()

        def write() -> None:
            try:
                make_messages(session=session, count=1)
                Message.objects.filter(session=session, sequence=2).update(role="assistant")
            except BaseException as error:  # noqa: BLE001 (the test fails with it)
                errors.append(error)
            finally:
                connection.close()

        def interrupted(*args: Any, **kwargs: Any) -> Any:
            rows = read(*args, **kwargs)
            first = next(rows, None)
            if kwargs["key"] == "run_id":
                writer = threading.Thread(target=write)
                writer.start()
                writer.join()
            return iter([] if first is None else [first, *rows])

        monkeypatch.setattr(contents, "_by_size", interrupted)
        from tests.factories import make_token

        file = export(APIClient(make_token(account=account)), session)
        assert errors == []
        lines = objects(file)
        assert (lines[1]["message_count"], lines[-1]["messages"]) == (2, 2)
        assert [line["role"] for line in lines if line["object"] == "message"] == ["user", "user"]
        session.refresh_from_db()
        assert session.message_count == 3
        assert not connection.in_atomic_block
