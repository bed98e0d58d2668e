"""Scans beside threads that write series nobody has seen: nothing is damaged."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from fleetcast.engine import Engine, Plane, encode_records

if TYPE_CHECKING:
    from pathlib import Path

NOW_NS = 20_700 * 86_400_000_000_000
SINCE_NS = NOW_NS - 400 * 86_400_000_000_000
SCANS, KNOWN = 300, 20_000


def test_a_scan_beside_new_series_finds_the_rows_of_a_moment(tmp_path: Path) -> None:
    engine = Engine(tmp_path, bytes(32))
    engine.create_plane("a")
    plane = engine.plane("a", "acme")
    # The more names there are, the longer it takes to look at them.
    known = [record(f"known-{number}", "2020-01-01") for number in range(KNOWN)]
    plane.write_json(encode_records(known), now_ns=NOW_NS, batch_records_max=KNOWN)
    ended = threading.Event()
    threads = [
        threading.Thread(target=write, args=(plane, 0, ended)),
        threading.Thread(target=write, args=(plane, 1, ended)),
        threading.Thread(target=follow, args=(plane, ended)),
    ]
    for thread in threads:
        thread.start()
    try:
        found = [rows_of(plane) for _ in range(SCANS)]
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert found == sorted(found)
    assert found[-1] <= plane.stats().rows
    engine.close()


def rows_of(plane: Plane) -> int:
    return sum(len(batch) for batch in plane.scan(SINCE_NS, NOW_NS + 1, now_ns=NOW_NS))


def follow(plane: Plane, ended: threading.Event) -> None:
    """Takes up what was written, as each read of another thread does."""
    while not ended.is_set():
        plane.follow()


def write(plane: Plane, writer: int, ended: threading.Event) -> None:
    """Stores a new series with each batch."""
    for number in itertools.count():
        if ended.is_set():
            return
        entity = f"{writer}-{number}"
        plane.write_json(encode_records([record(entity, "2026-01-01")]), now_ns=NOW_NS)


def record(entity: str, time: str) -> dict:
    tags = {"entity_id": entity}
    return {"measurement": "link", "time": time, "tags": tags, "fields": {"a": 1.5}}
