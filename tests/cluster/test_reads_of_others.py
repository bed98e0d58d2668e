"""Three nodes on one database: each acknowledged write is in the next read of each other node.

`make failover FAULTS=full` does it 10,000 times, `make cluster` 200 times.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from urllib.parse import urlencode

import pytest

from fleetcast.engine import encode_records
from tests.conformance.api import at, record
from tests.service.service import create_tenant

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
        yield running, create_tenant(folders[0])


class Writer:
    """Writes through one node, and reads each write at once through all others."""

    def __init__(self, services, key, number):
        self._services, self._key, self._number = services, key, number
        self._entity = f"e{number}"
        self._others = [other for other in range(NODES) if other != number]
        self.missed, self.refused = [], 0

    def run(self, count):
        with ExitStack() as left:
            wires = [left.enter_context(closing(service.connect())) for service in self._services]
            for number in range(count):
                body = encode_records([record(at(number / 1000), self._entity, n=number)])
                answer = self._ask(wires, self._number, "POST", "/telemetry", body)
                assert answer.status == 202, answer.body
                for other in self._others:
                    answer = self._ask(wires, other, "GET", NEWEST, None)
                    assert answer.status == 200, answer.body
                    entities = answer.json["entities"]
                    newest = {one["entity_id"]: one["fields"]["n"] for one in entities}
                    if newest.get(self._entity) != number:
                        self.missed.append((number, other, newest))

    def _ask(self, wires, node, method, path, body):
        """The answer of a node; a starved one refuses, and is asked again as a gateway would."""
        json = {"content-type": "application/json"}
        while True:
            answer = self._services[node].request(
                method, path, body=body, headers=json, key=self._key, connection=wires[node]
            )
            if answer.status != 503:
                return answer
            self.refused += 1


def test_a_write_that_one_node_acknowledged_is_in_the_next_read_of_each_other(services):
    """Each of the nodes writes, while the others do."""
    running, key = services
    writers = [Writer(running, key, number) for number in range(NODES)]
    counts = [WRITES // NODES + (number < WRITES % NODES) for number in range(NODES)]
    began = time.monotonic()
    with ThreadPoolExecutor(NODES) as pool:
        list(pool.map(Writer.run, writers, counts))
    seconds = time.monotonic() - began
    missed = [found for writer in writers for found in writer.missed]
    print(
        f"\n{sum(counts)} writes, each read by {NODES - 1} others: {len(missed)} missed, "
        f"{sum(writer.refused for writer in writers)} requests refused, {seconds:.0f} s"
    )
    assert missed == []
