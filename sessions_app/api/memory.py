"""Working memory: the current document, and every earlier one."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from sessions_app.api.base import DomainView
from sessions_app.api.fields import (
    JSONObjectField,
    JSONValueField,
    StrictCharField,
    StrictSerializer,
    object_as_sent,
)
from sessions_app.api.numbers import number_in_path
from sessions_app.api.query import Integer, Text
from sessions_app.api.representations import (
    is_settled,
    represent_memory,
    represent_revision,
)
from sessions_app.api.response import Response
from sessions_app.api.schema import ETAG
from sessions_app.api.shapes import MemoryOut, RevisionListedOut, RevisionOut
from sessions_app.jsontext import JSONText
from sessions_app.models import Session
from sessions_app.services import SessionManager

RUN = [
    Text(name="run_id", description="The run that writes; its lease is renewed."),
    Integer(name="attempt", description="The run's attempt: an older one is refused."),
]

# What a read adds to the document: ignored, so that what was read can be sent back.
_SERVER_OWNED = frozenset({"object", "session_id", "version"})


def text() -> StrictCharField:
    return StrictCharField(required=False, allow_null=True)


def texts() -> serializers.ListField:
    return serializers.ListField(child=StrictCharField(), required=False, allow_null=True)


class MemoryDocumentIn(StrictSerializer):
    """Described here, judged by the service: by the same words at every door."""

    goal = text()
    plan = texts()
    completed = texts()
    errors = texts()  # type: ignore[assignment]
    important_files = texts()
    next_action = text()
    extra = JSONObjectField(required=False, allow_null=True, help_text="Keys of your own.")

    class Meta:
        ref_name = "WorkingMemoryDocument"

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return object_as_sent(data)


class MemoryIn(MemoryDocumentIn):
    """A document as it was read may be sent back."""

    object = JSONValueField(required=False, help_text="Ignored.")
    session_id = JSONValueField(required=False, help_text="Ignored.")
    version = JSONValueField(required=False, help_text="Ignored: `If-Match` compares.")

    class Meta:
        ref_name = "WorkingMemory"

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        document = super().to_internal_value(data)
        return {key: value for key, value in document.items() if key not in _SERVER_OWNED}


class MemoryView(DomainView):
    parameters = {"PUT": RUN, "PATCH": RUN}
    bodies = {"PUT": MemoryIn, "PATCH": MemoryIn}
    etags = frozenset({"GET", "PUT", "PATCH"})

    @extend_schema(
        operation_id="get_working_memory",
        summary="Read the working memory",
        parameters=[ETAG],
        responses={200: MemoryOut, 304: None},
    )
    def get(self, request: Request, session_id: str) -> Response:
        session, memory = SessionManager(self.actor).read_memory(session_id=session_id)
        version = session.working_memory_version
        if self.holds(version, settled=is_settled(session, timezone.now())):
            return self.not_modified(version)
        return self._answer_with(session_id, version, memory)

    @extend_schema(
        operation_id="replace_working_memory",
        summary="Replace the working memory",
        description="Absent and null keys become empty.",
        parameters=[ETAG],
        responses=MemoryOut,
    )
    def put(self, request: Request, session_id: str) -> Response:
        return self._written(
            *SessionManager(self.actor).replace_memory(
                session_id=session_id,
                document=self.valid,
                if_match=self.if_match,
                **self.params,
            )
        )

    @extend_schema(
        operation_id="update_working_memory",
        summary="Merge into the working memory",
        description="A JSON merge patch: lists are replaced, null resets, `extra` merges.",
        parameters=[ETAG],
        responses=MemoryOut,
    )
    def patch(self, request: Request, session_id: str) -> Response:
        return self._written(
            *SessionManager(self.actor).patch_memory(
                session_id=session_id,
                patch=self.valid,
                if_match=self.if_match,
                **self.params,
            )
        )

    def rebuild(self, request: Request, kept: Any, **kwargs: Any) -> Response:
        revision = SessionManager(self.actor).memory_revision(version=kept, **kwargs)
        return self._answer_with(revision.session_id, revision.version, revision.memory)

    def _written(self, session: Session, memory: JSONText) -> Response:
        # A revision never changes, so that its number is enough to answer again.
        self.keep = session.working_memory_version
        return self._answer_with(session.session_id, session.working_memory_version, memory)

    def _answer_with(self, session_id: str, version: int, memory: JSONText) -> Response:
        return self.respond(represent_memory(session_id, version, memory), version=version)


class RevisionsView(DomainView):
    paginated = True

    @extend_schema(
        operation_id="list_working_memory_revisions",
        summary="List revisions, newest first",
        responses=RevisionListedOut(many=True),
    )
    def get(self, request: Request, session_id: str) -> Response:
        revisions = SessionManager(self.actor).memory_revisions(session_id=session_id)
        return self.page(revisions.defer("memory").order_by("-version"), represent_revision)


class RevisionView(DomainView):
    @extend_schema(
        operation_id="get_working_memory_revision",
        summary="Read the working memory of an earlier version",
        responses=RevisionOut,
    )
    def get(self, request: Request, session_id: str, version: str) -> Response:
        revision = SessionManager(self.actor).memory_revision(
            session_id=session_id, version=number_in_path(version)
        )
        return self.respond(represent_revision(revision) | {"working_memory": revision.memory})
