"""How the OpenAPI document describes the door: as the native API, but for refusals."""

from typing import Any

from sessions_app.api.schema import DomainSchema

_NULLABLE = {"type": ["string", "null"]}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": _NULLABLE,
                "code": _NULLABLE,
            },
        },
    },
}


class ConversationSchema(DomainSchema):
    def _refusal(self) -> tuple[str, str, dict[str, Any]]:
        return "application/json", "OpenAIError", _ERROR

    def _refusals(self) -> list[str]:
        """What was deleted is unknown to these clients."""
        return [code for code in super()._refusals() if code != "410"]
