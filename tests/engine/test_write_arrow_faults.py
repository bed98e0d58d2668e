"""`write_arrow` that is killed or finds the disk full.

A piece that was reported is there whole, and any other one whole or not at all.
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from fleetcast.engine import Planes
from fleetcast.errors import StoreError
from tests.small_disk import enlarge, small_disk

ROUNDS = 100 if os.environ.get("FAULTS") == "full" else 2
PIECES, ROWS = 60, 400
START_NS = 1_790_000_000_000_000_000
MASTER_KEY = bytes(range(32))
CURSOR = bytes(range(16))
MAPPING = {"time": "t", "time_unit": "ns", "measurement": "link", "entity": "id"}
MODULE = "tests.engine.test_write_arrow_faults"
# Says the number of rows of each piece once it is written.
CHILD = f"""
import sys
from {MODULE} import new_plane, writes
for result in writes(new_plane(sys.argv[1])):
    print(result.accepted_count, flush=True)
"""


def new_plane(path):
    planes = Planes.in_directory(Path(path).parent)
    planes.create(Path(path).name, MASTER_KEY)
    return planes.open(Path(path).name, MASTER_KEY, "acme")


def piece(first):
    """A batch of a stream; texts let it take some room."""
    numbers = range(first, first + ROWS)
    dice = random.Random(first)
    return pl.DataFrame(
        {
            "t": [START_NS + number for number in numbers],
            "id": [f"l-{number % 7}" for number in numbers],
            "number": [float(number) for number in numbers],
            "note": [dice.randbytes(200).hex() for _ in numbers],
        }
    )


def writes(plane, first=0):
    pieces = [piece(at) for at in range(first, PIECES * ROWS, ROWS)]
    # As structs, since a frame would be handed over in one batch.
    stream = pl.concat(pieces, rechunk=False).to_struct("rows")
    return plane.write_arrow_pieces(stream, mapping=MAPPING, cursor=CURSOR, first_row=first)


def rows_stored(plane):
    """The number of rows, which are those of the first pieces, each of them whole."""
    numbers = pl.DataFrame(plane.scan(0, 2**62)).get_column("number", default=pl.Series([]))
    count = len(numbers)
    assert sorted(numbers.to_list()) == [float(number) for number in range(count)]
    assert count % ROWS == 0
    assert plane.cursor(CURSOR) == (struct.pack("<Q", count) if count else None)
    return count


@pytest.mark.parametrize("is_random", [False, True], ids=["after a piece", "at random"])
def test_a_kill_leaves_whole_pieces_and_all_that_were_reported(tmp_path, is_random):
    dice = random.Random(os.environ.get("FAULTS_SEED", "7"))
    for number in range(ROUNDS):
        path = tmp_path / str(number)
        command = [sys.executable, "-c", CHILD, path]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            said = [process.stdout.readline() for _ in range(dice.randrange(1, PIECES))]
            if is_random:
                time.sleep(dice.uniform(0, 0.01))
            process.kill()
            said += process.stdout.readlines()
        # The kill may come between a number and the end of its line.
        assert {line.rstrip() for line in said} == {f"{ROWS}".encode()}
        plane = Planes.in_directory(path.parent).open(path.name, MASTER_KEY, "acme")
        stored = rows_stored(plane)
        assert len(said) * ROWS <= stored <= (len(said) + 1) * ROWS
        # The kill may come after the last piece.
        rest = writes(plane, stored) if stored < PIECES * ROWS else ()
        assert sum(result.accepted_count for result in rest) + stored == PIECES * ROWS
        assert rows_stored(plane) == PIECES * ROWS


def test_a_full_disk_leaves_whole_pieces_and_all_that_were_reported(tmp_path):
    with small_disk(tmp_path / "small", "6m") as folder:
        plane = new_plane(folder / "plane")
        taken = []
        with pytest.raises(StoreError, match="space"):
            taken.extend(result.accepted_count for result in writes(plane))
        said = sum(taken)
        assert 0 < said < PIECES * ROWS
        enlarge(folder, "100m")  # a scan may need room as well
        assert rows_stored(plane) == said
        said += sum(result.accepted_count for result in writes(plane, said))
        assert rows_stored(plane) == said == PIECES * ROWS
        plane.close()
