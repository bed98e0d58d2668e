"""Ground stations in a process of their own: a warm channel each, one batch a second on each.

Arguments: address, certificate of the authority, key, stations, records per batch. Each line on
stdin, `{"seconds": 60}`, is answered by one line on stdout when that time is over. A batch that is
not acknowledged is sent again, later each time, until it is; the next one follows then.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import grpc
import grpc.aio

from benches.inputs import fleet
from benches.inputs.messages import SECOND_NS, encode, record, request

METHOD = "/fleet.telemetry.v1.TelemetryIngest/Write"
PERIOD_SECONDS = 1.0
TIMEOUT_SECONDS = 10.0
BACKOFF_FIRST_SECONDS, BACKOFF_MAX_SECONDS = 0.2, 5.0
LINKS = 10
START_SECONDS = int(fleet.START.timestamp())


class Station:
    def __init__(self, number: int, channel: grpc.aio.Channel, key: str, records: int) -> None:
        self.name = f"station-{number:04}"
        self._call = channel.unary_unary(METHOD)
        self._metadata = (("x-api-key", key),)
        walk = fleet.Walk(LINKS, first=number * LINKS)
        times = [fleet.START + timedelta(seconds=second) for second in range(records // LINKS + 1)]
        filler = [each for moment in times for each in json.loads(walk.body(moment))]
        self._filler = request(filler[: records - 1])
        self.acknowledged = 0
        self.resent: Counter[str] = Counter()
        self.latencies: list[float] = []

    def batch(self) -> bytes:
        """Figures of a station, and one record with the number of the batch."""
        number = self.acknowledged
        marker = record(
            (START_SECONDS + number) * SECOND_NS, self.name, fields={"number": float(number)}
        )
        # Messages put behind one another are one message with the records of both.
        return self._filler + encode(marker)

    async def run(self, until: float) -> None:
        due = time.monotonic() + random.random() * PERIOD_SECONDS
        while due < until:
            await asyncio.sleep(max(due - time.monotonic(), 0))
            await self._send(self.batch())
            due += PERIOD_SECONDS
            if due < time.monotonic() - PERIOD_SECONDS:  # it was away: go on from now
                due = time.monotonic() + random.random() * PERIOD_SECONDS

    async def _send(self, body: bytes) -> None:
        backoff = BACKOFF_FIRST_SECONDS
        start = time.perf_counter()
        while True:
            try:
                await self._call(body, metadata=self._metadata, timeout=TIMEOUT_SECONDS)
            except grpc.RpcError as error:
                if error.code() in {grpc.StatusCode.INTERNAL, grpc.StatusCode.INVALID_ARGUMENT}:
                    raise
                self.resent[f"{error.code().name} {error.details()}"] += 1
                await asyncio.sleep(backoff * (0.5 + random.random()))
                backoff = min(2 * backoff, BACKOFF_MAX_SECONDS)
                start = time.perf_counter()
                continue
            self.latencies.append(time.perf_counter() - start)
            self.acknowledged += 1
            return


def tell(stations: list[Station], cpu_seconds: float) -> dict:
    latencies = [latency for station in stations for latency in station.latencies]
    answer = {
        "calls": len(latencies),
        "p50_seconds": statistics.median(latencies),
        "p99_seconds": statistics.quantiles(latencies, n=100)[98],
        "resent": sum((station.resent for station in stations), Counter()),
        "stations that resumed": sum(bool(station.resent) for station in stations),
        "client_cpu_seconds": cpu_seconds,
        "acknowledged": {station.name: station.acknowledged for station in stations},
    }
    for station in stations:
        station.latencies, station.resent = [], Counter()
    return answer


async def main(address: str, authority: bytes, key: str, count: str, records: str) -> None:
    credentials = grpc.ssl_channel_credentials(authority)
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_reconnect_backoff_ms", 5_000)]
    stations = []
    for number in range(int(count)):
        channel = grpc.aio.secure_channel(address, credentials, options)
        stations.append(Station(number, channel, key, int(records)))
        if number % 50 == 49:  # channels are warm before anything is measured
            await asyncio.gather(*(station._send(station.batch()) for station in stations[-50:]))
    print(json.dumps(tell(stations, 0.0)), flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        cpu = time.process_time()
        until = time.monotonic() + json.loads(line)["seconds"]
        await asyncio.gather(*(station.run(until) for station in stations))
        print(json.dumps(tell(stations, time.process_time() - cpu)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]).read_bytes(), *sys.argv[3:]))
