"""How each kind of database is connected to; the values come from the settings."""

from typing import Any


def sqlite_options(*, lock_timeout: int, synchronous: str) -> dict[str, Any]:
    """WAL, so that readers never wait for the writer; IMMEDIATE, so that writers wait in turn.

    A transaction that starts by reading and then writes cannot wait for another writer: SQLite
    answers "database is locked" at once, whatever the timeout (in seconds).
    """
    pragmas = {
        "journal_mode": "WAL",
        "synchronous": synchronous,
        "foreign_keys": "ON",
        "secure_delete": "ON",  # what was deleted is gone from the file, too
        # Each thread has a connection, and keeps what it may: little, and what a fork of 10,000
        # messages needs for a moment goes to the disk. The system has the file in its own memory.
        # A map of the file would be made anew after each write of another connection.
        "temp_store": "FILE",
        "cache_size": -2_000,  # KiB
        "mmap_size": 0,
        # A write is of about 25 pages, mostly those of the one before: the fewer checkpoints, the
        # fewer copies of them. Over 4,000 the log itself grows, which costs more.
        "wal_autocheckpoint": 4_000,  # pages
        "journal_size_limit": 64 * 1024 * 1024,
    }
    return {
        "timeout": lock_timeout,
        "transaction_mode": "IMMEDIATE",
        "init_command": "; ".join(f"PRAGMA {name}={value}" for name, value in pragmas.items()),
    }


def postgresql_options(
    given: dict[str, Any], *, lock_timeout: int, statement_timeout: int, prepare: bool
) -> dict[str, Any]:
    """Bound how long a statement may wait or run, in seconds; what the URL says (``given``) stands.

    A server that is not there is given up, too: after as long as a lock is waited for when it does
    not let anybody in, and after a minute without a sign of life of its machine.

    Values go apart from statements, so that the server parses and plans a repeated one only once.
    """
    timeouts = (
        f"-c lock_timeout={lock_timeout}s -c statement_timeout={statement_timeout}s "
        f"-c idle_in_transaction_session_timeout={2 * statement_timeout}s"
    )
    options = f"{timeouts} {given.get('options', '')}".strip()
    prepared = {"server_side_binding": True, "prepare_threshold": 2 if prepare else None}
    reach = {
        "connect_timeout": lock_timeout,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
    }
    return {"application_name": "dossier"} | reach | prepared | given | {"options": options}
