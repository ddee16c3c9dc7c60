"""Problems in the words of OpenAI's API, for the clients that come by its door."""

import re
from collections.abc import Mapping
from typing import Any

PREFIX = "/v1/"

_NOT_FOUND, _GONE, _CONFLICT = 404, 410, 409
# What programs decide by, where that API has a word of its own; of what is unknown it has none.
_CODES = {
    "invalid_request": "invalid_value",
    "not_authenticated": "invalid_api_key",
    "not_found": None,
    "session_deleted": None,
}
# An item is all that its message holds.
_INSIDE_MESSAGE = re.compile(r"(?<=\])\.item(?=\.|$)")


def is_for_openai(path: str) -> bool:
    return path.startswith(PREFIX)


def openai_error(problem: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a refusal: what the problem says, as their clients read it."""
    found = problem["errors"]
    param = _param(found[0]["pointer"]) if found else problem.get("param")
    message = problem["detail"]
    if found and param and problem["status"] < _NOT_FOUND:
        message = f"Invalid '{param}': {found[0]['detail'].removesuffix('.')}."
    error = {
        "message": message,
        "type": "server_error" if status_of(problem) >= 500 else "invalid_request_error",  # noqa: PLR2004
        "param": param or None,
        "code": _CODES.get(problem["code"], problem["code"]),
    }
    return {"error": error}


def status_of(problem: Mapping[str, Any]) -> int:
    """What was deleted is unknown here: these clients know no other way to be told."""
    return _NOT_FOUND if problem["status"] == _GONE else int(problem["status"])


def retry_headers(problem: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, str]:
    """These clients send again what met a conflict; one that will not pass is said to be one."""
    if problem["status"] == _CONFLICT and "Retry-After" not in headers:
        return {"x-should-retry": "false"}
    return {}


def _param(pointer: str) -> str:
    """``/items/0/id`` as ``items[0].id``."""
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
    steps = (f"[{token}]" if token.isdecimal() else f".{token}" for token in tokens)
    return _INSIDE_MESSAGE.sub("", "".join(steps).removeprefix("."))
