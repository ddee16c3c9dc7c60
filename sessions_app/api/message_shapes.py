"""The OpenAPI schema of what appends take and answer; the service judges each message."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from sessions_app.api.fields import (
    AnyObjectSerializer,
    JSONObjectField,
    JSONValueField,
    StrictBooleanField,
    StrictChoiceField,
    StrictIntegerField,
    StrictSerializer,
    nullable_name,
)
from sessions_app.api.shapes import MessageOut, content_field, count, text
from sessions_app.services.drafts import MAX_ITEM_TYPE, ROLES
from sessions_app.services.drafts import STATUSES as MESSAGE_STATUSES
from sessions_app.services.pairing import MAX_TOOL_CALL_ID


@extend_schema_field(
    {
        "type": "array",  # or null, which the field adds
        "items": {
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"type": "string", "maxLength": MAX_TOOL_CALL_ID},
                "type": {"type": "string", "description": "`function`, or another kind."},
                "function": {
                    "type": "object",
                    "required": ["name", "arguments"],
                    "properties": {
                        "name": {"type": "string", "maxLength": 255},
                        "arguments": {
                            "type": "string",
                            "description": "As the model wrote it, JSON or not.",
                        },
                    },
                },
            },
        },
    }
)
class ToolCallsField(JSONValueField):
    """What an assistant message asks for."""


@extend_schema_field(
    {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string", "maxLength": MAX_ITEM_TYPE}},
        "additionalProperties": {},
    }
)
class ItemField(JSONValueField):
    """What a provider's API calls an item."""


@extend_schema_serializer(component_name="Message")
class MessageIn(AnyObjectSerializer):
    """One message. Other keys are kept and given back; names that the server gives are ignored."""

    role = StrictChoiceField(
        choices=ROLES, required=False, allow_null=True, help_text="Needed unless `item` is given."
    )
    content = content_field(required=False)
    tool_calls = ToolCallsField(required=False)
    tool_call_id = nullable_name(MAX_TOOL_CALL_ID, help_text="What a `tool` message answers.")
    is_error = StrictBooleanField(required=False, allow_null=True)
    name = nullable_name()
    status = StrictChoiceField(
        choices=MESSAGE_STATUSES,
        required=False,
        help_text="`incomplete`: partial output, kept in context and marked.",
    )
    client_message_id = nullable_name(
        help_text="Unique in the session: the same again answers the stored message."
    )
    usage = JSONObjectField(
        required=False,
        allow_null=True,
        help_text="`input_tokens`, `output_tokens`, `cached_input_tokens`, `reasoning_tokens`, "
        "`cost_usd`: added to the session's and the run's.",
    )
    model = nullable_name()
    metadata = JSONObjectField(required=False, allow_null=True)
    created_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Kept as `client_created_at`."
    )
    item = ItemField(required=False, help_text="A provider-native item, whole.")
    run_id = nullable_name(help_text="Of a message that is the whole body; see the envelope.")
    attempt = StrictIntegerField(required=False, allow_null=True, min_value=0)
    expected_last_sequence = StrictIntegerField(required=False, allow_null=True, min_value=0)


class _MessageInSchema(OpenApiSerializerExtension):
    target_class = MessageIn
    priority = 1

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {
            **schema,
            "additionalProperties": {},
            "anyOf": [
                {"required": ["role"], "properties": {"role": {"enum": list(ROLES)}}},
                {"required": ["item"], "properties": {"item": {"type": "object"}}},
            ],
            "not": {"required": ["messages"]},
        }


@extend_schema_serializer(component_name="MessageBatch")
class AppendIn(StrictSerializer):
    """Several messages. What stands here holds for all of them."""

    messages = MessageIn(many=True)
    run_id = nullable_name(help_text="The run that writes; its lease is renewed.")
    attempt = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        help_text="The run's attempt: an older one is refused.",
    )
    expected_last_sequence = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        help_text="Another one: 409 `sequence_mismatch`, and nothing is stored.",
    )


class _AppendInSchema(OpenApiSerializerExtension):
    target_class = AppendIn
    priority = 1

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        schema["properties"]["messages"]["minItems"] = 1
        return {**schema, "additionalProperties": False}


@extend_schema_serializer(component_name="MessageReference")
class ReferenceOut(StrictSerializer):
    message_id = text()
    sequence = StrictIntegerField(min_value=1)


@extend_schema_serializer(component_name="AppendedMessages")
class AppendedOut(serializers.Serializer):
    messages = MessageOut(many=True)
    created_count = count()
    last_sequence = count()
    version = count()


@extend_schema_serializer(component_name="AppendedReferences")
class AppendedReferencesOut(serializers.Serializer):
    """With `Prefer: return=minimal`."""

    messages = ReferenceOut(many=True)
    created_count = count()
    last_sequence = count()
    version = count()


@extend_schema_serializer(component_name="PoppedTurn")
class PoppedTurnOut(serializers.Serializer):
    messages = MessageOut(many=True)
