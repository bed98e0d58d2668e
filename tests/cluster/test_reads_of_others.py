"""Three nodes on one database: each acknowledged write is in the next read of each other node.

`make failover` does it 10,000 times, `make cluster` 200 times.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from urllib.parse import urlencode

import pytest

from fleetcast.engine import encode_records
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.conformance.api import at, record
from tests.service.service import ALL_SCOPES

from .nodes import make_nodes, serving

NODES = 3
WRITES = 10_000 if os.environ.get("FAULTS") == "full" else 200
NEWEST = f"/topology?{urlencode({'as_of_utc': at(3600), 'freshness_seconds': 3600})}"


@pytest.fixture(scope="module")
def services(database, tmp_path_factory):
    """Services of three nodes, and a key that each of them takes."""
    del database
    folders = make_nodes(tmp_path_factory.mktemp("three"), NODES)
    with serving(folders) as running:
        with opened(DataDirectory(folders[0]), os.environ) as installation:
            installation.tenants.create("acme")
            issued = installation.keys.create("acme", scopes=ALL_SCOPES, environment="sandbox")
        yield running, str(issued.text)


def write_and_read(services, key, writer, count):
    """Writes through one node, reads each write at once through all others; gives those missed."""
    entity, others = f"e{writer}", [number for number in range(NODES) if number != writer]
    missed = []
    with ExitStack() as left:
        wires = [left.enter_context(closing(service.connect())) for service in services]
        for number in range(count):
            body = encode_records([record(at(number / 1000), entity, n=number)])
            answer = services[writer].post(body, key=key, connection=wires[writer])
            assert answer.status == 202, answer.body
            for other in others:
                answer = services[other].request("GET", NEWEST, key=key, connection=wires[other])
                assert answer.status == 200, answer.body
                newest = {one["entity_id"]: one["fields"]["n"] for one in answer.json["entities"]}
                if newest.get(entity) != number:
                    missed.append((number, other, newest))
    return missed


def test_a_write_that_one_node_acknowledged_is_in_the_next_read_of_each_other(services):
    """Each of the nodes writes, while the others do."""
    running, key = services
    began = time.monotonic()
    with ThreadPoolExecutor(NODES) as pool:
        counts = [WRITES // NODES + (writer < WRITES % NODES) for writer in range(NODES)]
        writers = [
            pool.submit(write_and_read, running, key, writer, count)
            for writer, count in enumerate(counts)
        ]
        missed = [found for each in writers for found in each.result()]
    seconds = time.monotonic() - began
    print(
        f"\n{WRITES} writes, each read by {NODES - 1} others: {len(missed)} missed, {seconds:.0f} s"
    )
    assert missed == []
