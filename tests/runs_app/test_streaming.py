"""What the server's own sockets are told."""

import socket
import sys

import pytest

from runs_app.management.streaming import STALLED_SECONDS, drop_stalled_readers


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
