"""Many tenants on one machine: memory, descriptors, latency, scrape and upkeep beside one tenant's.

    python -m benches.service.tenants [--tenants 10000] [--active 1000] [--seconds 20] [--turn 1]

Provisions tenants with a key each, starts the real service with its limits off, and then

1. writes for one tenant alone, which is the reference,
2. lets each tenant in turn be active for `--turn` seconds divided by the clients, so that ten
   thousand of them take minutes and not hours: its first write, then some more, and a read,
3. waits until their stores have been closed again, and measures what they cost at rest: memory of
   every process beside that at the start, a scrape of the metrics, maintenance's share of a core,
4. writes for `--active` tenants at once, at the same number of clients as in 1.

At the end the service's own counts of some tenants are compared with what was sent.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import os
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benches.harness.measure import cpu_seconds_of
from benches.harness.paths import TARGET
from fleetcast.accounts import SCOPES
from fleetcast.engine import encode_records
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.making import make_data_directory
from fleetcast.installation.opening import opened
from tests.service.service import Service, ask, start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CLIENTS = 4
RECORDS = 10
REST_SECONDS = 75.0  # stores are closed after a minute
SCRAPES = 5
WATCH_SECONDS = 20.0
COUNTED = 20
REST_BYTES_GOAL = 30_000
ACTIVE_BYTES_GOAL = 1_000_000_000
P99_GOAL = 2.0
SCRAPE_SECONDS_GOAL = 0.1


@dataclass
class Account:
    """A tenant as a client knows it."""

    name: str
    key: str
    sent: int = 0
    """Requests with its key."""
    lock: threading.Lock = field(default_factory=threading.Lock)


def provision(data: Path, count: int) -> list[Account]:
    directory = DataDirectory(data)
    make_data_directory(directory, "sandbox", {})
    accounts = []
    with opened(directory, {}) as installation:
        for number in range(count):
            name = f"tenant-{number:05}"
            installation.tenants.create(name)
            issued = installation.keys.create(name, scopes=SCOPES, environment="sandbox")
            accounts.append(Account(name, str(issued.text)))
    return accounts


class Client:
    """One connection that speaks for any tenant."""

    def __init__(self, service: Service) -> None:
        self._connection = http.client.HTTPConnection(service.address, timeout=60)
        self._bodies = itertools.cycle(
            encode_records(
                {
                    "measurement": "link",
                    "time": f"2026-01-01T00:{minute:02}:00Z",
                    "tags": {"entity_id": f"link-{number}"},
                    "fields": {"snr_db": float(minute), "utilization": number / 10},
                }
                for number in range(RECORDS)
            )
            for minute in range(60)
        )

    def write(self, account: Account) -> float:
        return self._ask(account, "POST", "/telemetry", next(self._bodies), 202)

    def read(self, account: Account) -> float:
        return self._ask(account, "GET", "/topology?freshness_seconds=604800", None, 200)

    def _ask(
        self, account: Account, method: str, path: str, body: bytes | None, status: int
    ) -> float:
        fields = {"X-Api-Key": account.key, "Content-Type": "application/json"}
        began = time.perf_counter()
        self._connection.request(method, path, body=body, headers=fields)
        answer = self._connection.getresponse()
        text = answer.read()
        seconds = time.perf_counter() - began
        assert answer.status == status, (account.name, answer.status, text)
        with account.lock:
            account.sent += 1
        return seconds

    def close(self) -> None:
        self._connection.close()


def in_parallel(service: Service, work: Callable[[Client, int], None]) -> None:
    """Runs `work` for each of the clients; raises what one of them raised."""
    failures: list[BaseException] = []

    def run(number: int) -> None:
        client = Client(service)
        try:
            work(client, number)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)
        finally:
            client.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def writes_in_turn(service: Service, accounts: Sequence[Account], seconds: float) -> list[float]:
    """Latencies of writes to all `accounts`, one after the other, over and over."""
    latencies: list[float] = []

    def work(client: Client, number: int) -> None:
        mine = itertools.cycle(accounts[number % len(accounts) :: CLIENTS] or accounts)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            latencies.append(client.write(next(mine)))

    in_parallel(service, work)
    return latencies


def one_after_the_other(
    service: Service, accounts: Sequence[Account], seconds: float
) -> tuple[list[float], list[float]]:
    """Latencies of each tenant's first write, and of what it does in the rest of its turn."""
    first: list[float] = []
    others: list[float] = []

    def work(client: Client, number: int) -> None:
        for account in accounts[number::CLIENTS]:
            until = time.monotonic() + seconds
            first.append(client.write(account))
            client.read(account)
            while True:
                others.append(client.write(account))
                if time.monotonic() >= until:
                    break

    in_parallel(service, work)
    return first, others


def names(service: Service) -> dict[int, str]:
    """Role of each process of the service."""
    found = {}
    for pid in service.processes():
        command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        module = next((part for part in command if part.startswith("fleetcast.supervisor.")), "")
        kind = module.removeprefix("fleetcast.supervisor.").removesuffix("_child") or "supervisor"
        found[pid] = kind
    return found


