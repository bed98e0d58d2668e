"""How long a tenant waits while another one does its worst, in each of fifteen ways.

    python -m benches.neighbours [--seconds 10] [--rounds 3] [--attack NAME]… [--hour]
        [--before DIR]

The real service with its default settings, but for the limit of requests per address: both tenants
come from this machine. In turns a quiet phase and one under attack, so that what disturbs the
machine disturbs both. The neighbour (`steady.py`) posts 100 records ten times a second, calls gRPC
with 100 five times a second and reads its newest samples and a series ten times a second; it checks
every answer, and at the end that each record is there once. Each attack (`attacks.py`) has a tenant
of its own and the lowest priority, so that it is the service that is measured and not the load.
`--hour` goes on with the attacks in turn for an hour and prints the memory of all processes.

Exits with 1 where anything of the neighbour was refused, lost, or stored twice.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benches.harness.child import Child, module
from benches.harness.measure import cpu_seconds_of, with_children
from benches.harness.paths import TARGET
from benches.harness.servers import package
from tests.service.service import Service, command, create_key, prepare, start

if TYPE_CHECKING:
    from collections.abc import Iterator

# The names alone: what each of them does needs libraries that are slow to load.
ATTACKS = (
    "wide records",
    "new names without end",
    "gRPC calls that never send",
    "slow readers",
    "full-span series",
    "100 unknown predictions a request",
    "one instant for ever",
    "clock jumps",
    "compaction debt",
    "1 MiB bodies at full speed",
    "2,000 refused calls a second",
    "calls reset at once",
    "pings without end",
    "5,000 silent connections",
    "handshakes without end",
)
KINDS = ("write", "read", "grpc")
SETTLE_SECONDS = 2.0  # between phases: what is under way ends
SAMPLE_SECONDS = 0.5
HOUR_SECONDS = 3600.0
GOAL = 2.0
MEGABYTE = 1e6


class Memory:
    """Memory of all processes of the service, looked at twice a second; shared pages count once."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._peak = self.total_peak = self.process_peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def peak(self) -> int:
        """The most since it was last asked, in bytes."""
        self._peak, peak = 0, self._peak
        return peak

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            sizes = [proportional_bytes(process) for process in self._service.processes()]
            self._peak = max(self._peak, sum(sizes))
            self.total_peak = max(self.total_peak, sum(sizes))
            self.process_peak = max(self.process_peak, *sizes)


