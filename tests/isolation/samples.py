"""One request for each route and method that its owner may make: what the attacks start from.

``ids`` says which of the furnished things a path names where it is not the usual one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.isolation.routes import Route


@dataclass(frozen=True)
class Sample:
    body: Any = None
    content_type: str = "application/json"
    ids: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)


_QUEUED = {"run_id": "queued_run_id"}
_CUT_OFF = {"run_id": "interrupted_run_id"}
_READ = Sample()
# As short as a session's file can be.
_FILE = b"""\
{"object":"dossier.export","version":1,"session_id":"sess_00000000000000000000000000"}
{"object":"session","session_id":"sess_00000000000000000000000000","status":"ACTIVE","version":1,\
"metadata":{},"usage":{},"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z",\
"last_activity_at":"2026-01-01T00:00:00Z"}
{"object":"dossier.end","runs":0,"messages":0,"tool_calls":0,"memory_revisions":0,"events":0}
"""
_USER = {"role": "user", "content": "Hello"}

SAMPLES: Mapping[tuple[str, str], Sample] = {
    ("sessions", "GET"): _READ,
    ("sessions", "POST"): Sample({"title": "A title"}),
    ("session-import", "POST"): Sample(_FILE, "application/x-ndjson"),
    ("session-export", "GET"): _READ,
    ("search", "GET"): Sample(query={"q": "title"}),
    ("session", "GET"): _READ,
    ("session", "PATCH"): Sample({"title": "Another title"}),
    ("session", "DELETE"): Sample(),
    ("session-close", "POST"): Sample({"reason": "done"}),
    ("session-expire", "POST"): Sample({"reason": "old"}),
    ("session-fork", "POST"): Sample({"at_sequence": 1, "title": "A fork"}),
    ("session-rewind", "POST"): Sample({"to_sequence": 1, "reason": "wrong way"}),
    ("session-compact", "POST"): Sample({"through_sequence": 1, "summary": "A greeting."}),
    ("session-resume", "POST"): Sample({"reason": "back"}),
    ("session-context", "GET"): _READ,
    ("session-stream", "GET"): _READ,
    ("events", "GET"): _READ,
    ("messages", "GET"): _READ,
    ("messages", "POST"): Sample({"messages": [_USER]}),
    ("messages-pop", "POST"): Sample({"turn": True}),
    ("message", "GET"): _READ,
    ("message", "DELETE"): Sample(),
    ("working-memory", "GET"): _READ,
    ("working-memory", "PUT"): Sample({"goal": "A goal"}),
    ("working-memory", "PATCH"): Sample({"goal": "A goal"}),
    ("revisions", "GET"): _READ,
    ("revision", "GET"): _READ,
    ("tool-calls", "GET"): _READ,
    ("tool-calls", "POST"): Sample({"name": "ls", "arguments": {"path": "."}}),
    ("tool-call", "GET"): _READ,
    ("tool-call-finish", "POST"): Sample({"status": "SUCCEEDED", "result": "ok"}),
    ("tool-call-settle", "POST"): Sample({"reason": "lost"}),
    ("session-runs", "GET"): _READ,
    ("session-runs", "POST"): Sample({"if_active": "queue"}),
    ("runs", "GET"): _READ,
    ("run", "GET"): _READ,
    ("run-start", "POST"): Sample({}, ids=_QUEUED),
    ("run-heartbeat", "POST"): Sample({"attempt": 1}),
    ("run-wait", "POST"): Sample({"reason": "an answer"}),
    ("run-complete", "POST"): Sample({"output": "done"}),
    ("run-fail", "POST"): Sample({"error": {"type": "t", "message": "m"}}),
    ("run-cancel", "POST"): Sample({"reason": "no"}),
    ("run-resume", "POST"): Sample({}, ids=_CUT_OFF),
    ("conversations", "GET"): _READ,
    ("conversations", "POST"): Sample({"metadata": {"k": "v"}, "items": [_USER]}),
    ("conversation", "GET"): _READ,
    ("conversation", "POST"): Sample({"metadata": {"k": "v"}}),
    ("conversation", "DELETE"): Sample(),
    ("conversation-items", "GET"): _READ,
    ("conversation-items", "POST"): Sample({"items": [_USER]}),
    ("conversation-item", "GET"): _READ,
    ("conversation-item", "DELETE"): Sample(),
}


def sample_of(route: Route) -> Sample:
    """Raises with what to do for a route that nobody has thought about yet."""
    method = "GET" if route.method == "HEAD" else route.method
    sample = SAMPLES.get((route.name, method))
    assert sample is not None, (
        f"{route} has no sample request: add SAMPLES[{(route.name, method)!r}] in {__file__}, with "
        "a body that its owner may send, and add what its path names to `furnish`"
    )
    return sample


def path_of(route: Route, ids: Mapping[str, str]) -> str:
    """The route's path with these things in it."""
    chosen = {**ids, **{name: ids[source] for name, source in sample_of(route).ids.items()}}
    return route.template.format(**chosen)
