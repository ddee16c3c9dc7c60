"""That both servers answer the same, key by key: a race against less would say nothing."""

import json
import socket
from typing import Any

from .load import receive_all
from .servers import Server
from .work import Work


def differences(work: Work, product: Server, reference: Server) -> list[str]:
    """The keys that only one of the two answers has."""
    ours = _keys(_answer(product, work.product(0)))
    if work.reference is None:
        return []
    theirs = _keys(_answer(reference, work.reference(0)))
    return sorted(ours ^ theirs)


def _answer(server: Server, request: bytes) -> Any:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(request)
        return json.loads(receive_all(connection).partition(b"\r\n\r\n")[2])


def _keys(value: Any, path: str = "") -> set[str]:
    if isinstance(value, list):
        return _keys(value[0], f"{path}[]") if value else set()
    if not isinstance(value, dict):
        return set()
    found = {f"{path}/{key}" for key in value}
    return found.union(*(_keys(item, f"{path}/{key}") for key, item in value.items()))
