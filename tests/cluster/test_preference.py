"""Three nodes look after the same planes: each plane is compacted by one of them."""

from __future__ import annotations

import json
import os
import signal
from collections import defaultdict

import pytest

from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.conformance.api import Tenant, at, record
from tests.service.service import new_tenant
from tests.waiting import until

from .nodes import make_nodes, serving

TENANTS = [f"fleet-{number}" for number in range(6)]
NODES = 3
MOSTLY = 0.8  # a beat that is late on a busy machine passes preference on for a moment


class Fleet:
    """Planes of several tenants, and the nodes that were seen to compact each."""

    def __init__(self, folders, services, keys):
        self.folders = folders
        self.tenants = {
            name: [Tenant(service, name, None, key) for service in services]
            for name, key in keys.items()
        }
        self._number = 0
        self.rounds = 0

    def write(self, nodes):
        """A batch to each plane, by any of these nodes; the hour that is read has room for all."""
        self.rounds += 1
        for tenants in self.tenants.values():
            self._number += 1
            tenant = tenants[nodes[self._number % len(nodes)]]
            assert tenant.post([record(at(self._number / 10), n=self._number)]).status == 202

    def compacted(self):
        """Nodes by plane, one for each compaction that their logs tell of, in order."""
        found = defaultdict(list)
        for node, folder in enumerate(self.folders):
            for line in (folder / "serve.log").read_text().splitlines():
                entry = json.loads(line)
                if entry.get("event") == "compacted":
                    found[entry["tenant"]].append((entry["timestamp"], node))
        return {name: [node for _, node in sorted(done)] for name, done in found.items()}

    def compacted_anew(self, nodes):
        """The nodes that compact each plane once more, while rows come by all of `nodes`."""
        before = {name: len(done) for name, done in self.compacted().items()}

        def done():
            self.write(nodes)
            found = self.compacted()
            return all(len(found.get(name, ())) > before.get(name, 0) for name in TENANTS) and found

        found = until(done)
        return {name: found[name][before.get(name, 0) :] for name in TENANTS}


@pytest.fixture
def fleet(database, tmp_path):
    del database
    folders = make_nodes(tmp_path, NODES)
    for folder in folders:
        with (folder / "fleetcast.toml").open("a") as settings:
            settings.write("store.compact_after_seconds = 1\n")
    with opened(DataDirectory(folders[0]), os.environ) as installation:
        keys = {name: str(new_tenant(installation, name)[1].text) for name in TENANTS}
    with serving(folders) as services:
        yield Fleet(folders, services, keys), services


def share_by_one(doers):
    """Share of compactions that the node did that did most of its plane."""
    most = sum(max(map(nodes.count, nodes)) for nodes in doers.values())
    return most / sum(map(len, doers.values()))


def test_each_plane_is_compacted_by_one_node_and_by_another_once_that_is_gone(fleet):
    house, services = fleet
    house.compacted_anew(range(NODES))  # until all have heard of each other
    doers = house.compacted_anew(range(NODES))
    assert share_by_one(doers) >= MOSTLY
    assert len({nodes[-1] for nodes in doers.values()}) > 1
    gone = doers[TENANTS[0]][-1]
    for process in services[gone].processes():
        os.kill(process, signal.SIGKILL)
    services[gone].process.wait()
    left = [node for node in range(NODES) if node != gone]
    house.compacted_anew(left)  # until a lease that it held has run out
    doers = house.compacted_anew(left)
    assert share_by_one(doers) >= MOSTLY
    assert all(gone not in nodes for nodes in doers.values())
    for tenants in house.tenants.values():
        assert len(tenants[left[0]].rows(fields="n")) == house.rounds
