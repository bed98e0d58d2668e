"""kill -9 of the whole service while it writes and compacts: nothing acknowledged is lost or half
there.

The page cache survives a kill, so this is about our own order of writing, not about fsync.
`FAULTS=full` makes 200 rounds (`make faults`).
"""

from __future__ import annotations

import http.client
import multiprocessing
import os
import threading
from collections import Counter
from typing import TYPE_CHECKING

from fleetcast.engine import Engine, format_time
from tests.waiting import PATIENCE_SECONDS

from .service import Service, command, prepare, start

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event
    from pathlib import Path

ROUNDS = 200 if os.environ.get("FAULTS") == "full" else 6
WRITERS = 4
RECORDS = 50
START_NS = 1_790_000_000_000_000_000


class Writer(threading.Thread):
    """Posts numbered batches one after the other until the service goes away."""

    def __init__(self, service: Service, name: str, first: int, acknowledged) -> None:
        super().__init__()
        self.service, self.entity, self.number = service, name, first
        self.acknowledged: list[int] = []
        self.count = acknowledged

    def run(self) -> None:
        connection = self.service.connect()
        try:
            while True:
                answer = self.service.post(self.batch(self.number), connection=connection)
                assert answer.status == 202, answer.body
                self.acknowledged.append(self.number)
                self.number += 1
                self.count.release()
        except (OSError, http.client.HTTPException):
            self.number += 1
        finally:
            connection.close()

    def batch(self, number: int) -> list[dict]:
        first_ns = START_NS + number * RECORDS * 1_000_000
        return [
            {
                "measurement": "link",
                "time": format_time(first_ns + row * 1_000_000),
                "tags": {"entity_id": self.entity, "row": str(row)},
                "fields": {"number": number, f"row_{row % 7}": row / 10},
            }
            for row in range(RECORDS)
        ]


def stored(service: Service, entity: str) -> Counter:
    """Records by batch number, read through the API page by page."""
    found: Counter = Counter()
    start = format_time(START_NS)
    while start is not None:
        answer = service.get(
            "/topology/series",
            entity_id=entity,
            start=start,
            end=format_time(START_NS + 3_600_000_000_000),
            measurement="link",
            fields="number",
        )
        assert answer.status == 200, answer.body
        for value in answer.json["series"][0]["channels"].get("number", []):
            found[int(value)] += 1
        start = answer.json["next_start"]
    return found


def compact_for_ever(data: Path, started: Event) -> None:
    """As the maintenance process does it, less the waiting for something to be due."""
    engine = Engine(data / "planes", bytes.fromhex((data / "master.key").read_text()))
    (account,) = (data / "planes").iterdir()
    plane = engine.plane(account.name, "acme")
    started.set()
    while True:
        plane.compact(whole=True)


def test_killed_while_writing_and_compacting(tmp_path) -> None:
    """F1, F8, E4, stage 15: acknowledged batches are there after kill -9, and none in part."""
    data = tmp_path / "data"
    key = prepare(data)
    context = multiprocessing.get_context("spawn")
    numbers = {f"w{n}": 0 for n in range(WRITERS)}
    acknowledged: dict[str, set[int]] = {entity: set() for entity in numbers}
    options = ("--set", "limits.history_horizon_days=3650")
    for round_number in range(ROUNDS):
        service = start(data, key, *options)
        started = context.Event()
        compactor = context.Process(target=compact_for_ever, args=(data, started))
        compactor.start()
        assert started.wait(PATIENCE_SECONDS)
        count = threading.Semaphore(0)
        writers = [Writer(service, entity, first, count) for entity, first in numbers.items()]
        for writer in writers:
            writer.start()
        for _ in range(5 + 3 * (round_number % 20)):
            assert count.acquire(timeout=PATIENCE_SECONDS)
        compactor.kill()
        service.kill()
        compactor.join()
        for writer in writers:
            writer.join()
            numbers[writer.entity] = writer.number
            acknowledged[writer.entity].update(writer.acknowledged)

    service = start(data, key, *options)
    try:
        found = {entity: stored(service, entity) for entity in acknowledged}
    finally:
        service.stop()
    lost = sum(len(batches - set(found[entity])) for entity, batches in acknowledged.items())
    partial = sum(rows != RECORDS for batches in found.values() for rows in batches.values())
    (verified,) = command(data, "verify")["tenants"]
    (held,) = command(data, "stats")["tenants"]
    made = sum(map(len, acknowledged.values()))
    print(
        f"{ROUNDS} rounds of kill -9: {made} batches acknowledged, {lost} lost, {partial} in part;"
        f" {held['segments']} segments; {verified}"
    )
    assert (lost, partial) == (0, 0)
    assert made >= ROUNDS
    assert held["segments"] > 0
