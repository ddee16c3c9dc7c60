"""Ids and names of tools, as an API accepts them: others were stored for other APIs."""

import re

from .parts import Call

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def tool_name(name: str, *, longest: int) -> str:
    """The tool's name, with `_` for what no API takes."""
    return _NOT_IN_NAMES.sub("_", name)[:longest] or "tool"


class CallIds:
    """Ids of calls, each given out once: the stored one, or one by the call's place where that
    does not match or was used before (report PAIR-06)."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern, re.DOTALL)
        self._used: set[str] = set()

    def of(self, call: Call) -> str:
        chosen, tries = call.id, 0
        while chosen in self._used or not self._pattern.fullmatch(chosen):
            chosen = f"call_{call.sequence}_{call.index}" + "_" * tries
            tries += 1
        self._used.add(chosen)
        return chosen
