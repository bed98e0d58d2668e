"""Figures of writing while others read."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

from benches.goals.table import Line
from benches.harness.paths import DATA
from benches.harness.servers import CONNECTIONS, Getter, http_driven, service
from benches.inputs import fleet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benches.goals.effort import Effort

SERIES_ENTITIES = 16
HELD_ANSWERS = 16


def mixed_lines(effort: Effort) -> list[Line]:
    """All of them, each tenant in a data directory of its own."""
    return [*ingest_lines(effort), *growth_lines(effort)]


@contextmanager
def serving(name: str) -> Iterator[tuple[Path, service.Service]]:
    """The service in a fresh data directory."""
    data = DATA / name
    with service.running(data, "--workers", "2", "--threads", "4") as running:
        yield data, running


@contextmanager
def reading(running: service.Service) -> Iterator[list[int]]:
    """Reads newest samples and windows without pause; the counts of both."""
    since = f"{datetime.now(UTC) - timedelta(minutes=10):%Y-%m-%dT%H:%M:%SZ}"
    ids = [fleet.entity_id(number * 61) for number in range(SERIES_ENTITIES)]
    window = {"start": since, "interval": "1m", "agg": "mean", "measurement": fleet.MEASUREMENT}
    done, counts = threading.Event(), [0, 0]

    def read(index: int, path: str, **parameters: object) -> None:
        getter = Getter(running.address, running.key)
        while not done.is_set():
            getter.get(path, **parameters)
            counts[index] += 1
        getter.close()

    threads = [
        threading.Thread(target=read, args=(0, "/topology"), kwargs={"freshness_seconds": 3_600}),
        threading.Thread(
            target=read, args=(1, "/topology/series"), kwargs={"entity_id": ids, **window}
        ),
    ]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        done.set()
        for thread in threads:
            thread.join()


def ingest_lines(effort: Effort) -> list[Line]:
    """Bodies a second over HTTP, alone and while both reads run."""
    rates: dict[str, list[float]] = {"alone": [], "beside reads": []}
    reads = [0, 0]
    seconds = 0.0
    with serving("mixed") as (_, running):
        driven = http_driven(running.process.pid, running.address, running.key)
        driven.drive(CONNECTIONS, effort.drive_seconds / 2)
        for _ in range(effort.drive_rounds):
            drive = driven.drive(CONNECTIONS, effort.drive_seconds)
            rates["alone"].append(drive["requests"] / drive["seconds"])
            with reading(running) as counts:
                drive = driven.drive(CONNECTIONS, effort.drive_seconds)
            rates["beside reads"].append(drive["requests"] / drive["seconds"])
            reads = [total + count for total, count in zip(reads, counts, strict=True)]
            seconds += drive["seconds"]
        driven.close()
    records = {name: median(rate) * fleet.BODY_RECORDS for name, rate in rates.items()}
    newest, windows = (count / seconds for count in reads)
    return [
        Line.at_least(
            "ingest while both reads run without pause, records per second",
            records["beside reads"], "ingest alone", records["alone"], 0.85,
        ),
        Line("reads meanwhile", f"{newest:.0f} + {windows:.0f} per second"),
    ]  # fmt: skip


def growth_lines(effort: Effort) -> list[Line]:
    """Bytes on disk per body written, without readers and with some that hold their answers."""
    per_body = {}
    for name, held in (("free", 0), ("held", HELD_ANSWERS)):
        with serving(name) as (data, running), ExitStack() as stack:
            driven = http_driven(running.process.pid, running.address, running.key)
            driven.drive(1, 0.5)
            before = disk_bytes(data)
            for _ in range(held):
                stack.enter_context(held_answer(running))
            drive = driven.drive(CONNECTIONS, effort.held_seconds)
            per_body[name] = (disk_bytes(data) - before) / drive["requests"]
            driven.close()
    ratio = per_body["held"] / per_body["free"]
    return [
        Line(
            f"disk growth per body, {HELD_ANSWERS} answers held open for "
            f"{effort.held_seconds:.0f} s of full ingest",
            f"{per_body['held'] / 1e3:.2f} kB", f"without: {per_body['free'] / 1e3:.2f} kB",
            ratio, "<= 1.1x", ratio <= 1.1,
        ),
    ]  # fmt: skip


@contextmanager
def held_answer(running: service.Service) -> Iterator[None]:
    """An answer of which only the first bytes are taken."""
    host, _, port = running.address.rpartition(":")
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.connect((host, int(port)))
        connection.sendall(
            f"GET /topology?freshness_seconds=3600 HTTP/1.1\r\nHost: {running.address}\r\n"
            f"X-Api-Key: {running.key}\r\n\r\n".encode()
        )
        assert b" 200 " in connection.recv(64)
        yield


def disk_bytes(data: Path) -> int:
    """Bytes that the tenants' stores take on disk now."""
    files = [path for path in (data / "planes").rglob("*") if path.is_file()]
    return sum(path.stat().st_blocks * 512 for path in files)
