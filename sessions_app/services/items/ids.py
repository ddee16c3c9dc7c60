"""What items are called: by the id that they came with, or by one that is made of their message's.

A model that an item is replayed to knows its type by the beginning of its id, takes letters,
digits, ``_`` and ``-``, and no more than 64 of them.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

MAX_ITEM_ID = 255
OTHER_ITEMS = "item"

# Of what is not here, nobody has seen an id.
PREFIXES: Mapping[str, str] = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "reasoning": "rs",
    "compaction": "cmp",
    "file_search_call": "fs",
    "web_search_call": "ws",
    "image_generation_call": "ig",
    "code_interpreter_call": "ci",
    "computer_call": "cu",
    "computer_call_output": "cuo",
    "tool_search_call": "ts",
    "tool_search_output": "tso",
    "local_shell_call": "lsh",
    "local_shell_call_output": "lsho",
    "shell_call": "sh",
    "shell_call_output": "sho",
    "apply_patch_call": "ap",
    "apply_patch_call_output": "apo",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
    "program": "prg",
    "program_output": "prgo",
    "additional_tools": "adt",
    "configuration_update": "cfg",
}
# Whose ids must begin so.
CHECKED = ("message", "function_call")

# An item is asked for by a path, of which its id is one step.
_NO_STEP = re.compile(r"\.{1,2}|.*/.*", re.DOTALL)
_MINTED = re.compile(r"[a-z]+_([0-9a-z]{26})(?:_([1-9][0-9]{0,5}))?")


class Minted(NamedTuple):
    """What a minted id says: whose item it is, and at which place among those of its message."""

    message_id: str
    place: int


def mint(kind: str, message_id: str, place: int = 0) -> str:
    """The id of an item that came with none. A message that is several items numbers them."""
    number = f"_{place}" if place else ""
    return f"{PREFIXES.get(kind, OTHER_ITEMS)}_{message_id.partition('_')[2]}{number}"


def minted(item_id: str) -> Minted | None:
    """What the id says if it was minted; an id that a client chose may look the same."""
    found = _MINTED.fullmatch(item_id)
    return Minted(f"msg_{found[1]}", int(found[2] or 0)) if found else None


def own_id(body: Mapping[str, Any]) -> str | None:
    """The id with which a message came: of its item, else its own, if an item can be called so."""
    item = body.get("item")
    found = body.get("id") if item is None else item.get("id")
    if not isinstance(found, str) or not is_id(found):
        return None
    kind = "message" if item is None else str(item.get("type"))
    return found if begins_well(kind, found) else None


def is_id(text: str) -> bool:
    """Whether something can be called so, whatever it is."""
    return 0 < len(text) <= MAX_ITEM_ID and not _NO_STEP.fullmatch(text)


def begins_well(kind: str, item_id: str) -> bool:
    return kind not in CHECKED or item_id.startswith(PREFIXES[kind])
