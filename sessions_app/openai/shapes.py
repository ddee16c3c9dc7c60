"""What comes in and goes out, for the OpenAPI document and, of bodies, for the check."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from sessions_app.api.fields import (
    AnyObjectSerializer,
    JSONValueField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from sessions_app.api.shapes import constant
from sessions_app.services.items.ids import MAX_ITEM_ID

MAX_PAIRS, MAX_KEY, MAX_VALUE = 16, 64, 512

_ITEM = {"type": "object", "additionalProperties": {}}


@extend_schema_field(
    {
        "type": "object",
        "maxProperties": MAX_PAIRS,
        "propertyNames": {"maxLength": MAX_KEY},
        "additionalProperties": {"type": "string", "maxLength": MAX_VALUE},
    }
)
class MetadataField(serializers.Field):
    """Up to 16 pairs of short strings."""

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if not isinstance(data, dict) or len(data) > MAX_PAIRS:
            raise serializers.ValidationError(f"an object of at most {MAX_PAIRS} keys is expected")
        for key, value in data.items():
            if len(key) > MAX_KEY or not isinstance(value, str) or len(value) > MAX_VALUE:
                raise serializers.ValidationError(
                    f"keys have at most {MAX_KEY} characters, and values, which are strings, "
                    f"{MAX_VALUE}"
                )
        return data


@extend_schema_field({"type": "array", "items": _ITEM})
class ItemsField(JSONValueField):
    """Items, which the service checks."""


@extend_schema_field({"type": "array", "items": _ITEM, "minItems": 1})
class SomeItemsField(ItemsField):
    pass


class NewConversationIn(StrictSerializer):
    items = ItemsField(required=False)
    metadata = MetadataField(required=False, allow_null=True)

    class Meta:
        ref_name = "NewConversation"


class ConversationChangesIn(StrictSerializer):
    metadata = MetadataField(allow_null=True)

    class Meta:
        ref_name = "ConversationChanges"


class NewItemsIn(StrictSerializer):
    items = SomeItemsField(allow_null=False)

    class Meta:
        ref_name = "NewItems"


@extend_schema_field({"type": "object", "additionalProperties": {}})
class _AnyObject(JSONValueField):
    pass


@extend_schema_serializer(component_name="ConversationItem")
class ItemOut(AnyObjectSerializer):
    """An item of any type."""

    id = StrictCharField(max_length=MAX_ITEM_ID)
    type = StrictCharField()


@extend_schema_serializer(component_name="Conversation")
class ConversationOut(serializers.Serializer):
    id = StrictCharField()
    object = constant("conversation")
    created_at = StrictIntegerField(min_value=0)
    metadata = _AnyObject(allow_null=False)


@extend_schema_serializer(component_name="DeletedConversation")
class DeletedOut(serializers.Serializer):
    id = StrictCharField()
    object = constant("conversation.deleted")
    deleted = StrictBooleanField()


class _PageOut(serializers.Serializer):
    object = constant("list")
    first_id = StrictCharField(allow_null=True)
    last_id = StrictCharField(allow_null=True)
    has_more = StrictBooleanField()


@extend_schema_serializer(component_name="ConversationItemList", many=False)
class ItemsOut(_PageOut):
    data = ItemOut(many=True)  # type: ignore[assignment]


@extend_schema_serializer(component_name="ConversationList", many=False)
class ConversationsOut(_PageOut):
    data = ConversationOut(many=True)  # type: ignore[assignment]
