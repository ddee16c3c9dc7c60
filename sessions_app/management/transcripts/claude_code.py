"""Claude Code: one line for each block of a message, in files below ``~/.claude/projects``."""

from collections.abc import Iterator, Mapping
from typing import IO, Any

from .entries import BadFileError, Entry, given, read_lines

_SAID = ("user", "assistant")
_TOLD = ("cwd", "gitBranch", "version")


def read(file: IO[bytes]) -> Iterator[Entry]:
    """The messages in the order of the file; all other lines are the program's own notes.

    What a sub-agent said is a session of its own. A message of several blocks stands in several
    lines, each with the usage of the whole: the first one's counts.
    """
    counted: set[Any] = set()
    session = ""
    for place, line in read_lines(file):
        kind, message = line.get("type"), line.get("message")
        if kind == "summary" and session and isinstance(line.get("summary"), str):
            yield Entry(session, place, title=line["summary"])
        if kind not in _SAID or not isinstance(message, dict):
            continue
        session = _session_of(line, place)
        said = given(
            role=message.get("role"),
            model=message.get("model"),
            created_at=line.get("timestamp"),
            client_message_id=line["uuid"],
        )
        usage = message.get("usage")
        if isinstance(usage, dict) and message.get("id") not in counted:
            counted.add(message.get("id"))
            said["usage"] = _usage(usage)
        metadata = {name: line[name] for name in _TOLD if isinstance(line.get(name), str)}
        said["content"] = message.get("content")
        yield Entry(session, place, said, agent_id="claude-code", metadata=metadata)


def _session_of(line: Mapping[str, Any], place: str) -> str:
    session_id = line.get("sessionId")
    if not isinstance(session_id, str) or not isinstance(line.get("uuid"), str):
        raise BadFileError(place, "a message without sessionId and uuid")
    if not line.get("isSidechain"):
        return f"claude-code:{session_id}"
    return f"claude-code:{session_id}:{line.get('agentId', 'sidechain')}"


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Anthropic counts cached tokens beside the others, not among them."""
    cached = _count(usage, "cache_read_input_tokens")
    written = _count(usage, "cache_creation_input_tokens")
    return {
        "input_tokens": _count(usage, "input_tokens") + written + cached,
        "output_tokens": _count(usage, "output_tokens"),
        "cached_input_tokens": cached,
    }


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) else 0
