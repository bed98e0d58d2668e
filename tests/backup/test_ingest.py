"""Backups beside a service that is written to: each is the store as of one instant of its making.

`FAULTS=full` makes one every ten seconds for five minutes (`make faults`).
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter

import polars as pl

from tests.service.service import command, prepare, start
from tests.service.test_kill import RECORDS, START_NS, WRITERS, Writer

from .plane import open_plane

FULL = os.environ.get("FAULTS") == "full"
BACKUPS, PAUSE_SECONDS = (30, 10.0) if FULL else (4, 0.5)


def batches(data):
    """Stored records by entity and batch."""
    with open_plane(data, "acme") as plane:
        frame = pl.DataFrame(plane.scan(0, 2**62, now_ns=2 * START_NS, fields=["number"]))
    found = Counter()
    for tags, number in frame.select("tags", "number").iter_rows():
        pairs = tags.items() if isinstance(tags, dict) else ((t["key"], t["value"]) for t in tags)
        found[dict(pairs)["entity_id"], int(number)] += 1
    return found


def test_backups_under_ingest_have_all_that_was_acknowledged_before(tmp_path):
    data, folder = tmp_path / "data", tmp_path / "backup"
    key = prepare(data)
    service = start(data, key, "--set", "store.compact_after_seconds=1")
    count = threading.Semaphore(0)
    writers = [Writer(service, f"w{n}", 0, count) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    backups = []
    try:
        for number in range(BACKUPS):
            time.sleep(PAUSE_SECONDS)
            before = {writer.entity: len(writer.acknowledged) for writer in writers}
            done = command(data, "backup", str(folder))
            after = {writer.entity: writer.number for writer in writers}
            copy = tmp_path / f"copy-{number}"
            key_file = str(data / "master.key")
            command(copy, "restore", str(folder), "--master-key", key_file)
            backups.append((copy, before, after, done))
    finally:
        service.kill()
        for writer in writers:
            writer.join()
    rows = []
    for copy, before, after, done in backups:
        found = batches(copy)
        wanted = {(entity, n) for entity, last in before.items() for n in range(last)}
        possible = {(entity, n) for entity, last in after.items() for n in range(last + 1)}
        assert wanted <= set(found) <= possible
        assert set(found.values()) == {RECORDS}, "no batch is there in part"
        assert sum(found.values()) == done["tenants"][0]["rows"]
        rows.append(sum(found.values()))
        (verified,) = command(copy, "verify")["tenants"]
        assert verified["damages"] == []
    assert rows == sorted(rows)
    print(f"{BACKUPS} backups under ingest, restored: {rows} rows, none missing")
    assert command(data, "verify", "--backup", str(folder))["ok"]
