"""A month in the store: 100 entities, 30 days, a record each ten seconds: 26 million rows.

    python benches/month.py [--entities N] [--days N] [--keep DIRECTORY]

Writes through the engine in bodies as gateways send them that were offline for a while, compacts as
the maintenance process would, and says what is stored, how long it takes to open, and how long
reads take. Times are the best of several, on the machine as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.engine import Plane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent
MASTER_KEY = bytes(32)
STEP_SECONDS = 10
BODY_SECONDS = 3_600
SECOND_NS = 1_000_000_000
HOUR_NS = 3_600 * SECOND_NS
DAY_NS = 24 * HOUR_NS


class Link:
    """The random walk of one entity, in the decimals of its instruments."""

    def __init__(self, number: int) -> None:
        self._dice = random.Random(number)
        self._tags = f'{{"entity_id":"link-{number:04d}","ground_station":"gs-{number % 40:03d}"}}'
        roll = self._dice.random
        self._state = [360 * roll(), 5 + 80 * roll(), 600 + 1_400 * roll(), 4 + 16 * roll(), roll()]

    def records(self, start: datetime, seconds: int) -> Iterator[str]:
        """A record each ten seconds, nearly."""
        roll, state = self._dice.random, self._state
        for second in range(0, seconds, STEP_SECONDS):
            at = start + timedelta(seconds=second, milliseconds=int(roll() * 10))
            state[0] = (state[0] + 2.4 * roll() - 0.8) % 360
            state[1] = min(max(state[1] + 1.2 * roll() - 0.6, 5.0), 90.0)
            state[2] = min(max(state[2] + 16 * roll() - 8, 550.0), 2_600.0)
            state[3] = min(max(state[3] + 0.8 * roll() - 0.4, -3.0), 25.0)
            state[4] = min(max(state[4] + 0.04 * roll() - 0.02, 0.0), 1.0)
            yield (
                f'{{"measurement":"link","time":"{at:%Y-%m-%dT%H:%M:%S}.'
                f'{at.microsecond // 1000:03d}Z","tags":{self._tags},"fields":{{'
                f'"azimuth_deg":{state[0]:.2f},"elevation_deg":{state[1]:.2f},'
                f'"slant_range_km":{state[2]:.1f},"snr_db":{state[3]:.1f},'
                f'"utilization":{state[4]:.3f}}}}}'
            )


def fill(plane: Plane, entities: int, days: int, start: datetime) -> dict[str, float]:
    """Writes everything, hour by hour, and compacts whenever it is due."""
    links = [Link(number) for number in range(entities)]
    device_bytes = device_bytes_written()
    json_bytes = segment_bytes = 0
    writing = compacting = 0.0
    for hour in range(days * 24):
        moment = start + timedelta(hours=hour)
        now_ns = int(moment.timestamp() + BODY_SECONDS) * SECOND_NS
        for link in links:
            body = f"[{','.join(link.records(moment, BODY_SECONDS))}]".encode()
            json_bytes += len(body)
            begun = time.process_time()
            plane.write_json(body, now_ns=now_ns)
            writing += time.process_time() - begun
        begun = time.process_time()
        done = plane.compact(now_ns=now_ns)
        compacting += time.process_time() - begun
        segment_bytes += done.bytes_written if done else 0
    done = plane.compact(whole=True, now_ns=now_ns)
    segment_bytes += done.bytes_written if done else 0
    return {
        "json_bytes": json_bytes,
        "segment_bytes_written": segment_bytes,
        "device_bytes_per_json_byte": (device_bytes_written() - device_bytes) / json_bytes,
        "write_cpu_seconds": writing,
        "compact_cpu_seconds": compacting,
    }


def best_ms(read: Callable[[], object], times: int = 7) -> float:
    """Milliseconds of the quickest of several calls."""
    best = float("inf")
    for _ in range(times):
        begun = time.perf_counter()
        read()
        best = min(best, time.perf_counter() - begun)
    return best * 1e3


def device_bytes_written() -> int:
    """What this process has had written to disks, in whole pages."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


