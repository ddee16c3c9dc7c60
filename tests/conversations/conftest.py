"""The official clients, unmodified, at a real server."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI

from tests.live_server import LiveServer, fresh_database


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("conversations")
    with fresh_database(folder) as url, LiveServer(database_url=url) as server:
        yield server


@pytest.fixture
def client(live: LiveServer) -> Iterator[Any]:
    with OpenAI(base_url=f"{live.url}/v1", api_key=live.token) as made:
        yield made


@pytest.fixture
def conversation(client: Any) -> str:
    return str(client.conversations.create().id)


@pytest.fixture
def connect(live: LiveServer) -> Callable[..., AsyncOpenAI]:
    """Makes asynchronous clients; each belongs to the loop that first uses it."""
    return lambda **more: AsyncOpenAI(base_url=f"{live.url}/v1", api_key=live.token, **more)


@pytest.fixture
def native(live: LiveServer) -> Callable[..., Any]:
    """Asks the native API: a method, a path below a conversation's session, and a body."""

    def ask(method: str, conversation_id: str, path: str = "", body: Any = None) -> Any:
        session_id = conversation_id.replace("conv_", "sess_")
        request = urllib.request.Request(
            f"{live.url}/api/v1/sessions/{session_id}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {live.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"null")

    return ask
