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
    "additionalProperties": {},
}


# What stands below a session and is an area of its own.
_AREAS = frozenset({"messages", "working-memory", "tool-calls", "runs", "events"})

_REFUSALS = {
    "400": "`invalid_json`, `invalid_request` or `invalid_cursor`: `errors` says where.",
    "401": "`not_authenticated`: no token, or one that is not valid.",
    "403": "`permission_denied`: the account may not do this.",
    "404": "`not_found`: unknown, or another account's.",
    "409": "Not in this state, or not any more: `code` says which, and `detail` what to do.",
    "410": "`session_deleted`: its data is gone.",
    "412": "`version_mismatch`: `If-Match` names another version than the current one.",
    "413": "`payload_too_large`: a limit is passed.",
    "415": "`unsupported_media_type`: a body is JSON in UTF-8.",
    "422": "Well-formed and still not possible, such as `idempotency_key_reused`.",
    "429": "`rate_limited`: too many requests, or streams; the same after `Retry-After` seconds.",
    "503": "`database_busy`: send it again after `Retry-After` seconds, with the same key.",
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

    def get_description(self) -> str:  # type: ignore[override]
        """What the view says with ``extend_schema``: docstrings are for who reads the code."""
        return ""

    def get_tags(self) -> list[str]:
        """The kind of thing that the path is about."""
        steps = self._tokenize_path()
        return [next((step for step in steps if step in _AREAS), steps[0])]

    def get_paginated_name(self, serializer_name: str) -> str:
        return f"{serializer_name}Page"

    def _refusal(self) -> tuple[str, str, dict[str, Any]]:
        """What a refusal looks like: its media type, and its schema under a name."""
        return "application/problem+json", "Problem", _PROBLEM

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        media_type, name, schema = self._refusal()
        component = ResolvedComponent(
            name=name, type=ResolvedComponent.SCHEMA, schema=schema, object=name
        )
        self.registry.register_on_missing(component)
        content = {media_type: {"schema": component.ref}}
        named = self._refusals() if hasattr(self.view, "bodies") else []
        refusals = {code: {"description": _REFUSALS[code], "content": content} for code in named}
        answers = {**refusals, **super()._get_response_bodies(direction)}
        other = {"description": "Any other refusal.", "content": content}
        return {**dict(sorted(answers.items())), "default": other}

    def _refusals(self) -> list[str]:
        """The codes that this operation may answer with, as far as its declarations tell."""
        view: Any = self.view
        writes = self.method != "GET"
        reads_more = view.parameters.get(self.method) or view.paginated
        found = ["401", "403", "429", "503"]
        found += ["400"] if writes or reads_more else []
        found += ["404"] if "{" in self.path else []
        found += ["410"] if "{session_id}" in self.path else []
        found += ["409", "422"] if writes else []
        found += ["412"] if writes and self.method in view.etags else []
        has_body = view.bodies.get(self.method) or (writes and view.takes_file)
        return found + (["413", "415"] if has_body else [])


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
