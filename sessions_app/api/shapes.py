"""The OpenAPI schema of what `representations` answers; nothing here ever runs on data."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from sessions_app.api.fields import (
    AnyObjectSerializer,
    InstantField,
    JSONObjectField,
    JSONValueField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
)
from sessions_app.models.search import SearchKind
from sessions_app.services.drafts import ROLES
from sessions_app.services.drafts import STATUSES as MESSAGE_STATUSES
from sessions_app.states import ActorType, SessionStatus, Subject, ToolCallStatus


def constant(value: str) -> serializers.Field:
    """The ``object`` member, which names the kind."""

    @extend_schema_field({"type": "string", "const": value})
    class Constant(StrictCharField):
        pass

    return Constant()


def content_field(**kwargs: Any) -> serializers.Field:
    """A message's content: text, nothing, or parts of any kind."""

    @extend_schema_field(
        {
            "type": ["string", "array"],  # or null, which the field adds
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"type": "string"}},
                "additionalProperties": {},
            },
        }
    )
    class Content(JSONValueField):
        pass

    return Content(**kwargs)


def text(*, null: bool = False) -> StrictCharField:
    return StrictCharField(allow_null=null)


def texts() -> serializers.ListField:
    return serializers.ListField(child=StrictCharField())


def count(*, null: bool = False) -> StrictIntegerField:
    return StrictIntegerField(min_value=0, allow_null=null)


def instant(*, null: bool = False) -> InstantField:
    return InstantField(allow_null=null)


@extend_schema_serializer(component_name="Usage")
class UsageOut(serializers.Serializer):
    input_tokens = count()
    output_tokens = count()
    cached_input_tokens = count()
    reasoning_tokens = count()
    cost_usd = StrictCharField(help_text="Dollars, as a decimal number.")


@extend_schema_serializer(component_name="Actor")
class ActorOut(serializers.Serializer):
    type = StrictChoiceField(choices=ActorType.values)
    id = StrictCharField(help_text="The user name of the account or operator.")


@extend_schema_serializer(component_name="WorkingMemoryDocument")
class MemoryDocumentOut(serializers.Serializer):
    goal = text()
    plan = texts()
    completed = texts()
    errors = texts()  # type: ignore[assignment]
    important_files = texts()
    next_action = text()
    extra = JSONObjectField()


@extend_schema_serializer(component_name="WorkingMemory")
class MemoryOut(MemoryDocumentOut):
    object = constant("working_memory")
    session_id = text()
    version = count()


@extend_schema_serializer(component_name="WorkingMemoryRevisionListed")
class RevisionListedOut(serializers.Serializer):
    object = constant("working_memory_revision")
    session_id = text()
    version = count()
    run_id = text(null=True)
    sequence = StrictIntegerField(min_value=0, help_text="The last message when it was written.")
    actor = ActorOut()
    session_version = count()
    created_at = instant()


@extend_schema_serializer(component_name="WorkingMemoryRevision")
class RevisionOut(RevisionListedOut):
    working_memory = MemoryDocumentOut()


@extend_schema_serializer(component_name="SessionListed")
class SessionListedOut(serializers.Serializer):
    object = constant("session")
    session_id = text()
    external_id = text(null=True)
    agent_id = text(null=True)
    user_id = text(null=True)
    title = text(null=True)
    status = StrictChoiceField(
        choices=SessionStatus.values, help_text="Of this moment: a deadline needs no sweep."
    )
    metadata = JSONObjectField()
    working_memory_version = count()
    version = count()
    last_sequence = count()
    message_count = count()
    tool_call_count = count()
    run_count = count()
    open_tool_call_count = count()
    active_run_id = text(null=True)
    usage = UsageOut()
    idle_timeout_seconds = count(null=True)
    expires_at = instant(null=True)
    created_at = instant()
    updated_at = instant()
    last_activity_at = instant()
    closed_at = instant(null=True)
    expired_at = instant(null=True)
    deleted_at = instant(null=True)
    parent_session_id = text(null=True)
    forked_at_sequence = count(null=True)
    imported_from = text(null=True)


@extend_schema_serializer(component_name="Session")
class SessionOut(SessionListedOut):
    working_memory = MemoryDocumentOut()
    open_tool_calls = serializers.ListField(
        child=StrictCharField(), help_text="The ids of the first hundred open tool calls."
    )


