"""The engine inside another program: the page's example, threads, many processes."""

from __future__ import annotations

import itertools
import multiprocessing
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import get_args

from fleetcast.engine import (
    AGGREGATIONS,
    INTERVALS,
    Aggregation,
    Engine,
    Interval,
    Plane,
    encode_records,
    format_time,
)

from .strategies import BASE_NS, NOW_NS

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
MASTER_KEY = bytes(range(32))


def test_the_examples_of_the_page_run_as_they_stand(tmp_path: Path) -> None:
    said = []
    for example in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        script = tmp_path / "example.py"
        script.write_text(example)
        run = subprocess.run(
            [sys.executable, "-W", "error", script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        said.append(run.stdout)
    assert said[0].startswith("WriteResult(accepted=1, rejected=0)\n")
    assert [text.count("12.5") for text in said] == [2, 1]
    assert (tmp_path / "my-planes" / "acme" / "plane.mdb").is_file()


def longest_silence(work) -> tuple[float, float]:
    """Seconds that `work` took, and the longest a second thread was kept from running meanwhile."""
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)

    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.perf_counter()
    work()
    end = time.perf_counter()
    done.set()
    ticker.join()
    within = [start, *(at for at in ticks if start < at < end), end]
    silence = max(after - before for before, after in itertools.pairwise(within))
    return end - start, silence


def test_other_threads_run_during_a_long_engine_call() -> None:
    """Reads and writes leave the GIL: nobody waits for a call that takes a tenth of a second."""
    plane = Plane.in_memory("acme")
    records = [
        {
            "measurement": "link",
            "time": format_time(BASE_NS + row * 1_000_000),
            "tags": {"entity_id": f"e{row % 97}", "row": str(row)},
            "fields": {f"f{at}": row / (at + 3) for at in range(12)},
        }
        for row in range(20_000)
    ]
    body = encode_records(records)

    def write() -> None:
        plane.write_json(body, batch_records_max=20_000, now_ns=NOW_NS)

    def read() -> None:
        names = [f"e{entity}" for entity in range(97)]
        query = {"entity_ids": names, "start_ns": BASE_NS, "measurement": "link", "now_ns": NOW_NS}
        for _ in range(3):
            plane.series_json(**query, point_budget=10_000_000, raw_span_seconds=1_000_000)

    # A busy machine may give the other thread no turn in one call; a GIL that is kept, in none.
    for work in (write, read):
        calls = [longest_silence(work) for _ in range(5)]
        assert any(silence < seconds / 2 for seconds, silence in calls), calls
    plane.close()


def register_names(directory: Path, process: int, start) -> None:
    engine = Engine(directory, MASTER_KEY)
    plane = engine.plane("shared", "acme")
    start.wait()
    for step in range(20):
        names = [(step * 3 + process + at) % 40 for at in range(6)]
        records = [
            {
                "measurement": "link",
                "time": format_time(BASE_NS + (step * 10 + at) * 1_000_000_000),
                "tags": {"entity_id": f"e{name}"},
                "fields": {f"f{name % 7}": float(process)},
            }
            for at, name in enumerate(names)
        ]
        plane.write_json(encode_records(records), now_ns=NOW_NS)
    engine.close()


def test_processes_that_register_the_same_names_agree(tmp_path: Path) -> None:
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("shared")
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(3)
    writers = [context.Process(target=register_names, args=(tmp_path, n, start)) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    plane = engine.plane("shared", "acme")
    stats = plane.stats()
    assert (stats.series, stats.rows, stats.batches) == (40, 3 * 20 * 6, 60)
    engine.close()


def test_types_of_choices_list_what_the_engine_takes() -> None:
    assert get_args(Interval) == INTERVALS
    assert get_args(Aggregation) == AGGREGATIONS
