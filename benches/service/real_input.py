"""Loads real telemetry through the real service and compares every value that comes back.

    python -m benches.service.real_input ../shared/data [--links 50 | --all] [--rows N]

Starts `fleetcast serve` with two workers on a fresh data directory, posts each set in batches of
1,000 records over several kept-alive connections, reads it back through `GET /topology/series`
(raw pages, following `next_start`) and through the engine's frames once the service has stopped,
and compares bit for bit. `GET /topology` is compared for a sample of instants. Prints a table;
ends with 1 where anything differs.

`real_sets.py` says which sets there are.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import struct
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import polars as pl

from benches.service.real_sets import read_microwave, read_pools, read_satellite
from fleetcast.bench.processes import bytes_below
from fleetcast.engine import format_time, parse_time
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.service.service import prepare, start

if TYPE_CHECKING:
    from benches.service.real_sets import Row, Series, Set
    from fleetcast.engine import Plane
    from tests.service.service import Service

TENANT = "acme"
BATCH_RECORDS = 1_000
CONNECTIONS = 4
TOPOLOGY_INSTANTS = 40
SECOND_NS = 1_000_000_000
HORIZON_DAYS = 36_500


def started(data: Path) -> Service:
    """`fleetcast serve` with one tenant, which may be asked for all of time at once."""
    settings = {
        "limits.history_horizon_days": HORIZON_DAYS,
        "limits.raw_span_seconds": HORIZON_DAYS * 86_400,
    }
    options = [f"--set={name}={value}" for name, value in settings.items()]
    return start(data, prepare(data, TENANT), "--workers", "2", *options)


class Client:
    """One kept-alive connection."""

    def __init__(self, service: Service) -> None:
        self.connection = http.client.HTTPConnection(service.address, timeout=120)
        self.headers = {"x-api-key": service.key, "content-type": "application/json"}

    def post(self, body: bytes) -> dict:
        self.connection.request("POST", "/telemetry", body=body, headers=self.headers)
        return self._answer(202)

    def get(self, path: str, **parameters: object) -> dict:
        query = urlencode(parameters, doseq=True)
        self.connection.request("GET", f"{path}?{query}", headers=self.headers)
        return self._answer(200)

    def _answer(self, status: int) -> dict:
        response = self.connection.getresponse()
        body = response.read()
        if response.status != status:
            message = f"{response.status}: {body[:500]!r}"
            raise SystemExit(message)
        return json.loads(body)

    def close(self) -> None:
        self.connection.close()


def load(service: Service, batches: list[bytes]) -> int:
    """Posts all batches over `CONNECTIONS` connections; returns the records accepted."""

    def post_share(share: int) -> int:
        client = Client(service)
        mine = islice(batches, share, None, CONNECTIONS)
        accepted = sum(client.post(body)["accepted_count"] for body in mine)
        client.close()
        return accepted

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return sum(pool.map(post_share, range(CONNECTIONS)))


def bits(value: float | None) -> bytes | None:
    return None if value is None else struct.pack("<d", value)


def differences(expected: list[Row], found: list[Row]) -> int:
    """Rows that are not in both with the same instant, fields and bits."""

    def exact(rows: list[Row]) -> list:
        return [(t, {name: bits(v) for name, v in fields.items()}) for t, fields in rows]

    ours, theirs = exact(expected), exact(found)
    if ours == theirs:
        return 0
    unequal = sum(a != b for a, b in zip(ours, theirs, strict=False))
    return unequal + abs(len(ours) - len(theirs))


def read_series(client: Client, measurement: str, series: Series) -> list[Row]:
    """All rows of an entity, page by page."""
    rows: list[Row] = []
    start, end = format_time(series.rows[0][0]), format_time(series.rows[-1][0] + 1)
    while start is not None:
        page = client.get(
            "/topology/series",
            entity_id=series.entity_id,
            measurement=measurement,
            start=start,
            end=end,
        )
        (entity,) = page["series"]
        columns = entity["channels"].items()
        for at, moment in enumerate(entity["times"]):
            fields = {name: values[at] for name, values in columns if values[at] is not None}
            rows.append((parse_time(moment), fields))
        start = page["next_start"]
    return rows


def compare_over_http(service: Service, loaded: Set) -> int:
    def compare(share: list[Series]) -> int:
        client = Client(service)
        found = sum(
            differences(series.rows, read_series(client, loaded.measurement, series))
            for series in share
        )
        client.close()
        return found

    shares = [loaded.series[at::CONNECTIONS] for at in range(CONNECTIONS)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return sum(pool.map(compare, shares))


def compare_topology(service: Service, loaded: Set) -> int:
    """Newest samples as of instants spread over the set, freshness an hour (G1, G2)."""
    times = sorted({time_ns for series in loaded.series for time_ns, _ in series.rows})
    client = Client(service)
    found = 0
    for as_of_ns in times[1 :: max(1, len(times) // TOPOLOGY_INSTANTS)]:
        as_of = format_time(as_of_ns)
        answer = client.get("/topology", as_of_utc=as_of, freshness_seconds=3600)
        own = {
            entity["entity_id"]: (parse_time(entity["observed_at"]), entity["fields"])
            for entity in answer["entities"]
            if entity["measurement"] == loaded.measurement
        }
        for series in loaded.series:
            window = [
                row for row in series.rows if as_of_ns - 3600 * SECOND_NS <= row[0] < as_of_ns
            ]
            newest = [own[series.entity_id]] if series.entity_id in own else []
            found += differences(window[-1:], newest)
    client.close()
    return found


def compare_frames(plane: Plane, loaded: Set) -> int:
    """Every value through the engine's frames, the service stopped."""
    found = 0
    for series in loaded.series:
        stream = plane.series_frame(
            entity_ids=[series.entity_id],
            measurement=loaded.measurement,
            start_ns=series.rows[0][0],
            end_ns=series.rows[-1][0] + 1,
        )
        frame = pl.DataFrame(stream)
        names = frame.columns[2:]
        columns = [frame["time"].dt.timestamp("ns").to_list()]
        columns += [frame[name].to_list() for name in names]
        rows = [
            (cells[0], {n: v for n, v in zip(names, cells[1:], strict=True) if v is not None})
            for cells in zip(*columns, strict=True)
        ]
        found += differences(series.rows, rows)
    return found


