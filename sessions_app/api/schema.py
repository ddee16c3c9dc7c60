"""The OpenAPI schema of a view, from the declarations that its requests are checked against."""

from typing import Any, Literal

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import OpenApiParameter

from sessions_app.api.query import MAX_TEXT, Choices, Parameter, Prefixed

Direction = Literal["request", "response"]

MERGE_PATCH = "application/merge-patch+json"

_IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
    OpenApiParameter.HEADER,
    description="The same request with the same key is done once; repetitions get its answer.",
)
_IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string"},
    OpenApiParameter.HEADER,
    description='The `ETag` that the change is based on, such as `"7"`; another version: 412.',
)
_IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    {"type": "string"},
    OpenApiParameter.HEADER,
    description="The `ETag` that the reader holds: 304 when it is still the newest.",
)
# What an answer's headers tell; to be named in a view's `extend_schema(parameters=…)`.
ETAG = OpenApiParameter(
    "ETag",
    {"type": "string"},
    OpenApiParameter.HEADER,
    description="The version, in quotes.",
    response=True,
)
LOCATION = OpenApiParameter(
    "Location",
    {"type": "string"},
    OpenApiParameter.HEADER,
    description="The path of what was created.",
    response=[201],
)

_TEXT = {"type": "string"}
_PROBLEM = {
    "type": "object",
    "description": "RFC 9457; beside these members an error may carry more, such as `version`.",
    "required": ["type", "title", "status", "detail", "code", "errors", "request_id"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "code": {"type": "string", "description": "Stable: what programs decide by."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "detail"],
                "properties": {
                    "pointer": {
                        "type": "string",
                        "description": "JSON pointer into the body, or /name of a parameter.",
                    },
                    "detail": _TEXT,
                },
            },
        },
        "request_id": {"type": ["string", "null"]},
    },
}


class DomainSchema(AutoSchema):
    """AutoSchema for views that declare ``parameters``, ``bodies`` and ``etags`` (see `base`)."""

    def get_override_parameters(self) -> list[Any]:
        declared = getattr(self.view, "parameters", {}).get(self.method, ())
        return [_documented(parameter) for parameter in declared] + self._headers()

    def _headers(self) -> list[OpenApiParameter]:
        if not hasattr(self.view, "bodies"):
            return []
        etags = self.method in getattr(self.view, "etags", ())
        if self.method == "GET":
            return [_IF_NONE_MATCH] if etags else []
        return [_IDEMPOTENCY_KEY, *([_IF_MATCH] if etags else [])]

    def get_request_serializer(self) -> Any:
        if not hasattr(self.view, "bodies"):
            return super().get_request_serializer()
        body = self.view.bodies.get(self.method)
        return body() if body else None

    def map_parsers(self) -> list[str]:
        return [*super().map_parsers(), *([MERGE_PATCH] if self.method == "PATCH" else [])]

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        component = ResolvedComponent(
            name="Problem", type=ResolvedComponent.SCHEMA, schema=_PROBLEM, object="Problem"
        )
        self.registry.register_on_missing(component)
        refusal = {
            "description": "Any refusal.",
            "content": {"application/problem+json": {"schema": component.ref}},
        }
        return {**super()._get_response_bodies(direction), "default": refusal}


def _documented(parameter: Parameter) -> OpenApiParameter:
    name = f"{parameter.name}{{key}}" if isinstance(parameter, Prefixed) else parameter.name
    default = parameter.default if isinstance(parameter.default, str | int) else None
    lists = isinstance(parameter, Choices)
    return OpenApiParameter(
        name,
        parameter.schema(),
        OpenApiParameter.QUERY,
        required=parameter.required,
        description=parameter.description,
        default=default,
        explode=False if lists else None,
        style="form" if lists else None,
    )