def memory_bytes(pid: int) -> int:
    """The private and proportionally shared memory of a process."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def memory(service: Service) -> dict[int, int]:
    return {pid: memory_bytes(pid) for pid in service.processes()}


def descriptors(service: Service) -> dict[int, int]:
    return {pid: len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in service.processes()}


def scrape_seconds(service: Service, count: int) -> float:
    """The median of some scrapes, one second apart, once all stores have been read."""
    text = ""
    while text.count("\nfleetcast_tenant_up{") < count:
        text = ask(service, "/metrics").body.decode()
    seconds = []
    for _ in range(SCRAPES):
        began = time.perf_counter()
        assert ask(service, "/metrics").status == 200
        seconds.append(time.perf_counter() - began)
        time.sleep(1)
    return statistics.median(seconds)


def p99(latencies: Sequence[float]) -> float:
    return statistics.quantiles(latencies, n=100)[98]


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms"


def kinds(service: Service, values: dict[int, float]) -> Iterator[tuple[str, float]]:
    """The largest value of each kind of process."""
    largest: dict[str, float] = {}
    for pid, kind in names(service).items():
        largest[kind] = max(largest.get(kind, 0.0), values.get(pid, 0.0))
    yield from largest.items()


def row(figure: str, value: str, goal: str = "", *, met: bool | None = None) -> None:
    verdict = {None: "", True: "met", False: "missed"}[met]
    print(f"{figure:<58} {value:>16}  {goal:<24} {verdict}".rstrip(), flush=True)


def measure(service: Service, accounts: Sequence[Account], options: argparse.Namespace) -> None:
    count = len(accounts)
    at_start = memory(service)
    row("memory of all processes at the start", f"{sum(at_start.values()) / 1e6:,.0f} MB")
    alone = writes_in_turn(service, accounts[:1], options.seconds)
    row("p50 of a write, one tenant", ms(statistics.median(alone)))
    row("p99 of a write, one tenant", ms(p99(alone)))

    first, others = one_after_the_other(service, accounts, options.turn / CLIENTS)
    row(f"p50 of a tenant's first write, {count:,} in turn", ms(statistics.median(first)))
    row("p99 of a tenant's first write", ms(p99(first)))
    row("p99 of its other writes", ms(p99(others)))
    for kind, value in kinds(service, dict(descriptors(service))):
        row(f"descriptors of {kind} then", f"{value:,.0f}")

    time.sleep(REST_SECONDS)
    at_rest = memory(service)
    grown = {pid: (at_rest[pid] - at_start.get(pid, 0)) / count for pid in at_rest}
    for kind, value in kinds(service, grown):
        met = value <= REST_BYTES_GOAL
        row(f"a resting tenant's memory in {kind}", f"{value:,.0f} B", "<= 30,000 B", met=met)
    for kind, value in kinds(service, dict(descriptors(service))):
        row(f"descriptors of {kind} at rest", f"{value:,.0f}")
    scrape = scrape_seconds(service, count)
    row("a scrape", ms(scrape), "<= 100 ms", met=scrape <= SCRAPE_SECONDS_GOAL)
    upkeep = service.arbiter("maintenance")
    before = cpu_seconds_of([upkeep])
    time.sleep(WATCH_SECONDS)
    share = (cpu_seconds_of([upkeep]) - before) / WATCH_SECONDS
    row("maintenance's share of a core at rest", f"{share:.1%}")

    active = accounts[: options.active]
    writes_in_turn(service, active, options.seconds / 2)  # their stores are opened
    together = writes_in_turn(service, active, options.seconds)
    ratio = p99(together) / p99(alone)
    row(f"p50 of a write, {len(active):,} tenants at once", ms(statistics.median(together)))
    row(f"p99 of a write, {len(active):,} tenants at once", ms(p99(together)))
    row("  beside one tenant's", f"{ratio:.2f} x", "<= 2 x", met=ratio <= P99_GOAL)
    total = sum(memory(service).values())
    row("memory of all processes then", f"{total / 1e6:,.0f} MB", "<= 1,000 MB",
        met=total <= ACTIVE_BYTES_GOAL)  # fmt: skip
    for kind, value in kinds(service, dict(descriptors(service))):
        row(f"descriptors of {kind} then", f"{value:,.0f}")


def check_usage(service: Service, accounts: Sequence[Account]) -> None:
    """The service counted what was sent, also for the last of many."""
    for account in accounts[:: max(len(accounts) // COUNTED, 1)]:
        answer = service.get("/account/state", key=account.key)
        assert answer.json["usage"]["requests_total"] == account.sent, account.name
    row("tenants whose requests were counted exactly", "all looked at")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenants", type=int, default=10_000)
    parser.add_argument("--active", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--turn", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        data = Path(folder) / "data"
        print(f"load before the run {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
        began = time.perf_counter()
        accounts = provision(data, options.tenants)
        seconds = time.perf_counter() - began
        rate = f"{1e3 * seconds / len(accounts):.1f} ms"
        row(f"provisioning, each of {len(accounts):,} tenants with a key", rate)
        began = time.perf_counter()
        service = start(data, accounts[0].key, "--admin", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
        row("start", f"{time.perf_counter() - began:.1f} s")
        try:
            measure(service, accounts, options)
            check_usage(service, accounts)
        finally:
            service.stop()


if __name__ == "__main__":
    main()
