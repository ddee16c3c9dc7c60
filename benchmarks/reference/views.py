"""What the product's hot endpoints do, with nothing that the contract promises: the floor.

No token, no account, no lifecycle, no idempotency, no tool calls: each call is the fewest
statements of raw SQL that store and read the same bytes, in tables of its own.
"""

import json
from datetime import UTC, datetime

from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from uuid_utils.compat import uuid7

_APPEND_ALL = """
WITH taken AS (
  UPDATE reference_session SET last_sequence = last_sequence + %s, last_activity_at = %s
  WHERE id = %s RETURNING last_sequence)
INSERT INTO reference_message (session_id, sequence, body, created_at)
SELECT %s, taken.last_sequence - %s + item.number, item.body, %s
FROM taken, unnest(%s::text[]) WITH ORDINALITY AS item(body, number)
RETURNING sequence"""


def sessions(request: HttpRequest) -> HttpResponse:
    return _create(request) if request.method == "POST" else _list(request)


def messages(request: HttpRequest, session_id: str) -> HttpResponse:
    return _append(request, session_id) if request.method == "POST" else _read(request, session_id)


def context(request: HttpRequest, session_id: str) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, user_id, state, last_sequence FROM reference_session WHERE id = %s",
            [session_id],
        )
        row = cursor.fetchone()
        cursor.execute(
            "SELECT sequence, body FROM reference_message WHERE session_id = %s "
            "ORDER BY sequence DESC LIMIT 50",
            [session_id],
        )
        found = cursor.fetchall()
    head = json.dumps({"id": row[0], "user_id": row[1], "last_sequence": row[3]})
    listed = ",".join(f'{{"sequence":{number},"body":{body}}}' for number, body in reversed(found))
    return _json(f'{head[:-1]},"state":{row[2]},"messages":[{listed}]}}')


def _create(request: HttpRequest) -> HttpResponse:
    given = json.loads(request.body)
    session_id, now = uuid7().hex, datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO reference_session (id, user_id, state, last_sequence, last_activity_at) "
            "VALUES (%s, %s, %s, 0, %s)",
            [session_id, given["user_id"], json.dumps(given), now],
        )
    return _json(json.dumps({"id": session_id, **given}), status=201)


def _list(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, user_id, state, last_sequence FROM reference_session "
            "WHERE user_id = %s ORDER BY last_activity_at DESC, id DESC LIMIT 50",
            [request.GET["user_id"]],
        )
        rows = cursor.fetchall()
    listed = ",".join(
        f'{{"id":"{row[0]}","user_id":"{row[1]}","state":{row[2]},"last_sequence":{row[3]}}}'
        for row in rows
    )
    return _json(f'{{"data":[{listed}]}}')


def _append(request: HttpRequest, session_id: str) -> HttpResponse:
    given = json.loads(request.body)
    bodies = [json.dumps(item) for item in given.get("messages", [given])]
    now = datetime.now(UTC)
    append = _append_at_once if connection.vendor == "postgresql" else _append_in_two
    sequences = append(session_id, bodies, now)
    listed = ",".join(
        f'{{"sequence":{number},"body":{body}}}'
        for number, body in zip(sequences, bodies, strict=True)
    )
    return _json(f'{{"messages":[{listed}]}}', status=201)


def _append_at_once(session_id: str, bodies: list[str], now: datetime) -> list[int]:
    count = len(bodies)
    with connection.cursor() as cursor:
        cursor.execute(_APPEND_ALL, [count, now, session_id, session_id, count, now, bodies])
        return [row[0] for row in cursor.fetchall()]


def _append_in_two(session_id: str, bodies: list[str], now: datetime) -> list[int]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE reference_session SET last_sequence = last_sequence + %s, "
            "last_activity_at = %s WHERE id = %s RETURNING last_sequence",
            [len(bodies), now, session_id],
        )
        last = cursor.fetchone()[0]
        sequences = list(range(last - len(bodies) + 1, last + 1))
        cursor.executemany(
            "INSERT INTO reference_message (session_id, sequence, body, created_at) "
            "VALUES (%s, %s, %s, %s)",
            [
                (session_id, number, body, now)
                for number, body in zip(sequences, bodies, strict=True)
            ],
        )
    return sequences


def _read(request: HttpRequest, session_id: str) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sequence, body, created_at FROM reference_message WHERE session_id = %s "
            "ORDER BY sequence LIMIT 1000",
            [session_id],
        )
        rows = cursor.fetchall()
    listed = ",".join(
        f'{{"sequence":{number},"created_at":"{moment}","body":{body}}}'
        for number, body, moment in rows
    )
    return _json(f'{{"data":[{listed}]}}')


def _json(text: str, status: int = 200) -> HttpResponse:
    body = text.encode()
    headers = {"Content-Length": str(len(body))}
    return HttpResponse(body, content_type="application/json", status=status, headers=headers)