def resident_mb() -> float:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def read_all(folder: Path, start: datetime, entities: int, days: int) -> dict[str, float]:
    """Opens the store anew and reads, in a process that has done nothing else."""
    before_mb = resident_mb()
    begun = time.perf_counter()
    plane = Plane.open(str(folder), MASTER_KEY, "bench")
    figures = {"open_ms": (time.perf_counter() - begun) * 1e3}
    start_ns = int(start.timestamp()) * SECOND_NS
    end_ns = start_ns + days * DAY_NS
    now = {"now_ns": end_ns}
    newest = {"as_of_ns": end_ns, "freshness_ns": HOUR_NS, **now}
    assert len(json.loads(plane.latest_json(**newest))["entities"]) == entities
    figures["latest_ms"] = best_ms(lambda: plane.latest_json(**newest))
    past = {**newest, "as_of_ns": start_ns + days * DAY_NS // 2}
    begun = time.perf_counter()
    assert len(json.loads(plane.latest_json(**past))["entities"]) == entities
    figures["latest_in_the_past_first_ms"] = (time.perf_counter() - begun) * 1e3
    figures["latest_in_the_past_ms"] = best_ms(lambda: plane.latest_json(**past))

    def series(count: int, span_ns: int, interval: str | None) -> Callable[[], bytes]:
        ids = [f"link-{number:04d}" for number in range(count)]
        query = {"entity_ids": ids, "start_ns": end_ns - span_ns, "end_ns": end_ns}
        query |= {"measurement": "link", "interval": interval, "point_budget": 1_000_000, **now}
        return lambda: plane.series_json(**query)

    for name, count, span_ns, interval in (
        ("1 entity, 1 h raw", 1, HOUR_NS, None),
        ("1 entity, 3 h, 1 h mean", 1, 3 * HOUR_NS, "1h"),
        ("1 entity, 1 d, 1 m mean", 1, DAY_NS, "1m"),
        ("1 entity, 30 d, 1 h mean", 1, days * DAY_NS, "1h"),
        ("16 entities, 1 d, 5 m mean", 16, DAY_NS, "5m"),
        ("16 entities, 30 d, 1 h mean", 16, days * DAY_NS, "1h"),
    ):
        read = series(count, span_ns, interval)
        begun = time.perf_counter()
        read()
        figures[f"{name}, first (ms)"] = (time.perf_counter() - begun) * 1e3
        figures[f"{name} (ms)"] = best_ms(read)
    values = 16 * days * DAY_NS // (STEP_SECONDS * SECOND_NS) * 5
    milliseconds = figures["16 entities, 30 d, 1 h mean (ms)"]
    figures["effective_million_values_per_second"] = values / milliseconds / 1e3
    figures["resident_mb_more_than_at_start"] = resident_mb() - before_mb
    return figures


def main() -> None:
    """Prints a figure a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, default=100)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--keep", type=Path, help="fill this folder, or read it if it is filled")
    options = parser.parse_args()
    start = datetime(2026, 3, 1, tzinfo=UTC)
    (ROOT / "target").mkdir(exist_ok=True)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="month-", dir=ROOT / "target")) / "plane"
    figures: dict[str, float] = {}
    try:
        if not folder.exists():
            Plane.create(str(folder), MASTER_KEY)
            plane = Plane.open(str(folder), MASTER_KEY, "bench")
            figures |= fill(plane, options.entities, options.days, start)
            stats = plane.stats()
            plane.close()
            figures["rows"], figures["values"] = stats.rows, stats.values
            figures["segments"], figures["stored_bytes"] = stats.segments, stats.stored_bytes
            figures["bytes_per_value"] = stats.stored_bytes / stats.values
            figures["plane_file_bytes"] = (folder / "plane.mdb").stat().st_size
            figures["segment_bytes_written_per_json_byte"] = (
                figures["segment_bytes_written"] / figures["json_bytes"]
            )
        figures |= read_all(folder, start, options.entities, options.days)
    finally:
        if options.keep is None:
            shutil.rmtree(folder.parent)
    for name, value in figures.items():
        print(f"{name:45} {value:>18,.3f}")


if __name__ == "__main__":
    main()