def proportional_bytes(process: int) -> int:
    """PSS of a process, 0 where it has ended meanwhile."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


@dataclass
class Phases:
    """Latencies and faults of the neighbour in the phases of one kind, of all rounds."""

    latencies: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, answer: dict) -> None:
        for kind, seconds in answer["latencies"].items():
            self.latencies[kind] += seconds
        self.wrong.update(answer["wrong"])

    def p99(self, kind: str) -> float:
        return statistics.quantiles(self.latencies[kind], n=100)[98]


@dataclass
class Result:
    """One attack: the neighbour without it and under it, and what it took."""

    name: str
    quiet: Phases = field(default_factory=Phases)
    hostile: Phases = field(default_factory=Phases)
    count: Counter[str] = field(default_factory=Counter)
    attacker_cpu_seconds: float = 0.0
    service_cpu_seconds: float = 0.0
    seconds: float = 0.0
    peak_bytes: int = 0

    def ratio(self, kind: str) -> float:
        return self.hostile.p99(kind) / self.quiet.p99(kind)

    def cells(self) -> list[str]:
        times = []
        for kind in KINDS:
            quiet, hostile = self.quiet.p99(kind) * 1e3, self.hostile.p99(kind) * 1e3
            times.append(f"{quiet:.1f} / {hostile:.1f} ms, {self.ratio(kind):.1f}x")
        wrong = self.quiet.wrong + self.hostile.wrong
        done = ", ".join(f"{count:,} {name}" for name, count in self.count.most_common(3))
        return [
            self.name,
            *times,
            str(wrong.total()),
            "met" if all(self.ratio(kind) <= GOAL for kind in KINDS) else "missed",
            f"{self.peak_bytes / MEGABYTE:,.0f} MB",
            f"{self.service_cpu_seconds / self.seconds:.0%}",
            f"{self.attacker_cpu_seconds / self.seconds:.0%}",
            done,
        ]


HEAD = [
    "attack",
    *(f"{kind} p99, quiet / attacked" for kind in ("write", "read", "gRPC")),
    "refused",
    f"<= {GOAL:g}x",
    "memory",
    "service CPU",
    "attacker CPU",
    "what it got",
]


class Ground:
    """The service, its neighbour and the tenants that attack."""

    def __init__(self, data: Path, site: Path | None) -> None:
        self.data = data
        key = prepare(data, "neighbour")
        with package(site):
            self.service = start(
                data,
                key,
                *("--grpc", "127.0.0.1:0", "--admin", "127.0.0.1:0"),
                *("--set", "limits.lockout_failures=10"),  # as it comes; the rate limit is off
            )
        ready = self.service.ready
        steady = (self.service.address, ready["grpc"], ready["grpc_ca"], key)
        self.neighbour = Child(module("benches.neighbours.steady", *steady))
        self.memory = Memory(self.service)

    def attacker(self, name: str) -> Child:
        """A tenant of its own for each attack: none is in the way of the next."""
        tenant = f"attack-{ATTACKS.index(name)}"
        target = {
            "address": self.service.address,
            "grpc": self.service.ready["grpc"],
            "grpc_ca": self.service.ready["grpc_ca"],
            "account": command(self.data, "tenant", "create", tenant)["account_id"],
            "key": create_key(self.data, tenant),
            "tenant": tenant,
            "data": str(self.data),
            "master_key": (self.data / "master.key").read_text().strip(),
        }
        return Child(module("benches.neighbours.attacks", name, json.dumps(target)))

    def alternate(self, name: str, rounds: int, seconds: float) -> Result:
        """Quiet and attacked in turn, as often as there are rounds."""
        result, attacker = Result(name), self.attacker(name)
        for _ in range(rounds):
            time.sleep(SETTLE_SECONDS)
            self.neighbour.tell(seconds=seconds)
            result.quiet.add(self.neighbour.answer())
            self.memory.peak()
            self.attack(result, attacker, seconds)
        attacker.close()
        return result

    def attack(self, result: Result, attacker: Child, seconds: float) -> None:
        """One phase under attack."""
        began, used = time.monotonic(), cpu_seconds_of(with_children(self.service.process.pid))
        attacker.tell(seconds=seconds)
        self.neighbour.tell(seconds=seconds)
        result.hostile.add(self.neighbour.answer())
        done = attacker.answer()
        result.count.update(done["count"])
        result.attacker_cpu_seconds += done["cpu_seconds"]
        now_used = cpu_seconds_of(with_children(self.service.process.pid))
        result.service_cpu_seconds += now_used - used
        result.seconds += time.monotonic() - began
        result.peak_bytes = max(result.peak_bytes, self.memory.peak())

    def hour(self, names: list[str], seconds: float) -> Counter[str]:
        """The attacks in turn for an hour; gives what was wrong with the neighbour's answers."""
        result = Result("the worst hour")
        until = time.monotonic() + HOUR_SECONDS
        attackers = {name: self.attacker(name) for name in names}
        while time.monotonic() < until:
            for name, attacker in attackers.items():
                self.attack(result, attacker, seconds)
                print(f"{result.peak_bytes / MEGABYTE:,.0f} MB after {name}", flush=True)
                result.peak_bytes = 0
        for attacker in attackers.values():
            attacker.close()
        return result.hostile.wrong

    def close(self) -> dict:
        """Looks every record up, and ends; gives the counts."""
        self.neighbour.tell(check=True)
        counts = self.neighbour.answer()
        self.service.stop()
        return counts


@contextmanager
def ground(site: Path | None) -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        measured = Ground(Path(folder) / "data", site)
        try:
            yield measured
        finally:
            measured.memory.close()
            measured.neighbour.close()
            if measured.service.process.poll() is None:
                measured.service.kill()


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each phase")
    parser.add_argument("--rounds", type=int, default=3, help="of quiet and attacked")
    parser.add_argument("--attack", action="append", choices=ATTACKS, help="only this one")
    parser.add_argument("--hour", action="store_true", help="the attacks in turn for an hour")
    parser.add_argument("--before", type=Path, help="folder of tools/before: that service instead")
    arguments = parser.parse_args()
    site = None if arguments.before is None else arguments.before / "site"
    names = arguments.attack or list(ATTACKS)
    wrong: Counter[str] = Counter()
    with ground(site) as measured:
        print(f"load before the run {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores\n")
        if arguments.hour:
            wrong += measured.hour(names, arguments.seconds)
        else:
            print(row(HEAD))
            print(row(["---"] * len(HEAD)))
            for name in names:
                result = measured.alternate(name, arguments.rounds, arguments.seconds)
                wrong += result.quiet.wrong + result.hostile.wrong
                print(row(result.cells()), flush=True)
        total, largest = measured.memory.total_peak, measured.memory.process_peak
        counts = measured.close()
    print("\nof the neighbour's records:", *(f"{n:,} {name}" for name, n in counts.items()))
    print(*(f"{count} x {name}" for name, count in wrong.most_common()), sep="\n")
    print(f"memory of all processes: {total / MEGABYTE:,.0f} MB at most,", end=" ")
    print(f"the largest of them {largest / MEGABYTE:,.0f} MB")
    harmed = wrong.total() + counts["lost"] + counts["twice"] + counts["strange"]
    raise SystemExit(int(harmed > 0))


if __name__ == "__main__":
    main()
