"""Rows a second that three nodes acknowledge, and whose CPU they take."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

from benches.cluster.databases import database_cpu_seconds
from benches.goals.table import Line, rate
from benches.harness.measure import cpu_seconds_of, with_children
from benches.harness.servers import Driven, http_driven
from benches.inputs import fleet
from tests.cluster.nodes import make_nodes
from tests.service import service

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NODES = 3
CONNECTIONS = 4  # to each node
CONNECTIONS_ALONE = 8  # as many as it has threads
ROUNDS = 3
WORKERS = ("--workers", "2", "--threads", "4")
TENANTS = ("shared", *(f"own-{number}" for number in range(NODES)))


def keys_of(data: Path) -> dict[str, str]:
    """A key of each tenant, which are made."""
    for tenant in TENANTS:
        service.command(data, "tenant", "create", tenant)
    return {tenant: service.create_key(data, tenant) for tenant in TENANTS}


class Measured:
    """Services that are driven together, and the figures of each round."""

    def __init__(
        self, driven: Sequence[Driven], nodes: Sequence[int], *, is_shared: bool = True
    ) -> None:
        self._driven, self._nodes, self._is_shared = driven, nodes, is_shared
        self.begin()

    def begin(self) -> None:
        """Forgets what was measured so far."""
        self.rows: list[float] = []
        """A second."""
        self.p50: list[float] = []
        self.cpu: dict[str, float] = dict.fromkeys(("nodes", "PostgreSQL", "client"), 0.0)
        self.stored = 0

    def drive(self, connections: int, seconds: float) -> None:
        """All of them at once."""
        ours = [process for node in self._nodes for process in with_children(node)]
        before = cpu_seconds_of(ours), database_cpu_seconds()
        with ThreadPoolExecutor(len(self._driven)) as pool:
            done = list(pool.map(lambda each: each.drive(connections, seconds), self._driven))
        self.cpu["nodes"] += cpu_seconds_of(ours) - before[0]
        if self._is_shared:
            self.cpu["PostgreSQL"] += database_cpu_seconds() - before[1]
        self.cpu["client"] += sum(each["client_cpu_seconds"] for each in done)
        rows = fleet.BODY_RECORDS * sum(each["requests"] for each in done)
        self.stored += rows
        self.rows.append(rows / max(each["seconds"] for each in done))
        self.p50.append(statistics.median(each["p50_seconds"] for each in done))

    def line(self, figure: str, embedded: Measured | None) -> Line:
        """Rows a second, beside those of the embedded store."""
        mine = statistics.median(self.rows)
        total = sum(self.cpu.values())
        shares = ", ".join(f"{name} {used / total:.0%}" for name, used in self.cpu.items() if used)
        ours = sum(self.cpu.values()) - self.cpu["client"]
        text = (
            f"{figure}; p50 {1e3 * statistics.median(self.p50):.1f} ms; CPU: {shares}; "
            f"{self.stored / ours / 1e6:.2f} M rows a CPU second of servers"
        )
        if embedded is None:
            return Line(text, rate(mine))
        other = statistics.median(embedded.rows)
        return Line(text, rate(mine), f"embedded: {rate(other)}", mine / other)


def write_lines(folder: Path, seconds: float) -> list[Line]:
    """Bodies of 1,000 rows to three nodes and to one machine, in turns."""
    homes = make_nodes(folder, NODES)
    keys = keys_of(homes[0])
    alone = folder / "alone"
    service.command(alone, "init")
    own = keys_of(alone)
    with ExitStack() as left:

        def started(data: Path) -> service.Service:
            running = service.start(data, "", *WORKERS)
            left.callback(running.stop)
            return running

        def driven(running: service.Service, key: str) -> Driven:
            made = http_driven(running.process.pid, running.address, key)
            left.callback(made.close)
            return made

        nodes = [started(home) for home in homes]
        one = started(alone)
        pids = [node.process.pid for node in nodes]
        shared = Measured([driven(node, keys["shared"]) for node in nodes], pids)
        apart = Measured(
            [driven(node, keys[f"own-{number}"]) for number, node in enumerate(nodes)], pids
        )
        embedded = Measured([driven(one, own["shared"])], [one.process.pid], is_shared=False)
        for turn in range(ROUNDS + 1):
            if turn == 1:  # what came before was to warm up
                for each in (shared, apart, embedded):
                    each.begin()
            shared.drive(CONNECTIONS, seconds)
            apart.drive(CONNECTIONS, seconds)
            embedded.drive(CONNECTIONS_ALONE, seconds)
    of = f"{NODES} nodes over HTTP, bodies of {fleet.BODY_RECORDS:,} rows"
    return [
        shared.line(f"rows a second acknowledged at quorum, {of}, one tenant", embedded),
        apart.line(f"the same, a tenant for each node, {of}", embedded),
        embedded.line("rows a second of the embedded store", None),
    ]
