"""Input as JSON says it: ``"5"`` is no integer, ``1`` no boolean, and no key goes unnoticed."""

import sys
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any, NoReturn

from django.core.validators import MaxLengthValidator, ProhibitNullCharactersValidator
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty
from rest_framework.settings import api_settings
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from sessions_app.api.query import MAX_BIGINT, MAX_TEXT
from sessions_app.timestamps import parse_rfc3339

# Of a hundred thousand unknown keys, to name each would take seconds.
_MOST_UNKNOWN = 100
_MOOT = (ProhibitNullCharactersValidator, ProhibitSurrogateCharactersValidator)


def _refuse(reason: str, cause: Exception | None = None) -> NoReturn:
    raise serializers.ValidationError(reason) from cause


class StrictCharField(serializers.CharField):
    """A JSON string, kept to the last space; "" and (with ``allow_null``) null are values."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_blank": True, "trim_whitespace": False} | kwargs)
        # What DRF would look for in it, `sessions_app.jsontext` lets no body hold.
        self.validators = [each for each in self.validators if not isinstance(each, _MOOT)]
        limits = [e.limit_value for e in self.validators if isinstance(e, MaxLengthValidator)]
        is_plain = len(limits) == len(self.validators)
        self._longest = min(limits, default=sys.maxsize) if is_plain else 0

    def run_validation(self, data: Any = empty) -> Any:
        """DRF's, but for what none of its steps would change or refuse, as most strings are."""
        if type(data) is str and 1 <= len(data) <= self._longest:
            return data
        return super().run_validation(data)

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
    """An object with these keys and no others: a misspelt one would be an ignored wish.

    Its fields have no default, no other source and no method of the serializer that checks them,
    so that only those which were sent are looked at.
    """

    default_error_messages = {"invalid": "an object is expected"}

    def run_validation(self, data: Any = empty) -> Any:
        """DRF's, without what none of these has: validators, defaults, a method `validate`."""
        is_empty, value = self.validate_empty_values(data)
        return value if is_empty else self.to_internal_value(value)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            reason = {api_settings.NON_FIELD_ERRORS_KEY: [self.error_messages["invalid"]]}
            raise serializers.ValidationError(reason)
        wrong: dict[Any, Any] = {}
        valid: dict[str, Any] = {}
        for name in self._by_name.keys() & data.keys():
            try:
                valid[name] = self._by_name[name].run_validation(data[name])
            except serializers.ValidationError as error:
                wrong[name] = error.detail
        for name in self._required - data.keys():
            wrong[name] = [self._by_name[name].error_messages["required"]]
        if wrong or len(valid) < len(data):
            unknown = islice((key for key in data if key not in self._by_name), _MOST_UNKNOWN)
            in_order = {name: wrong[name] for name in self._by_name if name in wrong}
            raise serializers.ValidationError(
                dict.fromkeys(unknown, "there is no such key") | in_order
            )
        return valid

    @cached_property
    def _by_name(self) -> dict[str, serializers.Field]:
        return {str(field.field_name): field for field in self._writable_fields}

    @cached_property
    def _required(self) -> set[str]:
        return {name for name, field in self._by_name.items() if field.required}


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
