"""The OpenAPI schema of what `representations` answers; nothing here ever runs on data."""

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from runs_app.states import RunStatus
from sessions_app.api.fields import (
    InstantField,
    JSONObjectField,
    JSONValueField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
)
from sessions_app.api.shapes import (
    MemoryDocumentOut,
    SessionOut,
    ToolCallOut,
    UsageOut,
    constant,
    count,
    instant,
    text,
)
from sessions_app.states import SessionStatus


@extend_schema_serializer(component_name="RunError")
class RunErrorOut(serializers.Serializer):
    type = text()
    message = text()
    retryable = StrictBooleanField(required=False)


@extend_schema_serializer(component_name="Run")
class RunOut(serializers.Serializer):
    object = constant("run")
    run_id = text()
    session_id = text()
    agent_id = text(null=True)
    model = text(null=True)
    status = StrictChoiceField(
        choices=RunStatus.values,
        help_text="Of this moment: past its deadline a run is `INTERRUPTED`.",
    )
    attempt = StrictIntegerField(min_value=0, help_text="0 until the first start.")
    input = JSONValueField()
    output = JSONValueField()
    error = RunErrorOut(allow_null=True)
    usage = UsageOut()
    metadata = JSONObjectField()
    retry_of = text(null=True)
    parent_run_id = text(null=True)
    first_sequence = StrictIntegerField(
        min_value=1, allow_null=True, help_text="Of the first message that names the run."
    )
    last_sequence = StrictIntegerField(min_value=1, allow_null=True)
    created_at = instant()
    started_at = InstantField(allow_null=True, help_text="Of the first attempt.")
    ended_at = InstantField(
        allow_null=True, help_text="Of a run that lapsed: its deadline. A resume clears it."
    )
    duration_ms = StrictIntegerField(
        min_value=0, allow_null=True, help_text="From `started_at` to `ended_at`."
    )
    heartbeat_at = InstantField(allow_null=True, help_text="The last sign of life.")
    lease_expires_at = InstantField(
        allow_null=True, help_text="Without a sign of life until then it is `INTERRUPTED`."
    )
    wait_reason = text(null=True)
    cancel_reason = text(null=True)
    session_version = count()


@extend_schema_serializer(component_name="RunHeartbeat")
class RunHeartbeatOut(RunOut):
    cancel_requested = StrictBooleanField(help_text="True: the run was cancelled; stop working.")


@extend_schema_serializer(component_name="Window")
class WindowOut(serializers.Serializer):
    """From `first_sequence` to `last_sequence` no message is missing; before that the packet
    holds only what opens the session, and calls whose results came late."""

    first_sequence = StrictIntegerField(
        min_value=1,
        allow_null=True,
        help_text="Read what is before it from the history; null: not even the newest message "
        "fits into `last_n` with those that it must stand with.",
    )
    last_sequence = StrictIntegerField(min_value=1, allow_null=True)
    omitted_before = StrictIntegerField(
        min_value=0, help_text="How many messages of the history are not in the packet."
    )
    estimated_tokens = StrictIntegerField(
        min_value=0,
        help_text="Of `messages`: the bytes of their JSON as it is stored, divided by four, or as "
        "the server's tokenizer counts, if it has one.",
    )


# What has a sequence is a message as it is stored; all else is as its API calls it.
@extend_schema_field(
    {
        "type": "array",
        "items": {
            "anyOf": [
                {"$ref": "#/components/schemas/Message"},
                {
                    "type": "object",
                    "description": "With a `format`: a message or an item of that API.",
                    "not": {"required": ["sequence"]},
                    "properties": {"synthetic": {"type": "boolean", "const": True}},
                    "additionalProperties": {},
                },
            ]
        },
    }
)
class MessagesField(serializers.ListField):
    pass


@extend_schema_serializer(component_name="Context")
class ContextOut(serializers.Serializer):
    session = SessionOut()
    working_memory = MemoryDocumentOut()
    working_memory_version = count()
    system = StrictCharField(
        required=False,
        help_text="With `format=anthropic`: all system and developer messages of the window.",
    )
    messages = MessagesField(
        help_text="Oldest first. No tool result stands without its call, and no answered call "
        "without its result; with a `format`, no call at all.",
    )
    window = WindowOut()
    open_tool_calls = ToolCallOut(many=True, help_text="The oldest 100.")
    tool_history = ToolCallOut(many=True, help_text="The newest 20, newest first.")
    runs = RunOut(many=True, help_text="The newest 10, newest first.")
    active_run = RunOut(allow_null=True, help_text="The started top-level run.")
    interrupted_run = RunOut(
        allow_null=True,
        help_text="The newest top-level run that was cut off; it can be resumed.",
    )
    truncated = StrictBooleanField(
        help_text="True: messages, runs or tool calls were left out for the packet's size."
    )
    resumed_from = StrictChoiceField(
        choices=[SessionStatus.CLOSED.value, SessionStatus.EXPIRED.value],
        allow_null=True,
        help_text="What the session was before this resume; null when nothing changed.",
    )


@extend_schema_serializer(component_name="ResumePacket")
class ResumePacketOut(ContextOut):
    changed = StrictBooleanField(help_text="False: the session was `ACTIVE` already.")
