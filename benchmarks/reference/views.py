"""What the product's hot endpoints do, with nothing that the contract promises: the floor.

No token, no account, no lifecycle, no idempotency, no tool calls, no runs: each call is the fewest
statements of raw SQL that store what the product stores of a session and a message, in tables of
its own, and answer what it answers, key by key (the benchmark compares the two before it begins).
"""

import json
from datetime import UTC, datetime
from typing import Any

import orjson
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from uuid_utils.compat import uuid7

from . import tables

_LIST = f"""
SELECT {tables.SESSION_COLUMNS} FROM reference_session
WHERE user_id = %s ORDER BY last_activity_at DESC, session_id DESC LIMIT 50"""
_GET = f"SELECT {tables.SESSION_COLUMNS} FROM reference_session WHERE session_id = %s"
_CREATE = f"""
INSERT INTO reference_session ({tables.SESSION_COLUMNS}) VALUES ({tables.SESSION_PLACES})"""
_READ = f"""
SELECT {tables.MESSAGE_COLUMNS}, body FROM reference_message
WHERE session_id = %s ORDER BY sequence LIMIT 1000"""
_NEWEST = f"""
SELECT {tables.MESSAGE_COLUMNS}, body FROM reference_message
WHERE session_id = %s ORDER BY sequence DESC LIMIT 50"""
_TAKE = """
UPDATE reference_session SET last_sequence = last_sequence + %s, version = version + 1,
  message_count = message_count + %s, last_activity_at = %s, updated_at = %s
WHERE session_id = %s RETURNING last_sequence, version"""
# One statement for both, which SQLite cannot.
_APPEND = f"""
WITH taken AS ({_TAKE})
INSERT INTO reference_message ({tables.MESSAGE_COLUMNS}, body)
SELECT item.id, %s, taken.last_sequence - %s + item.number, taken.version, %s, item.body
FROM taken, unnest(%s::text[], %s::text[]) WITH ORDINALITY AS item(id, body, number)
RETURNING sequence, session_version"""
_INSERT = f"""
INSERT INTO reference_message ({tables.MESSAGE_COLUMNS}, body) VALUES (%s, %s, %s, %s, %s, %s)"""

_EMPTY_MEMORY: dict[str, Any] = {
    "goal": None,
    "plan": None,
    "completed": [],
    "errors": [],
    "important_files": [],
    "next_action": None,
    "extra": {},
}


def sessions(request: HttpRequest) -> HttpResponse:
    return _create(request) if request.method == "POST" else _list(request)


def messages(request: HttpRequest, session_id: str) -> HttpResponse:
    return _append(request, session_id) if request.method == "POST" else _read(session_id)


def context(request: HttpRequest, session_id: str) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute(_GET, [session_id])
        session = _session(cursor.fetchone(), whole=True)
        cursor.execute(_NEWEST, [session_id])
        found = cursor.fetchall()[::-1]
    return _json(
        {
            "session": session,
            "working_memory": _EMPTY_MEMORY,
            "working_memory_version": session["working_memory_version"],
            "messages": [_message(row) for row in found],
            "window": {
                "first_sequence": found[0][2] if found else None,
                "last_sequence": found[-1][2] if found else None,
                "omitted_before": session["message_count"] - len(found),
                "estimated_tokens": sum(len(row[-1]) for row in found) // 4,
            },
            "open_tool_calls": [],
            "tool_history": [],
            "runs": [],
            "active_run": None,
            "interrupted_run": None,
            "truncated": False,
            "resumed_from": None,
        }
    )


def _create(request: HttpRequest) -> HttpResponse:
    row = tables.new_session(json.loads(request.body), datetime.now(UTC))
    with connection.cursor() as cursor:
        cursor.execute(_CREATE, row)
    return _json(_session(row, whole=True), status=201)


def _list(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute(_LIST, [request.GET["user_id"]])
        rows = cursor.fetchall()
    data = [_session(row, whole=False) for row in rows]
    return _json({"data": data, "next_cursor": None, "previous_cursor": None})


def _append(request: HttpRequest, session_id: str) -> HttpResponse:
    given = json.loads(request.body)
    sent = given.get("messages", [given])
    bodies = [json.dumps(item, ensure_ascii=False) for item in sent]
    ids = [uuid7().hex for _ in sent]
    now = datetime.now(UTC)
    append = _append_at_once if connection.vendor == "postgresql" else _append_in_two
    last, version = append(session_id, ids, bodies, now)
    first = last - len(sent) + 1
    rows = [
        (ids[number], session_id, first + number, version, now, body)
        for number, body in enumerate(bodies)
    ]
    answer = {"messages": [_message(row) for row in rows], "created_count": len(rows)}
    return _json(answer | {"last_sequence": last, "version": version}, status=201)


def _append_at_once(
    session_id: str, ids: list[str], bodies: list[str], now: datetime
) -> tuple[int, int]:
    count = len(ids)
    taken = (count, count, now, now, session_id)
    with connection.cursor() as cursor:
        cursor.execute(_APPEND, (*taken, session_id, count, now, ids, bodies))
        last, version = max(cursor.fetchall())
    return last, version


def _append_in_two(
    session_id: str, ids: list[str], bodies: list[str], now: datetime
) -> tuple[int, int]:
    count = len(ids)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_TAKE, [count, count, now, now, session_id])
        last, version = cursor.fetchone()
        rows = zip(ids, range(last - count + 1, last + 1), bodies, strict=True)
        cursor.executemany(
            _INSERT, [(key, session_id, number, version, now, body) for key, number, body in rows]
        )
    return last, version


def _read(session_id: str) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute(_READ, [session_id])
        rows = cursor.fetchall()
    return _json(
        {
            "data": [_message(row) for row in rows],
            "first_sequence": rows[0][2] if rows else None,
            "last_sequence": rows[-1][2] if rows else None,
            "has_more": False,
        }
    )


def _session(row: Any, *, whole: bool) -> dict[str, Any]:
    session = dict(zip(tables.SESSION, row, strict=True))
    session["metadata"] = orjson.Fragment(session["metadata"])
    tokens = {name: session.pop(name) for name in tables.TOKENS}
    session["usage"] = {**tokens, "cost_usd": str(session.pop("cost_nanousd"))}
    more = {"working_memory": _EMPTY_MEMORY, "open_tool_calls": []} if whole else {}
    return {"object": "session", **session, **more}


def _message(row: Any) -> orjson.Fragment:
    key, session_id, sequence, version, created_at, body = row
    return orjson.Fragment(
        f'{{"object":"message","message_id":"{key}","session_id":"{session_id}",'
        f'"sequence":{sequence},"type":"message","run_id":null,"session_version":{version},'
        f'"created_at":"{created_at.isoformat()}","status":"completed",{body[1:]}'
    )


def _json(data: Any, status: int = 200) -> HttpResponse:
    body = orjson.dumps(data)
    headers = {"Content-Length": str(len(body))}
    return HttpResponse(body, content_type="application/json", status=status, headers=headers)