def bodies(loaded: Set) -> list[bytes]:
    records = loaded.records()
    batches = iter(lambda: ",".join(islice(records, BATCH_RECORDS)), "")
    return [f"[{batch}]".encode() for batch in batches]


def measure(service: Service, data: Path, loaded: Set) -> tuple[str, int]:
    """Loads and compares one set; returns its line of the table and its differences."""
    batches = bodies(loaded)
    before = bytes_below(data / "planes")
    start = time.perf_counter()
    accepted = load(service, batches)
    seconds = time.perf_counter() - start
    stored = bytes_below(data / "planes") - before
    found = loaded.row_count - accepted
    if loaded.measurement != "pool_interval":
        found += compare_over_http(service, loaded)
    found += compare_topology(service, loaded)
    rows, values = loaded.row_count, loaded.value_count
    line = (
        f"{loaded.name:<10} {rows:>11,} {values:>11,} {seconds:>8.1f} {rows / seconds:>9,.0f} "
        f"{stored:>13,} {stored / values:>9.2f}"
    )
    return line, found


def parse_arguments() -> argparse.Namespace:
    summary, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=rest.partition("\n\n")[2])
    parser.add_argument("data", type=Path, help="folder with links/ and pools/")
    parser.add_argument("--links", type=int, default=50, metavar="N", help="microwave links")
    parser.add_argument("--all", action="store_true", help="every microwave link")
    parser.add_argument("--rows", type=int, metavar="N", help="rows of each file at most")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    links_max = sys.maxsize if arguments.all else arguments.links
    print(f"real input, {datetime.now(UTC):%Y-%m-%d}, {CONNECTIONS} connections, 2 workers")
    print(
        f"{'set':<10} {'rows':>11} {'values':>11} {'seconds':>8} {'rows/s':>9} "
        f"{'bytes':>13} {'per value':>9}"
    )
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        service = started(data)
        sets = []
        try:
            for read, options in (
                (read_satellite, (arguments.rows,)),
                (read_microwave, (links_max, arguments.rows)),
                (read_pools, (arguments.rows,)),
            ):
                sets.append(read(arguments.data, *options))
                line, found[sets[-1].name] = measure(service, data, sets[-1])
                print(line, flush=True)
        finally:
            service.stop()
        with opened(DataDirectory(data), os.environ) as installation:
            account_id = installation.tenants.get(TENANT).account_id
            plane = installation.engine.plane(account_id, TENANT)
            for loaded in sets:
                found[loaded.name] += compare_frames(plane, loaded)
    for name, count in found.items():
        print(f"{name}: {count or 'no'} differences")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
