"""Clients that write and read at full speed, and go on when a worker is killed under them.

Used by a short test and by `benches/service/load.py`, which goes on for a minute.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetcast.engine import format_time

from .service import kill

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .service import Service

RECORDS = 50
WRITERS = 4
READERS = 2
START_NS = 1_790_000_000_000_000_000
STEP_NS = 1_000_000
HOUR_NS = 3_600 * 1_000_000_000


@dataclass
class Tally:
    """Outcomes of the requests of one client."""

    statuses: Counter[int] = field(default_factory=Counter)
    resets: list[float] = field(default_factory=list)
    """Instants at which a connection broke, by `time.monotonic`."""
    acknowledged: set[int] = field(default_factory=set)
    """Numbers of the batches that were answered 202."""


class Client(threading.Thread):
    """Sends one request after the other until it is stopped; a broken connection is opened anew."""

    def __init__(self, service: Service, name: str) -> None:
        super().__init__(name=name)
        self.service = service
        self.tally = Tally()
        self._stop_now = threading.Event()

    def run(self) -> None:
        connection = self.service.connect()
        while not self._stop_now.is_set():
            try:
                self.ask(connection)
            except (ConnectionError, http.client.HTTPException):
                self.tally.resets.append(time.monotonic())
                connection.close()
        connection.close()

    def ask(self, connection: http.client.HTTPConnection) -> None:
        """One request."""
        raise NotImplementedError

    def stop(self) -> None:
        self._stop_now.set()


class Writer(Client):
    """Numbered batches: each has one record of its own, and records of other entities."""

    number = -1

    def ask(self, connection: http.client.HTTPConnection) -> None:
        self.number += 1
        answer = self.service.post(self.batch(self.number), connection=connection)
        self.tally.statuses[answer.status] += 1
        if answer.status == 202:
            assert answer.json["accepted_count"] == RECORDS
            self.tally.acknowledged.add(self.number)

    def batch(self, number: int) -> list[dict]:
        moment = format_time(START_NS + number * STEP_NS)
        return [
            {
                "measurement": "link",
                "time": moment,
                "tags": {"entity_id": f"{self.name}-{row}" if row else self.name},
                "fields": {"number": number},
            }
            for row in range(RECORDS)
        ]


class Reader(Client):
    """The newest samples, and what one entity has sent."""

    turn = 0

    def ask(self, connection: http.client.HTTPConnection) -> None:
        self.turn += 1
        span = f"start={format_time(START_NS)}&end={format_time(START_NS + HOUR_NS)}"
        series = f"/topology/series?entity_id=w0&{span}&measurement=link&interval=1m"
        path = series if self.turn % 2 else "/topology?measurement=link"
        answer = self.service.request("GET", path, connection=connection)
        self.tally.statuses[answer.status] += 1


@contextmanager
def load(service: Service) -> Iterator[Sequence[Client]]:
    """Writers and readers at work; all have ended when this has."""
    clients: list[Client] = [Writer(service, f"w{n}") for n in range(WRITERS)]
    clients += [Reader(service, f"r{n}") for n in range(READERS)]
    for client in clients:
        client.start()
    try:
        yield clients
    finally:
        for client in clients:
            client.stop()
        for client in clients:
            client.join()


def kill_a_worker(service: Service, turn: int) -> float:
    """kill -9 of one HTTP worker; returns when that was."""
    workers = service.workers("http")
    moment = time.monotonic()
    kill(workers[turn % len(workers)])
    return moment


def stored_numbers(service: Service, writer: str) -> Counter[int]:
    """The number of times that each batch of a writer is stored, read page by page."""
    found: Counter[int] = Counter()
    start = format_time(START_NS)
    while start is not None:
        answer = service.get(
            "/topology/series",
            entity_id=writer,
            start=start,
            end=format_time(START_NS + HOUR_NS),
            measurement="link",
            fields="number",
        )
        assert answer.status == 200, answer.body
        found.update(map(int, answer.json["series"][0]["channels"].get("number", [])))
        start = answer.json["next_start"]
    return found


def verdict(service: Service, clients: Sequence[Client], kills: Sequence[float]) -> dict[str, int]:
    """Counts, each of which has a meaning that `benches/service/load.py` prints."""
    statuses: Counter[int] = sum((client.tally.statuses for client in clients), Counter())
    resets = [moment for client in clients for moment in client.tally.resets]
    lost = doubled = uncertain = stored = acknowledged = 0
    for writer in clients:
        if isinstance(writer, Writer):
            found = stored_numbers(service, writer.name)
            known = writer.tally.acknowledged
            lost += len(known - found.keys())
            doubled += sum(count > 1 for count in found.values())
            uncertain += len(found.keys() - known)
            stored += len(found)
            acknowledged += len(known)
    usage = service.get("/account/state").json["usage"]
    return {
        "batches acknowledged": acknowledged,
        "of them lost": lost,
        "of them stored twice": doubled,
        "batches stored whose answer was lost with the worker": uncertain,
        "records stored": usage["records_accepted_total"],
        "records that these batches have": stored * RECORDS,
        "reads answered": statuses[200],
        "answers other than 200 and 202": statuses.total() - statuses[200] - statuses[202],
        "workers killed": len(kills),
        "connections broken": len(resets),
        "of them not within a second of a kill": sum(
            not any(kill <= moment < kill + 1.0 for kill in kills) for moment in resets
        ),
    }
