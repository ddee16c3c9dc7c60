"""A database of the benchmark's own, which is gone afterwards."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from uuid_utils.compat import uuid7


@contextlib.contextmanager
def fresh_database(url: str) -> Iterator[str]:
    """One beside the database that ``url`` names (PostgreSQL), or a file (SQLite)."""
    if url.startswith("postgres"):
        name = f"dossier_bench_{uuid7().hex}"
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f'CREATE DATABASE "{name}"'.encode())
            try:
                yield urlsplit(url)._replace(path=f"/{name}").geturl()
            finally:
                server.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())
    else:
        with tempfile.TemporaryDirectory(prefix="dossier-bench-") as folder:
            yield f"sqlite:///{Path(folder) / 'bench.sqlite3'}"
