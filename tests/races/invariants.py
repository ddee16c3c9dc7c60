"""What must hold in the tables whatever has raced: each query finds the rows that break a rule.

Plain SQL that both databases understand, so that the rows of a live server can be checked beside
it, without the code that wrote them.
"""

import sqlite3
from collections.abc import Callable
from typing import Any

import psycopg

Select = Callable[[str], list[tuple[Any, ...]]]

_FINAL = "('COMPLETED', 'FAILED', 'CANCELLED')"
_UNFINISHED = "('PENDING', 'RUNNING', 'WAITING')"
_STARTED = "('RUNNING', 'WAITING')"
_LIVE = "removed_at IS NULL AND superseded_at IS NULL"


def _counted(column: str, table: str, condition: str = "1 = 1") -> str:
    """Living sessions in which a counter is not the number of rows."""
    return f"""
        SELECT session_id, status, {column} FROM sessions_app_session s
        WHERE status <> 'DELETED' AND {column} <> (
            SELECT count(*) FROM {table} t WHERE t.session_id = s.session_id AND {condition})
    """


def _gapless(table: str, column: str, highest: str, condition: str = "status <> 'DELETED'") -> str:
    """Sessions whose rows are not numbered 1, 2, 3, … up to what the session says."""
    return f"""
        SELECT s.session_id, s.{highest}, count(t.{column}), min(t.{column}), max(t.{column})
        FROM sessions_app_session s LEFT JOIN {table} t ON t.session_id = s.session_id
        WHERE {condition} GROUP BY s.session_id, s.{highest}
        HAVING count(t.{column}) <> s.{highest} OR count(DISTINCT t.{column}) <> s.{highest}
            OR coalesce(min(t.{column}), 1) <> 1 OR coalesce(max(t.{column}), 0) <> s.{highest}
    """


def _orphans(table: str) -> str:
    return f"""
        SELECT t.session_id FROM {table} t JOIN sessions_app_session s
            ON s.session_id = t.session_id
        WHERE s.status = 'DELETED' AND s.purged_at IS NOT NULL
    """


