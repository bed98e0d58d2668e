"""A data key turns while the service runs: no request fails, and the upkeep drops the old key."""

from __future__ import annotations

import time

import pytest

from tests.waiting import PATIENCE_SECONDS

from .service import command, create_key, running
from .test_master_key import Client

pytestmark = pytest.mark.files
TURNS = 3


def left(data):
    """Returns the bytes that are left under an old key of any tenant."""
    return [tenant["old_key_bytes"] for tenant in command(data, "stats")["tenants"]]


def test_no_request_fails_while_a_data_key_turns(tmp_path):
    data = tmp_path / "data"
    with running(data) as service:
        clients = [Client(service, key) for key in (service.key, create_key(data, "acme"))]
        for client in clients:
            client.start()
        try:
            for _ in range(TURNS):
                for client in clients:
                    client.asks(3)
                assert command(data, "tenant", "rekey", "acme")["old_key_bytes"] > 0
                until = time.monotonic() + PATIENCE_SECONDS
                while any(bytes_ is not None for bytes_ in left(data)):
                    assert time.monotonic() < until
                    for client in clients:
                        client.asks(1)
        finally:
            for client in clients:
                client.is_over.set()
            for client in clients:
                client.join()
    assert [client.refused for client in clients] == [[], []]
    assert command(data, "verify")["ok"]
