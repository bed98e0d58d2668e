"""A tenant that writes and reads at its own pace and checks every answer, in a process of its own.

Arguments: address, gRPC address, certificate of the authority, key. Each line on stdin is answered
by one on stdout: `{"seconds": 10}` by the latencies of that time and what was wrong, `{"check":
true}` by what became of every record. Latencies count from when a request was due, so that waiting
for an earlier one is seen.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import grpc

from benches.harness.driving import answer_commands
from fleetcast.client.records import encode_record
from fleetcast.client.times import time_ns
from fleetcast.engine import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

METHOD = "/fleet.telemetry.v1.TelemetryIngest/Write"
RECORDS = 100
WRITES_PER_SECOND, READS_PER_SECOND, CALLS_PER_SECOND = 10, 10, 5
TIMEOUT_SECONDS = 30
SECOND_NS, HOUR_NS = 10**9, 3600 * 10**9
ENTITIES_A_REQUEST = 16
LATE_SECONDS_MAX = 30.0
NICENESS = -10  # where it is allowed: the time in which this client waits for a core is not ours


class Wire:
    """One connection, opened anew after it broke."""

    def __init__(self, address: str, key: str) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=TIMEOUT_SECONDS)
        self._fields = {"X-Api-Key": key, "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[str, dict]:
        """Status, or the name of what broke, and the document."""
        try:
            self._connection.request(method, path, body=body, headers=self._fields)
            answer = self._connection.getresponse()
            return str(answer.status), json.loads(answer.read())
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return type(error).__name__, {}

    def series(self, entities: list[str], start_ns: int, end_ns: int) -> tuple[str, dict]:
        span = {"start": format_time(start_ns), "end": format_time(end_ns)}
        chosen = {"entity_id": entities, "measurement": "link", "fields": "number", **span}
        return self.ask("GET", f"/topology/series?{urlencode(chosen, doseq=True)}")


class Fleet:
    """Entities that have one record in each numbered batch, and what became of the batches."""

    def __init__(self, prefix: str) -> None:
        self.names = [f"{prefix}-{number:03}" for number in range(RECORDS)]
        self.next = 0
        self.newest = -1  # of the acknowledged ones, told before a read is asked for
        self.acknowledged: set[int] = set()
        self.uncertain: set[int] = set()

    def batch(self) -> tuple[int, list[dict]]:
        number, self.next = self.next, self.next + 1
        time_ns = time.time_ns()
        return number, [
            {
                "measurement": "link",
                "time": time_ns,
                "tags": {"entity_id": name},
                "fields": {"number": number, "snr_db": 10 + row / 8},
            }
            for row, name in enumerate(self.names)
        ]

    def settle(self, number: int, *, stored: bool | None) -> None:
        """`stored` of `None`: nobody knows."""
        if stored:
            self.acknowledged.add(number)
            self.newest = number
        elif stored is None:
            self.uncertain.add(number)

    def counts(self, found: dict[str, Counter]) -> dict[str, int]:
        """Counts of acknowledged records that are lost, there twice, or strange."""
        counts = Counter(acknowledged=RECORDS * len(self.acknowledged), lost=0, twice=0, strange=0)
        for numbers in (found[name] for name in self.names):
            counts["lost"] += len(self.acknowledged - numbers.keys())
            counts["twice"] += sum(count - 1 for count in numbers.values())
            counts["strange"] += len(numbers.keys() - self.acknowledged - self.uncertain)
        return dict(counts)


class Steady:
    def __init__(self, address: str, target: str, authority: str, key: str) -> None:
        self._address, self._key = address, key
        self._posted, self._called = Fleet("http"), Fleet("grpc")
        self._began_ns = time.time_ns()
        self._write, self._read = Wire(address, key), Wire(address, key)
        credentials = grpc.ssl_channel_credentials(Path(authority).read_bytes())
        self._call = grpc.secure_channel(target, credentials).unary_unary(METHOD)
        self.wrong: Counter[str] = Counter()

    def post(self) -> None:
        number, records = self._posted.batch()
        texts = [{**record, "time": format_time(record["time"])} for record in records]
        status, _ = self._write.ask("POST", "/telemetry", json.dumps(texts).encode())
        refused = status.isdecimal() and status != "202"
        self._posted.settle(number, stored=True if status == "202" else False if refused else None)
        if status != "202":
            self.wrong[f"POST {status}"] += 1

    def call(self) -> None:
        number, records = self._called.batch()
        message = b"".join(map(encode_record, records))
        try:
            self._call(message, metadata=(("x-api-key", self._key),), timeout=TIMEOUT_SECONDS)
        except grpc.RpcError as error:
            self._called.settle(number, stored=None)
            self.wrong[f"gRPC {error.code().name} {error.details()[:40]}"] += 1
        else:
            self._called.settle(number, stored=True)

    def topology(self) -> None:
        expected = self._posted.newest
        status, document = self._read.ask("GET", "/topology?measurement=link")
        mine = [each for each in document.get("entities", []) if each["entity_id"][:4] == "http"]
        if status != "200":
            self.wrong[f"GET /topology {status}"] += 1
        elif len(mine) < RECORDS or any(each["fields"]["number"] < expected for each in mine):
            self.wrong["GET /topology lacks what was acknowledged"] += 1

    def series(self) -> None:
        expected, now_ns = self._posted.newest, time.time_ns()
        entity = self._posted.names[expected % RECORDS]
        status, document = self._read.series([entity], now_ns - 30 * SECOND_NS, now_ns + SECOND_NS)
        if status != "200":
            self.wrong[f"GET /topology/series {status}"] += 1
        elif max(document["series"][0]["channels"].get("number", [-1])) < expected:
            self.wrong["GET /topology/series lacks what was acknowledged"] += 1

    def drive(self, seconds: float) -> dict:
        self.wrong.clear()
        latencies: dict[str, list[float]] = {"write": [], "read": [], "grpc": []}
        began = time.perf_counter()
        works = (
            ("write", WRITES_PER_SECOND, [self.post]),
            ("read", READS_PER_SECOND, [self.topology, self.series]),
            ("grpc", CALLS_PER_SECOND, [self.call]),
        )

        def run(name: str, per_second: int, asks: list) -> None:
            for turn in range(round(seconds * per_second)):
                due = began + turn / per_second
                time.sleep(max(due - time.perf_counter(), 0))
                if time.perf_counter() > began + seconds + LATE_SECONDS_MAX:
                    self.wrong[f"{name} given up"] += 1
                    return
                for ask in asks:
                    ask()
                    now = time.perf_counter()
                    latencies[name].append(now - due)
                    due = now

        threads = [threading.Thread(target=run, args=work) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"latencies": latencies, "wrong": self.wrong}

    def stored(self, fleet: Fleet) -> Iterator[tuple[str, float]]:
        """Every number that a read shows, by entity, page by page."""
        for first in range(0, RECORDS, ENTITIES_A_REQUEST):
            names = fleet.names[first : first + ENTITIES_A_REQUEST]
            start_ns, end_ns = self._began_ns, time.time_ns() + SECOND_NS
            while start_ns < end_ns:
                status, page = self._read.series(names, start_ns, min(start_ns + HOUR_NS, end_ns))
                assert status == "200", page
                for one in page["series"]:
                    for number in one["channels"].get("number", []):
                        yield one["entity_id"], number
                start_ns = min(start_ns + HOUR_NS, end_ns)
                if page["truncated"]:
                    start_ns = time_ns(page["next_start"])

    def check(self) -> dict[str, int]:
        self._read = Wire(self._address, self._key)
        total: Counter[str] = Counter()
        for fleet in (self._posted, self._called):
            found: dict[str, Counter] = {name: Counter() for name in fleet.names}
            for name, number in self.stored(fleet):
                found[name][int(number)] += 1
            total.update(fleet.counts(found))
        return dict(total)


def main() -> None:
    with contextlib.suppress(PermissionError):
        os.nice(NICENESS)
    steady = Steady(*sys.argv[1:])
    steady.drive(2.0)
    answer_commands(
        lambda wish: steady.check() if "check" in wish else steady.drive(wish["seconds"])
    )


if __name__ == "__main__":
    main()
