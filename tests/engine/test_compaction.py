"""Compaction beside other processes: no row is lost or seen twice, whenever the compactor dies."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import AGGREGATIONS, Engine, Plane, encode_records, format_time

from .model import SECOND_NS, Model
from .strategies import BASE_NS, NOW_NS

if TYPE_CHECKING:
    from pathlib import Path

TENANT = "acme"
MASTER_KEY = bytes(range(32))
ALL = {
    "entity_ids": ["e0", "e1", "e2"],
    "start_ns": BASE_NS,
    "end_ns": BASE_NS + 7200 * SECOND_NS,
    "measurement": "link",
    "interval": "15s",
    "agg": "last",
}


@pytest.fixture
def engine(tmp_path: Path):
    opened = Engine(tmp_path, MASTER_KEY)
    opened.create_plane("a1")
    yield opened
    opened.close()


def records(batch: int) -> list[dict]:
    """Instants that other batches have, too, in an order of their own, over two days."""
    dice = random.Random(batch)
    return [
        {
            "measurement": dice.choice(["link", "weather"]),
            "time_ns": BASE_NS + dice.randrange(0, 600) * SECOND_NS,
            "tags": {"entity_id": f"e{dice.randrange(3)}", "site": dice.choice("xy")},
            "fields": {"snr_db": dice.randrange(100) / 10, "batch": float(batch)},
        }
        for _ in range(20)
    ]


def write(engine: Engine, batch: int, model: Model | None = None) -> None:
    rows = records(batch)
    body = encode_records(
        {
            **{name: value for name, value in row.items() if name != "time_ns"},
            "time": format_time(row["time_ns"]),
        }
        for row in rows
    )
    engine.plane("a1", TENANT).write_json(body, now_ns=NOW_NS)
    if model is not None:
        model.write(rows, NOW_NS)


def assert_as_modelled(engine: Engine, model: Model) -> None:
    plane = engine.plane("a1", TENANT)
    assert json.loads(plane.series_json(**ALL, now_ns=NOW_NS)) == model.series(**ALL)
    for as_of_ns in (NOW_NS, BASE_NS + 300 * SECOND_NS, BASE_NS + 60 * SECOND_NS):
        query = {"as_of_ns": as_of_ns, "freshness_ns": 900 * SECOND_NS}
        answer = json.loads(plane.latest_json(**query, now_ns=NOW_NS))
        assert answer == model.latest(**query, measurement=None)
    assert plane.stats().rows == plane.stats().stored_rows == len(model.records)


def in_other_process(target, *arguments) -> None:
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0


def write_and_compact(directory: Path, first: int, last: int) -> None:
    engine = Engine(directory, MASTER_KEY)
    for batch in range(first, last):
        write(engine, batch)
        if batch % 3 == 2:
            assert engine.plane("a1", TENANT).compact(whole=True, now_ns=NOW_NS) is not None
    engine.close()


def test_a_process_that_lags_behind_catches_up_from_segments(engine, tmp_path) -> None:
    """H34, D12: blocks that it never applied are gone from the log."""
    model = Model(TENANT)
    for batch in range(2):
        write(engine, batch, model)
    assert_as_modelled(engine, model)
    in_other_process(write_and_compact, tmp_path, 2, 12)
    for batch in range(2, 12):
        model.write(records(batch), NOW_NS)
    assert_as_modelled(engine, model)
    write(engine, 12, model)
    assert_as_modelled(engine, model)


def test_what_was_counted_and_named_outlives_the_log(engine) -> None:
    """J6, D12: counters, names and the last ingest instant after everything is compacted."""
    model = Model(TENANT)
    for batch in range(5):
        write(engine, batch, model)
    before = engine.plane("a1", TENANT).stats()
    engine.plane("a1", TENANT).compact(whole=True, now_ns=NOW_NS)
    engine.release("a1")
    plane = engine.plane("a1", TENANT)
    after = plane.stats()
    for name in ("rows", "values", "batches", "rejected", "series", "stored_values"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.log_bytes == 0 < after.segments
    # The clock went back by what is followed (D15): a read is made after the last write.
    answer = json.loads(plane.latest_json(now_ns=NOW_NS - 5 * SECOND_NS))
    assert answer["as_of_utc"] == format_time(NOW_NS + 1)


def compact_for_ever(directory: Path, started) -> None:
    engine = Engine(directory, MASTER_KEY)
    plane = engine.plane("a1", TENANT)
    started.release()
    while True:
        plane.compact(whole=True, now_ns=NOW_NS)


def test_kill_9_of_the_compactor_loses_nothing_and_leaves_nothing(engine, tmp_path) -> None:
    """It may die at any instruction; the next one clears away what it left."""
    context = multiprocessing.get_context("spawn")
    model, dice, batch = Model(TENANT), random.Random(7), 0
    for _ in range(10):
        started = context.Semaphore(0)
        compactor = context.Process(target=compact_for_ever, args=(tmp_path, started))
        compactor.start()
        started.acquire()
        for _ in range(dice.randrange(1, 12)):
            write(engine, batch, model)
            batch += 1
        os.kill(compactor.pid, signal.SIGKILL)
        compactor.join()
        assert_as_modelled(engine, model)
    plane = engine.plane("a1", TENANT)
    assert plane.compact(whole=True, now_ns=NOW_NS) is not None
    assert_as_modelled(engine, model)
    files = list((tmp_path / "a1" / "segments").iterdir())
    assert len(files) == plane.stats().segments + 1  # the checkpoint


def test_reads_writes_and_compaction_in_one_process_do_not_stop_each_other(engine) -> None:
    """Reads of the past open segments, writes register names, both at the same moment."""
    plane = engine.plane("a1", TENANT)
    write(engine, 0)
    failed: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                as_of_ns = BASE_NS + 300 * SECOND_NS
                plane.latest_json(as_of_ns=as_of_ns, freshness_ns=900 * SECOND_NS, now_ns=NOW_NS)
                plane.series_json(**ALL, now_ns=NOW_NS)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test fails with it
            failed.append(error)

    readers = [threading.Thread(target=read, daemon=True) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(25):
        record = {
            "measurement": "link",
            "time": format_time(BASE_NS + 400 * SECOND_NS),
            "tags": {"entity_id": f"new-{number}"},
            "fields": {"snr_db": 1.0},
        }
        plane.write_json(encode_records([record]), now_ns=NOW_NS)
        plane.compact(whole=True, now_ns=NOW_NS)
    done.set()
    for reader in readers:
        reader.join(60)
        assert not reader.is_alive(), "it waits for ever"
    assert failed == []


def test_files_that_no_manifest_names_are_removed(engine, tmp_path) -> None:
    """No orphan stays, and no other file is touched."""
    write(engine, 0)
    segments = tmp_path / "a1" / "segments"
    engine.plane("a1", TENANT).compact(whole=True, now_ns=NOW_NS)
    orphan, notes = segments / ("0f" * 16), segments / "notes"
    orphan.touch()
    notes.touch()
    write(engine, 1)
    engine.plane("a1", TENANT).compact(whole=True, now_ns=NOW_NS)
    assert not orphan.exists()
    assert notes.exists()
    modes = {file.stat().st_mode & 0o777 for file in segments.iterdir() if file != notes}
    assert (modes, segments.stat().st_mode & 0o777) == ({0o600}, 0o700)


def test_segments_of_a_day_stay_few(engine) -> None:
    """Bounded read and write amplification under many small compactions."""
    written = 0
    for batch in range(40):
        write(engine, batch)
        written += engine.plane("a1", TENANT).compact(whole=True, now_ns=NOW_NS).bytes_written
    stats = engine.plane("a1", TENANT).stats()
    assert stats.segments <= 2 * 6
    assert written < 40 * stats.stored_bytes


def hours(plane: Plane, agg: str) -> list[float]:
    answer = plane.series_json(
        entity_ids=["a"],
        start_ns=BASE_NS,
        end_ns=BASE_NS + 7200 * SECOND_NS,
        measurement="link",
        interval="1h",
        agg=agg,
        now_ns=NOW_NS,
    )
    channels = json.loads(answer)["series"][0]["channels"]
    return [value for name in sorted(channels) for value in channels[name]]


def test_an_hours_mean_changes_in_its_last_digits_at_most_when_it_is_compacted() -> None:
    """docs/format.md, "Statistics": added up in parts, and decimals as integers. What is not
    rounded on the way, and all that is not added up, stays the same to the last bit."""
    plane, dice = Plane.in_memory(TENANT), random.Random(1)
    for part in range(4):
        records = []
        for row in range(300):
            values = {
                "decimal": dice.randrange(1, 10**6) / 1000,
                "double": dice.uniform(1.0, 1e9),
                "whole": dice.randrange(-(10**9), 10**9),
            }
            time = format_time(BASE_NS + (row * 20 + part) * SECOND_NS)
            tags = {"entity_id": "a"}
            records.append({"measurement": "link", "time": time, "tags": tags, "fields": values})
        plane.write_json(encode_records(records), now_ns=NOW_NS)
        if part == 1:
            before_any = {agg: hours(plane, agg) for agg in AGGREGATIONS}
            plane.compact(whole=True, now_ns=NOW_NS)
            assert hours(plane, "mean") == pytest.approx(before_any["mean"], rel=600 * 2**-53)
    before = {agg: hours(plane, agg) for agg in AGGREGATIONS}
    plane.compact(whole=True, now_ns=NOW_NS)
    for agg in ("min", "max", "last"):
        assert hours(plane, agg) == before[agg]
    means = hours(plane, "mean")
    assert means == pytest.approx(before["mean"], rel=1200 * 2**-53)
    names = ("decimal", "double", "whole")
    per_name = len(means) // len(names)
    assert means[2 * per_name :] == before["mean"][2 * per_name :]
