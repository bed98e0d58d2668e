"""Memory of an export, which neither rows nor columns nor processors move."""

import os
import subprocess
import sys
import textwrap

import polars as pl
import pytest

from fleetcast.engine import Planes

MASTER_KEY = bytes(range(32))
MAPPING = {"time": "time", "time_unit": "ns", "measurement": "link", "entity": "id"}
START_NS = 1_767_225_600_000_000_000
PIECES, ROWS, FIELDS = 10, 2_000, 1_000
BOUND_BYTES = 256 << 20

EXPORT = """
    import sys
    from pathlib import Path
    from fleetcast.engine import Planes
    from fleetcast.transfer import exporting, table_export

    form, planes = sys.argv[1], Planes.in_directory(sys.argv[2])
    plane = planes.open("plane", bytes(range(32)), "acme")
    rows = plane.scan(0, 2**62)
    with exporting.written(sys.argv[3]) as file:
        if form == "csv":
            count = table_export.export_csv(rows, ["entity_id"], file, int)
        else:
            home = exporting if form == "jsonl" else table_export
            count = getattr(home, f"export_{form}")(rows, file, int)
    # Not that of getrusage, which knows what started this process as well.
    status = Path("/proc/self/status").read_text()
    print(count, int(status.partition("VmHWM:")[2].split()[0]) * 1024)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """160 MB of doubles in a compacted store."""
    path = str(tmp_path_factory.mktemp("wide"))
    planes = Planes.in_directory(path)
    planes.create("plane", MASTER_KEY)
    plane = planes.open("plane", MASTER_KEY, "acme")
    for piece in range(PIECES):
        first_ns = START_NS + piece * ROWS * 1_000_000_000
        times = pl.int_range(ROWS, eager=True) * 1_000_000_000 + first_ns
        frame = pl.DataFrame({"time": times, "id": ["a"] * ROWS})
        fields = {f"f{of:04}": pl.lit(float(of + piece)) for of in range(FIELDS)}
        plane.write_arrow(frame.with_columns(**fields), mapping=MAPPING)
    plane.compact(whole=True)
    plane.close()
    return path


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_an_export_stays_within_its_memory(store, tmp_path, form):
    command = [sys.executable, "-c", textwrap.dedent(EXPORT), form, store, str(tmp_path / "out")]
    environment = os.environ | {"POLARS_MAX_THREADS": "16"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    rows, peak_bytes = map(int, done.stdout.split())
    assert rows == PIECES * ROWS
    assert peak_bytes < BOUND_BYTES
