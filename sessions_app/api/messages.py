"""Messages: the raw conversation, appended in batches and read in pages.

The hot path. Nothing here goes through a serializer: `read_append` takes a request apart, the
service checks each message, and `representations` copies what is stored.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.http import HttpRequest
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer, extend_schema
from rest_framework.request import Request

from sessions_app.api.base import DomainView
from sessions_app.api.fields import StrictBooleanField, StrictSerializer
from sessions_app.api.message_shapes import (
    AppendedOut,
    AppendedReferencesOut,
    AppendIn,
    MessageIn,
    PoppedTurnOut,
)
from sessions_app.api.numbers import number_in_path
from sessions_app.api.query import MAX_BIGINT, MAX_TEXT, Choice, Flag, Integer, Text
from sessions_app.api.representations import (
    reference_messages,
    represent_message,
    represent_messages,
)
from sessions_app.api.response import Response
from sessions_app.api.schema import LOCATION
from sessions_app.api.shapes import MessageOut, MessagePageOut
from sessions_app.errors import InvalidRequest, pointer_token
from sessions_app.models import Message
from sessions_app.services import Appended, SessionManager
from sessions_app.services.drafts import ROLES
from sessions_app.services.idempotency import Write
from sessions_app.services.messages import draft_messages

_ENVELOPE = frozenset({"messages", "run_id", "attempt", "expected_last_sequence"})

_PREFER = OpenApiParameter(
    "Prefer",
    {"type": "string"},
    OpenApiParameter.HEADER,
    description="`return=minimal`: the answer names the messages and does not repeat them.",
)
_PREFERENCE_APPLIED = OpenApiParameter(
    "Preference-Applied", {"type": "string"}, OpenApiParameter.HEADER, response=[200, 201]
)


def read_append(body: Any) -> dict[str, Any]:
    """The arguments of `SessionManager.append`, from one message or an envelope of several.

    Raises:
        InvalidRequest: an unknown key of the envelope, or a value of the wrong type; and what
            `draft_messages` raises.
    """
    if not isinstance(body, dict):
        raise InvalidRequest.at("", "must be an object")
    given = {
        "run_id": _name(body.get("run_id"), "/run_id"),
        "attempt": _integer(body.get("attempt"), "/attempt"),
        "expected_last_sequence": _integer(
            body.get("expected_last_sequence"), "/expected_last_sequence"
        ),
    }
    if "messages" not in body:
        return {"messages": draft_messages([body], pointer=None), **given}
    if unknown := body.keys() - _ENVELOPE:
        pointers = {f"/{pointer_token(key)}": "there is no such key" for key in sorted(unknown)}
        raise InvalidRequest("The envelope has unknown keys.", pointers=pointers)
    if not isinstance(body["messages"], list):
        raise InvalidRequest.at("/messages", "must be a list")
    return {"messages": draft_messages(body["messages"], pointer="/messages"), **given}


def prefers_minimal(header: str) -> bool:
    """Whether ``Prefer`` asks for ``return=minimal`` (RFC 7240)."""
    if not header:
        return False
    preferences = header.lower().replace('"', "").replace(" ", "").split(",")
    return "return=minimal" in [preference.partition(";")[0] for preference in preferences]


def _prefers_minimal(request: HttpRequest) -> bool:
    return prefers_minimal(request.META.get("HTTP_PREFER", ""))


class MessagesView(DomainView):
    parameters = {
        "GET": [
            Integer(name="after", description="A sequence; exclusive."),
            Integer(name="before", description="A sequence; exclusive."),
            Integer(name="limit", low=1, high=1000, default=50),
            Choice(name="order", choices=["asc", "desc"], default="asc"),
            Choice(name="role", choices=ROLES),
            Text(name="type", description="`message`, or the type of provider-native items."),
            Text(name="run_id"),
            Flag(name="include_superseded", default=False),
        ]
    }
    bodies = {"POST": AppendIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="list_messages",
        summary="Read the raw history",
        description=(
            "A page ends at `limit` messages or 16 MB; go on with `after` = `last_sequence` "
            "(in descending order: `before` = `first_sequence`) while `has_more`."
        ),
        responses=MessagePageOut,
    )
    def get(self, request: Request, session_id: str) -> Response:
        given = dict(self.params)
        descending = given.pop("order") == "desc"
        page = SessionManager(self.actor).read_page(
            session_id=session_id, descending=descending, **given
        )
        return self.respond(
            {
                "data": represent_messages(page.messages),
                "first_sequence": page.first_sequence,
                "last_sequence": page.last_sequence,
                "has_more": page.has_more,
            }
        )

    @extend_schema(
        operation_id="append_messages",
        summary="Append one message or several",
        description=(
            "All or nothing. 201 when something was stored; 200 when every message was known by "
            "its `client_message_id` already."
        ),
        parameters=[_PREFER, LOCATION, _PREFERENCE_APPLIED],
        request=PolymorphicProxySerializer(
            component_name="Append",
            serializers=[MessageIn, AppendIn],
            resource_type_field_name=None,
        ),
        responses={
            (code, "application/json"): PolymorphicProxySerializer(
                component_name="Appended",
                serializers=[AppendedOut, AppendedReferencesOut],
                resource_type_field_name=None,
            )
            for code in (200, 201)
        },
    )
    def post(self, request: Request, session_id: str) -> Response:
        appended = SessionManager(self.actor).append(
            session_id=session_id, if_match=self.if_match, **self.valid
        )
        minimal = _prefers_minimal(self.http)
        self.keep = _kept(appended, minimal=minimal)
        return self._appended(appended.messages, minimal=minimal, **self.keep["facts"])

    def prepare(self, request: Request) -> None:
        if self.http.method == "POST":
            self.valid = read_append(request.data)
        else:
            super().prepare(request)

    def answer_at_once(self, request: Request, write: Write | None) -> Response | None:
        if "HTTP_IF_MATCH" in self.http.META:
            return None
        minimal = _prefers_minimal(self.http)
        appended = SessionManager(self.actor).append_plainly(
            session_id=self.kwargs["session_id"],
            write=write,
            kept=partial(_kept_of_new, len(self.valid["messages"]), minimal),
            **self.valid,
        )
        if appended is None:
            return None
        return self._appended(appended.messages, minimal=minimal, **_facts(appended))

    def rebuild(self, request: Request, kept: Any, **kwargs: Any) -> Response:
        sequences = [number for first, last in kept["ranges"] for number in range(first, last + 1)]
        messages = SessionManager(self.actor).read_messages(sequences=sequences, **kwargs)
        return self._appended(messages, minimal=kept["minimal"], **kept["facts"])

    def _appended(
        self,
        messages: Sequence[Message],
        *,
        minimal: bool,
        created_count: int,
        last_sequence: int,
        version: int,
    ) -> Response:
        body = {
            "messages": reference_messages(messages) if minimal else represent_messages(messages),
            "created_count": created_count,
            "last_sequence": last_sequence,
            "version": version,
        }
        headers = {"Preference-Applied": "return=minimal"} if minimal else {}
        if created_count:
            first = last_sequence - created_count + 1
            headers["Location"] = f"{self.http.path}/{first}"
        return self.respond(body, status=201 if created_count else 200, headers=headers)


class MessageView(DomainView):
    etags = frozenset({"DELETE"})

    @extend_schema(
        operation_id="get_message",
        summary="Read one message, whole",
        description="A removed one has `removed_at` and no content.",
        responses=MessageOut,
    )
    def get(self, request: Request, session_id: str, sequence: str) -> Response:
        message = SessionManager(self.actor).read_message(
            session_id=session_id, sequence=number_in_path(sequence)
        )
        return self.respond(represent_message(message))

    @extend_schema(
        operation_id="remove_message",
        summary="Purge a message's content",
        description="Its place stays. A message whose call has a result is refused: 409.",
        responses={204: None},
    )
    def delete(self, request: Request, session_id: str, sequence: str) -> Response:
        SessionManager(self.actor).remove_message(
            session_id=session_id, sequence=number_in_path(sequence), if_match=self.if_match
        )
        return self.respond(None, status=204)


class PopIn(StrictSerializer):
    turn = StrictBooleanField(
        required=False, help_text="Down to and including the last user message."
    )

    class Meta:
        ref_name = "Pop"


class PopView(DomainView):
    bodies = {"POST": PopIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="pop_messages",
        summary="Remove the newest message, or turn, and return it",
        description="With `turn` the answer is `{messages}`, oldest first. Nothing there: 404.",
        responses=PolymorphicProxySerializer(
            component_name="Popped",
            serializers=[MessageOut, PoppedTurnOut],
            resource_type_field_name=None,
        ),
    )
    def post(self, request: Request, session_id: str) -> Response:
        turn = self.valid.get("turn", False)
        _, popped = SessionManager(self.actor).pop_messages(
            session_id=session_id, turn=turn, if_match=self.if_match
        )
        shapes = [represent_message(message) for message in popped]
        return self.respond({"messages": shapes} if turn else shapes[0])


def _kept(appended: Appended, *, minimal: bool) -> dict[str, Any]:
    """What the answer is made from again: sequences, never the messages themselves."""
    ranges: list[list[int]] = []
    for message in appended.messages:
        if ranges and message.sequence == ranges[-1][1] + 1:
            ranges[-1][1] = message.sequence
        else:
            ranges.append([message.sequence, message.sequence])
    return {"ranges": ranges, "minimal": minimal, "facts": _facts(appended)}


def _facts(appended: Appended) -> dict[str, int]:
    return {
        "created_count": appended.created_count,
        "last_sequence": appended.last_sequence,
        "version": appended.version,
    }


def _kept_of_new(count: int, minimal: bool, first: Any, last: Any, version: Any) -> str:
    """`_kept` where all are new, as text: each figure may be what stands for it in a format."""
    facts = f'{{"created_count":{count},"last_sequence":{last},"version":{version}}}'
    return f'{{"ranges":[[{first},{last}]],"minimal":{str(minimal).lower()},"facts":{facts}}}'


def _name(value: Any, pointer: str) -> str | None:
    if value is not None and (not isinstance(value, str) or len(value) > MAX_TEXT):
        raise InvalidRequest.at(pointer, f"must be a string of at most {MAX_TEXT} characters")
    return value


def _integer(value: Any, pointer: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_BIGINT:
        raise InvalidRequest.at(pointer, f"must be an integer from 0 to {MAX_BIGINT}")
    return value
