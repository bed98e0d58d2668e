"""kill -9 of the whole service while it writes: nothing acknowledged is lost or half there.

The page cache survives a kill, so this is about our own order of writing, not about fsync.
"""

from __future__ import annotations

import http.client
import threading
from collections import Counter

from fleetcast.engine import format_time

from .service import Service, prepare, start

ROUNDS = 20
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


def test_killed_while_writing(tmp_path) -> None:
    """F1, F8, E4: every acknowledged batch is there after kill -9, and no batch in part."""
    data = tmp_path / "data"
    key = prepare(data)
    numbers = {f"w{n}": 0 for n in range(WRITERS)}
    acknowledged: dict[str, set[int]] = {entity: set() for entity in numbers}
    options = ("--set", "limits.history_horizon_days=3650")
    for round_number in range(ROUNDS):
        service = start(data, key, *options)
        count = threading.Semaphore(0)
        writers = [Writer(service, entity, first, count) for entity, first in numbers.items()]
        for writer in writers:
            writer.start()
        for _ in range(5 + 3 * round_number):
            count.acquire()
        service.kill()
        for writer in writers:
            writer.join()
            numbers[writer.entity] = writer.number
            acknowledged[writer.entity].update(writer.acknowledged)

    service = start(data, key, *options)
    try:
        for entity, expected in acknowledged.items():
            found = stored(service, entity)
            assert expected <= set(found), f"lost: {sorted(expected - set(found))}"
            assert set(found.values()) == {RECORDS}, "a batch is there in part"
    finally:
        service.stop()
    assert sum(map(len, acknowledged.values())) >= ROUNDS
