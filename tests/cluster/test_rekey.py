"""A data key turns on many nodes: no request fails, and the old key is dropped (decision 0093)."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import time
from contextlib import ExitStack

import pytest

from fleetcast.installation.directory import DataDirectory
from tests.service.service import FLEETCAST, command, create_tenant
from tests.service.test_master_key import RECORD, Client
from tests.waiting import until

from .nodes import engine, make_nodes, serving

ROWS = 20_000
KILLS = 200 if os.environ.get("FAULTS") == "full" else 8
KILLED_WITHIN_SECONDS = 1.5  # of a compaction, its start included
TURNS = 2  # the second turn gives the new key the slot of the first key


@pytest.fixture
def nodes(database, tmp_path):
    """Data directories of two nodes of an installation with a tenant, and a key of the tenant."""
    del database
    folders = make_nodes(tmp_path, 2)
    return folders, create_tenant(folders[0])


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


def pass_time(node):
    """Ends lease and pin of a process that died, and the time in which nodes notice a turn."""
    store = DataDirectory(node).settings(os.environ).settings.store
    (schema,) = re.findall(r"search_path%3D(\w+)", store.database)
    change = (
        "UPDATE plane SET held_until = '-infinity', turned_at = turned_at - interval '1 h';"
        "UPDATE pin SET until = until - interval '1 h'"
    )
    engine("sql", f"SET search_path = {schema}; SET fleetcast.compares_keys = 'on'; {change}")


def test_a_turn_goes_on_after_compactors_that_were_killed(nodes, tmp_path):
    (dying, other), _ = nodes
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    file = tmp_path / "records.jsonl"
    records = ({**RECORD, "tags": {"entity_id": f"e{number % 500}"}} for number in range(ROWS))
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    arguments = ["import", "--tenant", "acme", "--format", "jsonl", str(file)]
    command(dying, *arguments)
    command(dying, "compact", "acme")
    command(dying, *arguments)
    command(dying, "tenant", "rekey", "acme")
    for _ in range(KILLS):
        pass_time(dying)
        compacting = [*FLEETCAST, "compact", "acme", "--data", str(dying)]
        with subprocess.Popen(compacting, stdout=subprocess.DEVNULL) as compactor:
            time.sleep(dice.uniform(0, KILLED_WITHIN_SECONDS))
            compactor.kill()
        found = command(other, "verify")
        assert found["ok"]
        assert [tenant["rows"] for tenant in found["tenants"]] == [2 * ROWS]
    pass_time(dying)
    command(other, "compact", "acme")
    assert left(other) is None
    assert command(dying, "verify")["ok"]
