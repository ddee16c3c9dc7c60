"""Input as JSON says it: ``"5"`` is no integer, ``1`` no boolean, and no key goes unnoticed."""

from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Any, NoReturn, cast

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.settings import api_settings

from sessions_app.api.query import MAX_BIGINT, MAX_TEXT
from sessions_app.timestamps import parse_rfc3339

# Of a hundred thousand unknown keys, to name each would take seconds.
_MOST_UNKNOWN = 100


def _refuse(reason: str, cause: Exception | None = None) -> NoReturn:
    raise serializers.ValidationError(reason) from cause


class StrictCharField(serializers.CharField):
    """A JSON string, kept to the last space; "" and (with ``allow_null``) null are values."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_blank": True, "trim_whitespace": False} | kwargs)

    def to_internal_value(self, data: Any) -> str:
        return data if isinstance(data, str) else _refuse("a string is expected")


def nullable_name(longest: int = MAX_TEXT, **kwargs: Any) -> StrictCharField:
    """A name that may be left out or null."""
    return StrictCharField(required=False, allow_null=True, max_length=longest, **kwargs)


class StrictIntegerField(serializers.IntegerField):
    """A JSON integer that every database can hold; neither 5.0 nor true."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"min_value": -MAX_BIGINT - 1, "max_value": MAX_BIGINT} | kwargs)

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            _refuse("an integer is expected")
        return data


class StrictBooleanField(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        return data if isinstance(data, bool) else _refuse("true or false is expected")


class StrictChoiceField(serializers.ChoiceField):
    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            _refuse(f"one of {', '.join(map(str, self.choices))} is expected")
        return data


@extend_schema_field(OpenApiTypes.DATETIME)
class InstantField(serializers.Field):
    """An RFC 3339 time; without an offset it would mean another moment to each reader."""

    def to_internal_value(self, data: Any) -> datetime:
        try:
            return parse_rfc3339(data if isinstance(data, str) else "")
        except ValueError as error:
            _refuse(f"{error}, such as 2026-01-31T12:00:00Z", error)

    def to_representation(self, value: Any) -> Any:
        return value


# Null comes in by ``allow_null``. An empty schema would be "anything or null" with it, and null
# would match both sides of that ``oneOf``, which allows one match only.
@extend_schema_field({"type": ["array", "boolean", "number", "object", "string"]})
class JSONValueField(serializers.Field):
    """Any JSON value, as it was parsed; null is one of them."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_null": True} | kwargs)

    def to_internal_value(self, data: Any) -> Any:
        return data

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(OpenApiTypes.OBJECT)
class JSONObjectField(JSONValueField):
    """Any JSON object."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_null": False} | kwargs)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return data if isinstance(data, dict) else _refuse("an object is expected")


class StrictSerializer(serializers.Serializer):
    """An object with these keys and no others: a misspelt one would be an ignored wish."""

    default_error_messages = {"invalid": "an object is expected"}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        wrong: dict[Any, Any] = {}
        valid: dict[str, Any] = {}
        try:
            valid = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if not isinstance(data, Mapping):
                raise
            wrong.update(cast("dict[str, Any]", error.detail))
        unknown = islice((key for key in data if key not in self.fields), _MOST_UNKNOWN)
        if wrong := dict.fromkeys(unknown, "there is no such key") | wrong:
            raise serializers.ValidationError(wrong)
        return valid


class AnyObjectSerializer(serializers.Serializer):
    """An object whose keys the service knows, such as a message; taken as it was sent."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return object_as_sent(data)


def object_as_sent(data: Any) -> dict[str, Any]:
    """The object, for a serializer that leaves the rest to a service."""
    if not isinstance(data, dict):
        # Under this name: a serializer's refusal must be a mapping, or DRF fails on it.
        reason = {api_settings.NON_FIELD_ERRORS_KEY: ["an object is expected"]}
        raise serializers.ValidationError(reason)
    return data


class _ClosedObject(OpenApiSerializerExtension):
    target_class = StrictSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**schema, "additionalProperties": False}


class _OpenObject(OpenApiSerializerExtension):
    target_class = AnyObjectSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {"type": "object", **schema, "additionalProperties": {}}
