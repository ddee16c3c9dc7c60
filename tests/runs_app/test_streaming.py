"""How the server is given answers, and what its own sockets are told."""

import socket
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from granian.wsgi import _callback_wrapper

from runs_app.management.streaming import STALLED_SECONDS, _apart, drop_stalled_readers


def answered(response: Any, protocol: Any) -> list[str]:
    """What is asked of Granian's protocol, and when the answer is closed."""
    steps = Mock()
    steps.attach_mock(protocol.response_bytes, "response_bytes")
    steps.attach_mock(protocol.response_iter, "response_iter")
    response.close = steps.close

    def application(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [])
        return response

    _apart(_callback_wrapper(application, {}))(protocol, {})
    return [name for name, *_ in steps.mock_calls]


@pytest.fixture
def protocol() -> Any:
    return SimpleNamespace(response_bytes=Mock(), response_iter=Mock())


def test_an_answer_that_is_whole_goes_out_in_one_piece_and_is_closed_then(protocol: Any) -> None:
    assert answered(HttpResponse(b"whole"), protocol) == ["response_bytes", "close"]
    protocol.response_bytes.assert_called_once_with(200, [], b"whole")


def test_an_answer_that_cannot_be_sent_is_closed(protocol: Any) -> None:
    protocol.response_bytes.side_effect = BrokenPipeError
    response = HttpResponse(b"whole")
    with pytest.raises(BrokenPipeError):
        answered(response, protocol)
    response.close.assert_called_once_with()  # type: ignore[attr-defined]


def test_what_is_made_piece_by_piece_is_left_to_the_server(protocol: Any) -> None:
    assert answered(StreamingHttpResponse(iter([b"a", b"b"])), protocol) == ["response_iter"]


def limit_of(connection: socket.socket) -> int:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells which sockets there are")
def test_readers_that_take_nothing_are_dropped_now_and_later():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        address = server.getsockname()
        with socket.create_connection(address) as client:
            early, _ = server.accept()
            drop_stalled_readers(address[1])
            with socket.create_connection(address):
                late, _ = server.accept()
                assert limit_of(early) == limit_of(late) == STALLED_SECONDS * 1000
                assert limit_of(client) == limit_of(other) == 0
                early.close()
                late.close()
