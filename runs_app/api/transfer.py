"""A session as a file, and a file as a session."""

from collections.abc import Callable, Iterator
from typing import Any

from django.conf import settings
from django.http import FileResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from runs_app.api.markdown import markdown
from runs_app.services import RunManager
from runs_app.services.transfer import Contents, Staged, ndjson, stage
from sessions_app.api.query import Choice
from sessions_app.api.response import Response
from sessions_app.api.schema import ETAG, LOCATION
from sessions_app.api.sessions import SessionDoor
from sessions_app.api.shapes import SessionOut
from sessions_app.api.uploads import Upload, new_file, receive, room_on_disk
from sessions_app.services import SessionManager
from sessions_app.services.snapshot import read_snapshot

NDJSON, MARKDOWN = "application/x-ndjson", "text/markdown"

_FORMATS: dict[str, tuple[Callable[[Contents], Iterator[bytes]], str, str]] = {
    "ndjson": (ndjson, NDJSON, "ndjson"),
    "markdown": (markdown, f"{MARKDOWN}; charset=utf-8", "md"),
}


class Download(FileResponse):
    """A file that is sent in pieces of 64 KB, as fast as its reader takes them."""

    block_size = 1 << 16


class ExportView(SessionDoor):
    parameters = {
        "GET": [
            Choice(
                name="format",
                choices=list(_FORMATS),
                default="ndjson",
                description="`markdown`: for people; it cannot be imported.",
            )
        ]
    }

    @extend_schema(
        operation_id="export_session",
        summary="Export a session as a file",
        description="Everything that the session holds, of one moment, line by line: what "
        "`POST /sessions/import` takes. The last line counts the others.",
        responses={
            (200, NDJSON): OpenApiTypes.STR,
            (200, MARKDOWN): OpenApiTypes.STR,
        },
    )
    def get(self, request: Request, session_id: str) -> Any:
        """Written to disk as fast as the database reads, and sent afterwards: however slowly a
        client takes it, no snapshot and no connection waits for it."""
        write, media_type, suffix = _FORMATS[self.params["format"]]
        file = new_file()
        try:
            with room_on_disk(), read_snapshot():
                session = SessionManager(self.actor).get(session_id=session_id)
                for piece in write(Contents(session, timezone.now())):
                    file.write(piece)  # `writelines` would keep all of it in memory
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return Download(
            file,
            as_attachment=True,
            filename=f"{session.session_id}.{suffix}",
            content_type=media_type,
            headers={"X-Content-Type-Options": "nosniff"},
        )


class ImportView(SessionDoor):
    takes_file = NDJSON
    upload: Upload | None = None
    staged: Staged | None = None

    @extend_schema(
        operation_id="import_session",
        summary="Import a session from a file",
        description="What `GET /sessions/{session_id}/export` wrote becomes a new session of the "
        "account: whole, or not at all. A refusal names the `line`. Runs that were started become "
        "`INTERRUPTED`.",
        parameters=[LOCATION, ETAG],
        request={NDJSON: OpenApiTypes.STR},
        responses={201: SessionOut},
    )
    def post(self, request: Request) -> Response:
        assert self.staged is not None  # noqa: S101 (`prepare` comes first)
        session = RunManager(self.actor).restore(self.staged)
        self.keep_session(session.session_id)
        response = self.answer(session, status=201)
        folder = self.http.path.removesuffix("/import")
        response.headers["Location"] = f"{folder}/{session.session_id}"
        return response

    def prepare(self, request: Request) -> None:
        with room_on_disk():
            self.upload = receive(request, media_type=NDJSON, limit=settings.MAX_IMPORT_BYTES)
            self.staged = stage(self.upload.file, now=timezone.now())

    def canonical_body(self, request: Request) -> Any:
        return self.upload and self.upload.digest

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().dispatch(request, *args, **kwargs)
        finally:
            if self.upload is not None:
                self.upload.file.close()
            if self.staged is not None:
                self.staged.close()
