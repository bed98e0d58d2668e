"""Batches a second of many tenants on three nodes, and of servers at a distance."""

from __future__ import annotations

import http.client
import itertools
import os
import statistics
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from benches.goals.table import Line
from benches.inputs import fleet
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.cluster.nodes import make_nodes, serving
from tests.cluster.relay import Relay
from tests.service.service import new_tenant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NODES, TENANTS, FEW_TENANTS = 3, 300, 10
CONNECTIONS, RECORDS = 24, 10
ROUNDS = 3
WORKERS = ("--workers", "2", "--threads", "4")
LATE_SECONDS = 0.001
"""Each way."""
DISTANT = ((1, 4), (1, 16), (8, 2))
"""Tenants, and connections of each."""


class Target(NamedTuple):
    """Address and key for the batches of a tenant."""

    address: str
    key: str


class Sender(threading.Thread):
    """Sends a body to its targets in turn, over a connection to each address."""

    def __init__(self, targets: Sequence[Target], body: bytes, until: float) -> None:
        super().__init__()
        self._targets, self._body, self._until = itertools.cycle(targets), body, until
        self.batches = 0
        self.start()

    def run(self) -> None:
        with ExitStack() as left:
            connections: dict[str, http.client.HTTPConnection] = {}
            while time.monotonic() < self._until:
                target = next(self._targets)
                connection = connections.get(target.address)
                if connection is None:
                    connection = http.client.HTTPConnection(target.address)
                    connections[target.address] = connection
                    left.callback(connection.close)
                head = {"X-Api-Key": target.key, "Content-Type": "application/json"}
                connection.request("POST", "/telemetry", self._body, head)
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 202, answer.status
                self.batches += 1


def batches_a_second(targets: Sequence[Sequence[Target]], records: int, seconds: float) -> float:
    """The rate of acknowledged batches of senders at once, each with targets of its own."""
    body = fleet.Walk(records).body(fleet.START)
    began = time.monotonic()
    senders = [Sender(each, body, began + seconds) for each in targets]
    for sender in senders:
        sender.join()
    return sum(sender.batches for sender in senders) / (time.monotonic() - began)


def tenant_lines(folder: Path, seconds: float) -> list[Line]:
    """Many tenants on three nodes beside few on one of them, in turns."""
    homes = make_nodes(folder, NODES)
    keys = _keys(homes[0], TENANTS)
    with serving(homes, *WORKERS) as nodes:
        many = [Target(nodes[at % NODES].address, key) for at, key in enumerate(keys)]
        few = [Target(nodes[0].address, key) for key in keys[:FEW_TENANTS]]
        many_targets = [many[first::CONNECTIONS] for first in range(CONNECTIONS)]
        few_targets = [[few[first % FEW_TENANTS]] for first in range(CONNECTIONS)]
        rates = [
            [batches_a_second(each, RECORDS, seconds) for each in (many_targets, few_targets)]
            for _ in range(ROUNDS + 1)
        ][1:]  # the first is to warm up
    ours, alone = (statistics.median(each) for each in zip(*rates, strict=True))
    figure = f"batches of {RECORDS} records a second, {NODES} nodes, {TENANTS} tenants"
    reference = f"one node, {FEW_TENANTS} tenants: {alone:,.0f}"
    return [Line(figure, f"{ours:,.0f}", reference, ours / alone, ">= 1x", ours >= alone)]


def distance_lines(folder: Path, seconds: float) -> list[Line]:
    """One node whose servers answer late, beside the same without, in turns."""
    with ExitStack() as left:
        relays = _relays(left)
        homes = make_nodes(folder, 1)
        keys = _keys(homes[0], max(tenants for tenants, _ in DISTANT))
        [node] = left.enter_context(serving(homes))
        return [_distance_line(relays, node.address, keys, case, seconds) for case in DISTANT]


def _distance_line(
    relays: Sequence[Relay],
    address: str,
    keys: list[str],
    case: tuple[int, int],
    seconds: float,
) -> Line:
    tenants, connections = case
    targets = [[Target(address, key)] for key in keys[:tenants] for _ in range(connections)]
    rates: dict[float, list[float]] = {0.0: [], LATE_SECONDS: []}
    for _ in range(ROUNDS + 1):
        for late_seconds, of_case in rates.items():
            for relay in relays:
                relay.late_seconds = late_seconds
            of_case.append(batches_a_second(targets, fleet.BODY_RECORDS, seconds))
    near, far = (statistics.median(of_case[1:]) for of_case in rates.values())
    figure = f"bodies a second, servers a millisecond away, {tenants} x {connections} connections"
    return Line(
        figure, f"{far:,.0f}", f"0 ms: {near:,.0f}", far / near, ">= 90%", far >= 0.9 * near
    )


def _relays(left: ExitStack) -> list[Relay]:
    """A relay before each server; `DATABASE` names them from then on."""
    scheme, _, rest = os.environ["DATABASE"].partition("@")
    hosts, _, path = rest.partition("/")
    relays = []
    for host in hosts.split(","):
        relay = left.enter_context(Relay())
        relay.open(host)
        relays.append(relay)
    left.callback(os.environ.__setitem__, "DATABASE", os.environ["DATABASE"])
    addresses = ",".join(relay.address for relay in relays)
    os.environ["DATABASE"] = f"{scheme}@{addresses}/{path}"
    return relays


def _keys(home: Path, count: int) -> list[str]:
    """Keys of so many new tenants."""
    with opened(DataDirectory(home), os.environ) as installation:
        made = (new_tenant(installation, f"tenant-{number}") for number in range(count))
        return [str(issued.text) for _, issued in made]