RULES = {
    "messages are numbered without gaps": _gapless(
        "sessions_app_message", "sequence", "last_sequence"
    ),
    "memory revisions are numbered without gaps": _gapless(
        "sessions_app_workingmemoryrevision", "version", "working_memory_version"
    ),
    "events are numbered without gaps": _gapless(
        "sessions_app_sessionevent", "sequence", "event_count", "1 = 1"
    ),
    "message_count": _counted("message_count", "sessions_app_message", _LIVE),
    "tool_call_count": _counted("tool_call_count", "sessions_app_toolcall"),
    "open_tool_call_count": _counted(
        "open_tool_call_count", "sessions_app_toolcall", "t.status IN ('PENDING', 'RUNNING')"
    ),
    "every tool result has its call": """
        SELECT m.session_id, m.sequence FROM sessions_app_message m JOIN sessions_app_session s
            ON s.session_id = m.session_id
        WHERE m.role = 'tool' AND m.removed_at IS NULL AND s.status <> 'DELETED' AND NOT EXISTS (
            SELECT 1 FROM sessions_app_toolcall c
            WHERE c.session_id = m.session_id AND c.result_sequence = m.sequence)
    """,
    "a call and its result were superseded together": """
        SELECT c.session_id, c.id, m.sequence, m.superseded_at, c.superseded_at
        FROM sessions_app_toolcall c JOIN sessions_app_message m ON m.session_id = c.session_id
            AND m.sequence IN (c.message_sequence, c.result_sequence)
        WHERE (m.superseded_at IS NULL) <> (c.superseded_at IS NULL)
    """,
    "no superseded call is open": """
        SELECT session_id, id, status FROM sessions_app_toolcall
        WHERE superseded_at IS NOT NULL AND finished_at IS NULL
    """,
    "a session knows its newest compaction": f"""
        SELECT s.session_id, s.compaction_sequence, s.compacted_through, m.sequence
        FROM sessions_app_session s LEFT JOIN sessions_app_message m ON m.session_id = s.session_id
            AND m.sequence = (SELECT max(c.sequence) FROM sessions_app_message c
                WHERE c.session_id = s.session_id AND c.through_sequence IS NOT NULL AND {_LIVE})
        WHERE s.status <> 'DELETED' AND (
            coalesce(s.compaction_sequence, 0) <> coalesce(m.sequence, 0)
            OR coalesce(s.compacted_through, 0) <> coalesce(m.through_sequence, 0))
    """,
    "run_count": _counted("run_count", "runs_app_run"),
    "failed_run_count": _counted("failed_run_count", "runs_app_run", "t.status = 'FAILED'"),
    "a deleted session leaves no messages": _orphans("sessions_app_message"),
    "a deleted session leaves no tool calls": _orphans("sessions_app_toolcall"),
    "a deleted session leaves no memory": _orphans("sessions_app_workingmemoryrevision"),
    "a deleted session leaves no runs": _orphans("runs_app_run"),
    "a deleted session leaves no answers": """
        SELECT r.session_id FROM sessions_app_idempotencyrecord r JOIN sessions_app_session s
            ON s.session_id = r.session_id
        WHERE s.status = 'DELETED' AND r.answer IS NOT NULL
    """,
    "a recorded key has its status": """
        SELECT digest FROM sessions_app_idempotencyrecord WHERE status_code IS NULL
    """,
    "a session that has ended has no later message": """
        SELECT s.session_id, s.expired_at, s.closed_at, m.sequence, m.created_at
        FROM sessions_app_session s JOIN sessions_app_message m ON m.session_id = s.session_id
        WHERE (s.status = 'EXPIRED' AND m.created_at > s.expired_at)
            OR (s.status = 'CLOSED' AND m.created_at > s.closed_at)
    """,
    "only an active session has an unfinished run": f"""
        SELECT r.run_id, r.status, s.status FROM runs_app_run r JOIN sessions_app_session s
            ON s.session_id = r.session_id
        WHERE s.status <> 'ACTIVE' AND r.status IN {_UNFINISHED}
    """,
    "a session knows its started run": f"""
        SELECT s.session_id, s.active_run_id, s.active_run_attempt, r.run_id, r.attempt
        FROM sessions_app_session s LEFT JOIN runs_app_run r ON r.session_id = s.session_id
            AND r.status IN {_STARTED} AND r.parent_run_id IS NULL
        WHERE coalesce(s.active_run_id, '') <> coalesce(r.run_id, '')
            OR coalesce(s.active_run_attempt, 0) <> coalesce(r.attempt, 0)
    """,
    "a run ends once": f"""
        SELECT subject_id, count(*) FROM sessions_app_sessionevent
        WHERE subject = 'run' AND to_status IN {_FINAL}
        GROUP BY subject_id HAVING count(*) > 1
    """,
    "a run's newest event is its status": """
        SELECT r.run_id, r.status, e.to_status FROM runs_app_run r JOIN sessions_app_sessionevent e
            ON e.subject_id = r.run_id AND e.session_id = r.session_id
        WHERE e.to_status <> r.status AND NOT EXISTS (
            SELECT 1 FROM sessions_app_sessionevent later
            WHERE later.session_id = e.session_id AND later.subject_id = e.subject_id
                AND later.sequence > e.sequence)
    """,
    "each event goes on where the one before it ended": """
        SELECT * FROM (
            SELECT session_id, subject_id, sequence, from_status, lag(to_status)
                OVER (PARTITION BY session_id, subject_id ORDER BY sequence) AS earlier
            FROM sessions_app_sessionevent WHERE subject IN ('session', 'run')) chain
        WHERE coalesce(from_status, '') <> coalesce(earlier, '')
    """,
    "no change is newer than its session": """
        SELECT m.session_id, m.session_version FROM sessions_app_message m
            JOIN sessions_app_session s ON s.session_id = m.session_id
        WHERE m.session_version > s.version
    """,
    "messages are added in the order of versions": """
        SELECT * FROM (
            SELECT session_id, sequence, coalesce(added_version, session_version) AS added,
                lag(coalesce(added_version, session_version))
                    OVER (PARTITION BY session_id ORDER BY sequence) AS earlier
            FROM sessions_app_message) m
        WHERE m.added < m.earlier
    """,
    "each version has left a change": """
        SELECT s.session_id, s.version, count(c.version) FROM sessions_app_session s LEFT JOIN (
            SELECT session_id, coalesce(added_version, session_version) AS version
            FROM sessions_app_message
            UNION SELECT session_id, session_version FROM sessions_app_sessionevent
            UNION SELECT session_id, session_version FROM sessions_app_workingmemoryrevision
            UNION SELECT session_id, version FROM sessions_app_changenote) c
            ON c.session_id = s.session_id
        WHERE s.status <> 'DELETED' AND s.imported_from IS NULL GROUP BY s.session_id, s.version
        HAVING count(c.version) <> s.version
    """,
    "an external id names one session": """
        SELECT account_id, external_id, count(*) FROM sessions_app_session
        WHERE external_id IS NOT NULL GROUP BY account_id, external_id HAVING count(*) > 1
    """,
}


def broken(select: Select) -> dict[str, list[tuple[Any, ...]]]:
    """The rules that do not hold, each with the first rows that break it."""
    found = {rule: select(query)[:5] for rule, query in RULES.items()}
    return {rule: rows for rule, rows in found.items() if rows}


def selecting(url: str) -> Select:
    """A reader of the database at a DATABASE_URL, on a connection of its own for each query."""

    def of_postgresql(query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(url) as connection:
            return list(connection.execute(query.encode()))

    def of_sqlite(query: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    return of_postgresql if url.startswith("postgres") else of_sqlite