@extend_schema_serializer(component_name="SessionMoved")
class SessionMovedOut(SessionOut):
    changed = StrictBooleanField(help_text="False: it had this status already.")


@extend_schema_serializer(component_name="SessionRewound")
class SessionRewoundOut(SessionOut):
    changed = StrictBooleanField(help_text="False: nothing came after that message.")
    to_sequence = StrictIntegerField(
        min_value=0, help_text="The newest message that is left; 0: none."
    )


@extend_schema_serializer(component_name="Message")
class MessageOut(AnyObjectSerializer):
    """What was sent, key for key, and what the server gave it."""

    object = constant("message")
    message_id = text()
    session_id = text()
    sequence = StrictIntegerField(min_value=1)
    type = StrictCharField(
        help_text="`message`, `compaction`, or the type of a provider-native item."
    )
    role = StrictChoiceField(choices=ROLES, allow_null=True)
    status = StrictChoiceField(choices=MESSAGE_STATUSES)
    content = content_field()
    run_id = text(null=True)
    session_version = count()
    created_at = instant()
    client_created_at = InstantField(
        required=False, help_text="The `created_at` that the client gave."
    )
    removed_at = InstantField(required=False, help_text="Its content was purged.")
    superseded_at = InstantField(required=False, help_text="A rewind took it out of the history.")
    through_sequence = JSONValueField(
        required=False, help_text="Of a compaction: the last message that it stands for."
    )


@extend_schema_serializer(component_name="MessagePage")
class MessagePageOut(serializers.Serializer):
    data = MessageOut(many=True)  # type: ignore[assignment]
    first_sequence = StrictIntegerField(allow_null=True, help_text="The lowest of the page.")
    last_sequence = StrictIntegerField(allow_null=True, help_text="The highest of the page.")
    has_more = StrictBooleanField()


@extend_schema_serializer(component_name="SnippetSegment")
class SegmentOut(serializers.Serializer):
    text = text()
    marked = StrictBooleanField(help_text="It is what was looked for.")


@extend_schema_serializer(component_name="SearchHit")
class HitOut(serializers.Serializer):
    object = constant("search_hit")
    kind = StrictChoiceField(
        choices=SearchKind.values,
        help_text="`session`: its title or external id; `tool_call`: one recorded by itself.",
    )
    session_id = text()
    title = StrictCharField(allow_null=True, help_text="The session's.")
    message_id = text(null=True)
    sequence = count(null=True)
    role = StrictChoiceField(choices=ROLES, allow_null=True)
    tool_call_id = StrictCharField(allow_null=True, help_text="Ours (`call_…`).")
    snippet = SegmentOut(many=True, help_text="A piece of the text around the first mark.")
    created_at = instant()


@extend_schema_serializer(component_name="ToolCallError")
class ToolCallErrorOut(serializers.Serializer):
    type = text(null=True)
    message = text(null=True)


@extend_schema_serializer(component_name="ToolCall")
class ToolCallOut(serializers.Serializer):
    object = constant("tool_call")
    id = text()
    session_id = text()
    run_id = text(null=True)
    tool_call_id = StrictCharField(
        allow_null=True, help_text="The provider's: it may be used again, also in one session."
    )
    name = text()
    arguments = JSONValueField(help_text="As they were sent: of chat messages a string.")
    status = StrictChoiceField(choices=ToolCallStatus.values)
    result = JSONValueField()
    error = ToolCallErrorOut(allow_null=True)
    message_sequence = count(null=True)
    result_sequence = count(null=True)
    started_at = instant(null=True)
    finished_at = instant(null=True)
    duration_ms = count(null=True)
    session_version = count()
    superseded_at = InstantField(
        required=False, help_text="A rewind took the message that made it out of the history."
    )


@extend_schema_serializer(component_name="ToolCallSettled")
class ToolCallSettledOut(ToolCallOut):
    changed = StrictBooleanField(help_text="False: it was closed already.")


@extend_schema_serializer(component_name="Event")
class EventOut(serializers.Serializer):
    object = constant("event")
    event_id = text()
    session_id = text()
    sequence = StrictIntegerField(min_value=1)
    subject = StrictChoiceField(choices=Subject.values)
    subject_id = text()
    from_status = text(null=True)
    to_status = text(null=True)
    actor = ActorOut()
    reason = text(null=True)
    session_version = count()
    created_at = instant()
