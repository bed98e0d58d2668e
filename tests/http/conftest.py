import socket

import pytest

from client import PATIENCE_SECONDS, serve


@pytest.fixture(scope="session")
def server():
    """One worker with the contract's limits."""
    with serve() as started:
        yield started


@pytest.fixture(scope="session")
def hasty():
    """One worker that waits for nobody."""
    limits = {"read_deadline_seconds": 0.2, "request_deadline_seconds": 0.2, "idle_seconds": 0.2}
    with serve(limits=limits) as started:
        yield started


class Gate:
    """Holds requests to `/hold`: `entered` waits for one, and closing what it gives lets it go."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE_SECONDS)
        self.path = f"/hold?port={self._listener.getsockname()[1]}"

    def entered(self):
        sock, _ = self._listener.accept()
        assert sock.recv(2) == b"in"
        return sock

    def close(self):
        self._listener.close()


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.close()
