"""A data key turns on many nodes: no request fails, and the old key is dropped (decision 0093)."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.service.service import ALL_SCOPES, ENVIRONMENT, command
from tests.service.test_master_key import RECORD, Client
from tests.waiting import until

from .nodes import make_nodes, serving

TURNS = 2  # the second turn gives the new key the slot of the first key


@pytest.fixture
def nodes(database, tmp_path):
    """Data directories of two nodes of an installation with a tenant, and a key of the tenant."""
    del database
    folders = make_nodes(tmp_path, 2)
    with opened(DataDirectory(folders[0]), os.environ) as installation:
        installation.tenants.create("acme")
        issued = installation.keys.create("acme", scopes=ALL_SCOPES, environment=ENVIRONMENT)
    return folders, str(issued.text)


def left(node):
    """Returns the bytes that are left under an old key of the tenant."""
    (tenant,) = command(node, "stats")["tenants"]
    return tenant["old_key_bytes"]


def test_no_request_fails_while_a_data_key_turns(nodes, tmp_path):
    folders, key = nodes
    with serving(folders) as services, ExitStack() as ends:
        clients = [Client(service, key) for service in services]
        for client in clients:
            client.start()
            ends.callback(client.join)
            ends.callback(client.is_over.set)
        for turn in range(TURNS):
            for client in clients:
                client.asks(3)
            begun = command(folders[turn % 2], "tenant", "rekey", "acme")
            assert begun["old_key_bytes"] > 0
            backup = command(folders[0], "backup", str(tmp_path / f"backup-{turn}"))
            assert backup["ok"]
            until(lambda: left(folders[0]) is None)
            for client in clients:
                client.asks(3)
        # Workers that were idle have missed the turns.
        for service in services:
            posted = [worker.post([RECORD], key=key).status for worker in service.each_worker()]
            assert set(posted) == {202}
    assert [client.refused for client in clients] == [[], []]
    assert command(folders[1], "verify")["ok"]
