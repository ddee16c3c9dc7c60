"""A session as Markdown, for people.

What clients sent is hostile until it is text: everything long stands in a fence that is longer than
any inside it, where nothing is markup, and every short word has its punctuation escaped
(CommonMark, sections 2.4 and 4.5). So no reader's program runs, loads or links anything of it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from runs_app.models import Run
from runs_app.services.transfer import Contents
from runs_app.states import effective_status as effective_run_status
from sessions_app.console.terminal import plain
from sessions_app.console.values import visible
from sessions_app.jsontext import JSONText
from sessions_app.models import ToolCall
from sessions_app.services.tool_calls import error_of
from sessions_app.states import effective_status
from sessions_app.timestamps import rfc3339

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_FENCES = re.compile(r"`{3,}")
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_LONGEST_WORDS = 500
# A picture or a file in base64 says nothing to a reader.
_LONGEST_DATA = 2_000


def markdown(contents: Contents) -> Iterator[bytes]:
    """The whole document, in pieces."""
    for piece in _document(contents):
        yield f"{piece}\n\n".encode()


def _document(contents: Contents) -> Iterator[str]:
    session, now = contents.session, contents.now
    status = effective_status(session.status, expires_at=session.expires_at, now=now)
    yield f"# {_words(session.title or session.session_id)}"
    yield _facts(
        Session=session.session_id,
        Status=status.value,
        Agent=session.agent_id,
        User=session.user_id,
        External_id=session.external_id,
        Created=rfc3339(session.created_at),
        Last_activity=rfc3339(session.last_activity_at),
        Imported_from=session.imported_from,
    )
    yield from _memory(contents)
    yield from _section("Runs", (_run(run, contents) for run in contents.runs()))
    yield from _section("Conversation", map(_message, _shown(contents)))
    yield from _section("Tool calls", map(_call, contents.tool_calls()))


def _section(title: str, parts: Iterator[str]) -> Iterator[str]:
    """With its heading only where there is something below it."""
    for number, part in enumerate(parts):
        yield f"## {title}\n\n{part}" if number == 0 else part


def _memory(contents: Contents) -> Iterator[str]:
    if contents.session.working_memory_version:
        document = contents.working_memory().value
        said = {name: value for name, value in document.items() if value}
        yield f"## Working memory\n\n{_fenced(_indented(said), 'json')}"


def _run(run: Run, contents: Contents) -> str:
    status = effective_run_status(run.status, deadline=run.deadline, now=contents.now)
    facts = _facts(
        Run=run.run_id,
        Agent=run.agent_id,
        Model=run.model,
        Attempt=str(run.attempt),
        Started=None if run.started_at is None else rfc3339(run.started_at),
        Cancelled_because=run.cancel_reason,
        Waits_for=run.wait_reason,
    )
    given = {"Input": run.input, "Output": run.output, "Error": run.error}
    told = [_told(name, text) for name, text in given.items() if text is not None]
    return "\n\n".join([f"### Run: {status.value}", facts, *told])


def _shown(contents: Contents) -> Iterator[dict[str, Any]]:
    """Without what was removed, and what a rewind took out of the history."""
    for message in contents.messages():
        if message["removed_at"] is None and message["superseded_at"] is None:
            yield message


def _message(message: Mapping[str, Any]) -> str:
    body = message["body"].value
    speaker = str(body.get("role") or message["type"])
    marks = [f"result of {body['tool_call_id']}"] if body.get("tool_call_id") else []
    marks += ["error"] if body.get("is_error") else []
    marks += ["incomplete"] if body.get("status") == "incomplete" else []
    head = " · ".join([f"### {message['sequence']}", *map(_words, [speaker, *marks])])
    model = f" · {_words(str(body['model']))}" if body.get("model") else ""
    when = f"{rfc3339(message['created_at'])}{model}"
    return "\n\n".join([head, when, *_said(body)])


def _said(body: Mapping[str, Any]) -> Iterator[str]:
    for name in _THOUGHTS:
        if body.get(name):
            yield _told("Thought", body[name])
            break
    content = body.get("content")
    for part in content if isinstance(content, list) else [content]:
        yield from _part(part)
    if body.get("refusal"):
        yield _told("Refusal", body["refusal"])
    if body.get("item"):
        yield from _part(body["item"])
    for call in body.get("tool_calls") or []:
        inner = call.get(call.get("type", "function")) or {}
        arguments = inner.get("arguments", inner.get("input"))
        yield _told(f"Call of {inner.get('name')}", arguments, note=call.get("id"))


def _part(part: Any) -> Iterator[str]:
    """One part of a content, whatever its provider's form."""
    if part is None or part == "":
        return
    kind = "text" if isinstance(part, str) else str(part.get("type"))
    text = part if isinstance(part, str) else part.get("text")
    if isinstance(text, str) and text:
        yield _fenced(text)
    elif kind in ("tool_use", "function_call"):
        given = part.get("input", part.get("arguments"))
        yield _told(
            f"Call of {part.get('name')}", given, note=part.get("id") or part.get("call_id")
        )
    elif kind in ("tool_result", "function_call_output"):
        failed = " (error)" if part.get("is_error") else ""
        given = part.get("content", part.get("output"))
        yield _told(f"Result{failed}", given, note=part.get("tool_use_id") or part.get("call_id"))
    elif kind == "thinking":
        yield _told("Thought", part.get("thinking"))
    else:
        yield _told(kind, part)


def _call(call: ToolCall) -> str:
    """A line; and of a call that stands in no message, what it was given and what came of it."""
    took = "" if call.duration_ms is None else f", {call.duration_ms} ms"
    error = error_of(call) or {}
    why = ": ".join(_words(text) for text in error.values() if text)
    line = f"- {_words(call.name)}: {call.status}{took}{f' ({why})' if why else ''}"
    if call.message_sequence is not None:
        return f"{line}, message {call.message_sequence}"
    given = {"Arguments": call.arguments, "Result": call.result}
    told = [_told(name, text) for name, text in given.items() if text is not None]
    return "\n\n".join([line, *told])


def _told(name: str, value: Any, *, note: str | None = None) -> str:
    """A value under its name: text as it is, a document indented."""
    beside = f" ({_words(str(note))})" if note else ""
    value = value.value if isinstance(value, JSONText) else value
    if isinstance(value, str):
        return f"**{_words(name)}**{beside}\n\n{_fenced(value)}"
    return f"**{_words(name)}**{beside}\n\n{_fenced(_indented(_shortened(value)), 'json')}"


def _shortened(value: Any) -> Any:
    """Without data that nobody reads; a text of words is none, however long."""
    if isinstance(value, dict):
        return {key: _shortened(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shortened(inner) for inner in value]
    if isinstance(value, str) and len(value) > _LONGEST_DATA and " " not in value:
        return f"{value[:40]}… ({len(value)} characters)"
    return value


def _indented(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _facts(**facts: str | None) -> str:
    lines = [f"- {name.replace('_', ' ')}: {_words(text)}" for name, text in facts.items() if text]
    return "\n".join(lines)


def _words(text: str) -> str:
    """Short text on a line of its own, in which nothing is markup."""
    one_line = " ".join(text[:_LONGEST_WORDS].split())
    return _PUNCTUATION.sub(r"\\\1", visible(plain(one_line)))


def _fenced(text: str, language: str = "text") -> str:
    """Text in which nothing is markup: between fences longer than any in it."""
    shown = "\n".join(visible(plain(text)).splitlines())
    longest = max((len(found) for found in _FENCES.findall(shown)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"
