"""Items of tools that a provider runs, or knows by itself: what of each is looked at first.

Of no item anything was checked when it was stored.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..values import cut, visible

_SHORT = 120
_LONGEST_NAME = 80
_OUTPUT = "_output"
_NAMES: Mapping[str, Promise] = {
    "web_search": gettext_lazy("Web search"),
    "file_search": gettext_lazy("File search"),
    "tool_search": gettext_lazy("Search for tools"),
    "code_interpreter": gettext_lazy("Code interpreter"),
    "image_generation": gettext_lazy("Image generation"),
    "computer": gettext_lazy("Computer"),
    "local_shell": gettext_lazy("Shell"),
    "shell": gettext_lazy("Shell"),
    "apply_patch": gettext_lazy("Patch"),
    "program": gettext_lazy("Program"),
    "compaction": gettext_lazy("Compaction"),
    "additional_tools": gettext_lazy("More tools"),
    "configuration_update": gettext_lazy("Configuration"),
    "mcp_list_tools": gettext_lazy("Tools of a server"),
    "mcp_approval_request": gettext_lazy("Approval asked for"),
    "mcp_approval_response": gettext_lazy("Approval"),
}
# Where it says in few words what it is about; the first of these.
_SUBJECTS = (
    ("action", "query"),
    ("action", "queries"),
    ("queries",),
    ("action", "url"),
    ("action", "commands"),
    ("action", "command"),
    ("operation", "path"),
    ("code",),
    ("arguments",),
    ("input",),
    ("revised_prompt",),
    ("action", "type"),
    ("reason",),
    ("output",),
    ("result",),
)
_GIVEN = ("action", "actions", "operation", "queries", "code", "arguments", "input", "tools")
_RETURNED = ("results", "outputs", "output", "result", "error", "approve", "reason")
_STATUSES = {
    "completed": "COMPLETED",
    "incomplete": "INTERRUPTED",
    "failed": "FAILED",
}


class HostedCard(NamedTuple):
    """``status`` is a name of `STATUSES`, or empty; ``values`` are a title and what stands below
    it; ``is_answer``: it is what came back."""

    name: str
    subject: str
    status: str
    is_answer: bool
    values: list[tuple[str, Any]]

    @property
    def is_failed(self) -> bool:
        return self.status == "FAILED"


def hosted_card(item: Mapping[str, Any]) -> HostedCard:
    kind = str(item.get("type"))
    return HostedCard(
        name=visible(_name(kind, item)[:_LONGEST_NAME]),
        subject=visible(_subject(item)),
        status=_status(item),
        is_answer=kind.endswith(_OUTPUT),
        values=[*_values(item)] or [(_("Item"), dict(item))],
    )


def _name(kind: str, item: Mapping[str, Any]) -> str:
    own = item.get("name")
    if isinstance(own, str) and own:
        server = item.get("server_label")
        return f"{server} · {own}" if isinstance(server, str) else own
    tool = kind.removesuffix(_OUTPUT).removesuffix("_call")
    return str(_NAMES.get(tool, kind))


def _subject(item: Mapping[str, Any]) -> str:
    for path in _SUBJECTS:
        value: Any = item
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            value = (" " if path[-1] == "command" else "; ").join(value)
        if isinstance(value, str) and value.strip():
            return cut(" ".join(value[: _SHORT * 4].split()), _SHORT)
    return ""


def _status(item: Mapping[str, Any]) -> str:
    if item.get("error"):
        return "FAILED"
    said = item.get("status")
    return _STATUSES.get(said, "RUNNING") if isinstance(said, str) else ""


def _values(item: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for title, names in ((_("Arguments"), _GIVEN), (_("Result"), _RETURNED)):
        for name in names:
            if item.get(name) not in (None, "", [], {}):
                yield title, _picture(item, name) or item[name]


def _picture(item: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """A picture that was made, as a part of a message has one."""
    made = item[name]
    if item.get("type") != "image_generation_call" or name != "result" or not isinstance(made, str):
        return None
    kind = item.get("output_format") or "png"
    return {"type": "image", "url": f"data:image/{kind};base64,{made}"}
