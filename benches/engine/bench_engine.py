"""The engine as Python reaches it, and the Python libraries beside it, on the same bodies."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from pathlib import Path

import orjson
import pytest

from benches.engine import plain
from benches.harness.paths import TARGET
from benches.inputs import fleet
from fleetcast._core import Plane, Planes

MASTER_KEY = bytes(32)


@pytest.fixture(scope="module")
def bodies():
    return list(fleet.bodies(8))


@pytest.fixture
def folder():
    """On the disk of the repository: a file system in memory would sync for nothing."""
    TARGET.mkdir(exist_ok=True)
    folder_path = Path(tempfile.mkdtemp(prefix="bench-", dir=TARGET))
    yield folder_path
    shutil.rmtree(folder_path)


@pytest.fixture
def turn(bodies):
    """The next body."""
    return itertools.cycle(bodies).__next__


def test_orjson_loads(benchmark, turn):
    benchmark(lambda: orjson.loads(turn()))


def test_plain_python_columns(benchmark, turn):
    parser = plain.Parser("bench")
    tables, rejected = parser.columns(turn(), time.time_ns())
    assert len(tables["link"].series) == fleet.BODY_RECORDS
    assert not rejected
    benchmark(lambda: parser.columns(turn(), time.time_ns()))


def test_write_memory(benchmark, turn):
    plane = Plane.in_memory("bench")
    benchmark(lambda: plane.write_json(turn()))


def test_write_durable(benchmark, turn, folder):
    planes = Planes.in_directory(folder)
    planes.create("plane", MASTER_KEY)
    plane = planes.open("plane", MASTER_KEY, "bench")
    benchmark(lambda: plane.write_json(turn()))


def test_arrow_frame_of_an_hour(benchmark):
    polars = pytest.importorskip("polars")
    plane = Plane.in_memory("bench")
    for body in fleet.bodies(60):
        plane.write_json(body)
    start_ns = int(fleet.START.timestamp()) * 1_000_000_000
    ids = [fleet.entity_id(number) for number in range(16)]

    def read():
        stream = plane.series_frame(
            entity_ids=ids,
            start_ns=start_ns,
            end_ns=start_ns + 3_600_000_000_000,
            measurement=fleet.MEASUREMENT,
        )
        return polars.DataFrame(stream)

    assert read().height == 16 * 60
    benchmark(read)
