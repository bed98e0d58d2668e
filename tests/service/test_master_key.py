"""The master key turns while the service runs: no request fails, and every process follows."""

from __future__ import annotations

import threading

import pytest

from fleetcast.engine import Engine
from fleetcast.errors import StoreDamaged
from fleetcast.security.handover import HANDOVER_FILE
from fleetcast.security.master_key import read_master_key
from tests.console.conftest import Operator
from tests.console.fleet import operator_token
from tests.waiting import PATIENCE_SECONDS

from .service import command, create_key, running

pytestmark = pytest.mark.files
TAGS = {"entity_id": "a"}
RECORD = {"measurement": "link", "time": "2026-01-01", "tags": TAGS, "fields": {"x": 1}}
ROTATIONS = 3


class Client(threading.Thread):
    """Writes and reads, one request after the other, and keeps answers other than expected."""

    def __init__(self, service, key):
        super().__init__()
        self.service, self.key = service, key
        self.refused, self.answered = [], threading.Semaphore(0)
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.is_set():
            written = self.service.post([RECORD], key=self.key)
            read = self.service.get("/topology", key=self.key)
            if (written.status, read.status) != (202, 200):
                self.refused.append((written.body, read.body[:200]))
            self.answered.release()

    def asks(self, count):
        """Returns once `count` more rounds were answered."""
        for _ in range(count):
            assert self.answered.acquire(timeout=PATIENCE_SECONDS)


def test_no_request_fails_while_the_master_key_turns(tmp_path):
    data = tmp_path / "data"
    with running(data, "--admin", "127.0.0.1:0", "--grpc", "127.0.0.1:0") as service:
        old = read_master_key(data / "master.key")
        clients = [Client(service, key) for key in (service.key, create_key(data, "acme"))]
        operator = Operator(service, data).sign_in()
        for client in clients:
            client.start()
        try:
            for _ in range(ROTATIONS):
                assert command(data, "master-key", "rotate")["is_complete"]
                for client in clients:
                    client.asks(5)
                assert operator.ask("api/tenants").status == 200
            issued = command(data, "key", "create", "acme", "--scope", "topology:read")
            assert service.get("/topology", key=issued["key"]).status == 200
            command(data, "key", "revoke", issued["key_id"])
            assert service.get("/topology", key=issued["key"]).status == 401
            command(data, "tenant", "create", "new")
            assert service.post([RECORD], key=create_key(data, "new")).status == 202
            assert Operator(service, data).give(operator_token(data)).status == 200
        finally:
            for client in clients:
                client.is_over.set()
                client.join()
        assert [client.refused for client in clients] == [[], []]
        # Processes that begin now get the first key from their parents.
        for child in ("http", "grpc"):
            service.kill_child(child)
        for worker in service.each_worker():
            assert worker.post([RECORD]).status == 202
        assert command(data, "verify")["ok"]
    assert not (data / HANDOVER_FILE).exists()
    engine = Engine(data / "planes", old)
    for path in (data / "planes").iterdir():
        with pytest.raises(StoreDamaged):
            engine.plane(path.name, "acme")
