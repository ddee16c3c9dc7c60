"""One conversation that has a little of all that a transcript can show."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from runs_app.services import NewRun, RunManager
from sessions_app.services import Actor, NewSession, SessionManager

# 96 by 64 pixels of one colour.
PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAGAAAABACAMAAADS6oI8AAAAA1BMVEU0UcZV"
    "v3sGAAAAHUlEQVR42u3BMQEAAADCoPVP7W0HoAAAAAAAAN4AGEAAAZmW8/MAAAAASUVORK5CYII="
)
ANSWER = """I found the cause. **The connection pool was exhausted** by the nightly job:

| Worker | Connections | Waiting |
|---|---|---|
| web-1 | 20 | 3 |
| batch | 60 | 41 |

1. Lower `POOL_SIZE` of the batch worker.
2. Close the cursor in `export.py`:

```python
def export(rows: Iterable[Row]) -> int:
    with connection.cursor() as cursor:  # closed on every path
        return sum(write(cursor, row) for row in rows)
```

> Restarting alone only hides it. See [the handbook](https://docs.example.org/pools).
"""
THANKS = "太好了! 请把修改写进 `export.py`, 并补一个测试。\n\nوشكراً جزيلاً على المساعدة"  # noqa: RUF001
TESTS = (
    "\x1b[1mtests/test_export.py\x1b[0m \x1b[32m.....\x1b[0m\x1b[31mF\x1b[0m\n\x1b[31mFAILED\x1b[0m"
)


def converse(actor: Actor) -> str:
    """Make it; answer the session's id."""
    now = timezone.now() - timedelta(hours=30)
    manager, runs = SessionManager(actor), RunManager(actor)
    new = NewSession(
        title="The export job hangs every night",
        agent_id="ops-agent",
        user_id="maria.santos@example.org",
        metadata={"tier": "gold", "ticket": 4711},
        working_memory={"goal": "Find out why the export hangs", "plan": ["Read the logs"]},
        idle_timeout_seconds=7 * 86_400,
    )
    session, _events = manager.create(new, now=now)
    first = runs.create(session_id=session.pk, new=NewRun(model="gpt-5.1-mini"), now=now)
    at = now
    for seconds, messages in _first():
        at = now + timedelta(seconds=seconds)
        manager.append(session_id=session.pk, run_id=first.pk, messages=messages, now=at)
    memory = {
        "goal": "Find out why the export hangs, and **mend it**",
        "plan": ["Lower POOL_SIZE", "补一个测试"],
        "completed": ["Read the logs"],
        "errors": ["pg_stat: permission denied"],
        "important_files": ["export.py", "tests/test_export.py"],
        "next_action": "Write the test",
        "extra": {"pool": {"size": 20}},
    }
    manager.replace_memory(session_id=session.pk, document=memory, run_id=first.pk, now=at)
    runs.complete(run_id=first.pk, output={"cause": "pool"}, now=at)
    at = now + timedelta(hours=29)
    second = runs.create(session_id=session.pk, new=NewRun(model="gpt-5.1-mini"), now=at)
    manager.append(session_id=session.pk, run_id=second.pk, messages=_second(), now=at)
    return session.pk


def _call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _first() -> list[tuple[int, list[dict[str, Any]]]]:
    rules = "You are a careful operator. Never restart what you have not understood.\n\n" * 3
    return [
        (0, [{"role": "system", "content": rules}]),
        (
            1,
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Why does the export hang? Here is the graph:"},
                        {"type": "image_url", "image_url": {"url": PICTURE}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": "Let me look at the logs and at the database.",
                    "reasoning_content": "Two looks at once are cheaper.",
                    "tool_calls": [
                        _call("c1", "read_log", '{"service": "batch", "lines": 200}'),
                        _call("c2", "query", '{"sql": "SELECT * FROM pg_stat_activity"}'),
                    ],
                },
            ],
        ),
        (
            4,
            [
                {"role": "tool", "tool_call_id": "c1", "content": '{"waiting": 41, "pool": 60}'},
                {
                    "role": "tool",
                    "tool_call_id": "c2",
                    "content": "permission denied for relation pg_stat_activity",
                    "is_error": True,
                },
            ],
        ),
        (
            9,
            [
                {
                    "role": "assistant",
                    "content": ANSWER,
                    "model": "gpt-5.1-mini",
                    "usage": {"input_tokens": 5210, "output_tokens": 412},
                }
            ],
        ),
    ]


def _second() -> list[dict[str, Any]]:
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "A test."}]}
    return [
        {"role": "user", "content": THANKS},
        {"item": reasoning},
        *({"item": item} for item in _hosted()),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [_call("c3", "run_tests", '{"path": "tests/test_export.py"}')],
        },
        {"role": "tool", "tool_call_id": "c3", "content": TESTS},
        {
            "role": "assistant",
            "content": "One test fails; here is the log.\n\n" + "line of a log\n" * 600,
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [_call("c4", "write_file", '{"path": "export.py"}')],
        },
    ]


def _hosted() -> list[dict[str, Any]]:
    """What tools of a provider's did, as its own items."""
    sources = [{"type": "url", "url": "https://www.psycopg.org/psycopg3/docs/"}]
    searched = {"type": "search", "query": "psycopg cursor close", "sources": sources}
    listing = {"stdout": "export.py\ntests\n", "stderr": "", "outcome": {"type": "exit"}}
    return [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": searched},
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "status": "completed",
            "container_id": "c",
            "code": "import statistics\nprint(statistics.median([20, 60, 3]))",
            "outputs": [{"type": "logs", "logs": "20"}],
        },
        {
            "type": "image_generation_call",
            "id": "ig_1",
            "status": "completed",
            "revised_prompt": "A graph of the pool, before and after",
            "result": PICTURE.partition(",")[2],
        },
        {
            "type": "shell_call",
            "call_id": "s1",
            "status": "completed",
            "action": {"commands": ["ls", "pytest -x"]},
        },
        {"type": "shell_call_output", "call_id": "s1", "output": [listing]},
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "server_label": "tickets",
            "name": "comment",
            "arguments": '{"ticket": 4711, "text": "Found it"}',
            "error": {"type": "mcp_protocol_error", "code": 403, "message": "Forbidden"},
        },
    ]
